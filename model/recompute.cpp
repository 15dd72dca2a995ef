#include "model/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <utility>

namespace tupelo {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Generator default_generator(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

Tensor generator_state(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Generator generator, const Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// Puts a generator into a former state and back into its present one at the end.
class ReplayedGenerator {
 public:
  ReplayedGenerator(at::Generator generator, const Tensor& former_state)
      : generator_(std::move(generator)), present_state_(generator_state(generator_)) {
    set_generator_state(generator_, former_state);
  }
  ~ReplayedGenerator() { set_generator_state(generator_, present_state_); }
  ReplayedGenerator(const ReplayedGenerator&) = delete;
  ReplayedGenerator& operator=(const ReplayedGenerator&) = delete;

 private:
  at::Generator generator_;
  Tensor present_state_;
};

// What the backward pass needs besides tensors, in the form that a context stores.
struct Replay : torch::CustomClassHolder {
  Segment segment;
  at::Generator generator;
  Tensor state;
  std::size_t input_count = 0;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Replay>& replay,
                        at::TensorList tensors) {
    const variable_list all = tensors.vec();
    context->save_for_backward(all);
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    return replay->segment(inputs_of(*replay, all));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto replay =
        c10::static_intrusive_pointer_cast<Replay>(context->saved_data["replay"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    variable_list sources = saved;
    for (std::size_t i = 0; i < replay->input_count; ++i) {
      sources[i] = saved[i].detach().set_requires_grad(saved[i].requires_grad());
    }
    const Tensor result = run_again(*replay, sources);
    return gradients_in_place(result, sources, gradients[0]);
  }

 private:
  static variable_list inputs_of(const Replay& replay, const variable_list& all) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(replay.input_count)};
  }

  static Tensor run_again(const Replay& replay, const variable_list& sources) {
    const ReplayedGenerator replayed(replay.generator, replay.state);
    const torch::AutoGradMode with_graph(true);
    return replay.segment(inputs_of(replay, sources));
  }

  // Gradients in the order of forward's arguments: none for the replay, then one per tensor that
  // needs it.
  static variable_list gradients_in_place(const Tensor& result, const variable_list& sources,
                                          const Tensor& gradient) {
    variable_list wanted;
    for (const Tensor& source : sources) {
      if (source.requires_grad()) {
        wanted.push_back(source);
      }
    }
    const variable_list found =
        torch::autograd::grad({result}, wanted, {gradient}, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list placed(1);
    std::size_t next = 0;
    for (const Tensor& source : sources) {
      placed.push_back(source.requires_grad() ? found[next++] : Tensor());
    }
    return placed;
  }
};

}  // namespace

Tensor recompute(const Segment& segment, const std::vector<Tensor>& inputs,
                 const std::vector<Tensor>& parameters) {
  if (!torch::GradMode::is_enabled()) {
    return segment(inputs);
  }
  TORCH_CHECK(!inputs.empty(), "a recomputed segment needs an input");
  auto replay = c10::make_intrusive<Replay>();
  replay->segment = segment;
  replay->generator = default_generator(inputs.front().device());
  replay->state = generator_state(replay->generator);
  replay->input_count = inputs.size();
  variable_list all = inputs;
  all.insert(all.end(), parameters.begin(), parameters.end());
  return Recompute::apply(replay, at::TensorList(all));
}

}  // namespace tupelo

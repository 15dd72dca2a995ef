#include "distributed/gradient_reducer.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include "distributed/gradient_buckets.h"

namespace tupelo {
namespace {

// A node handle: shared_ptr in torch 2.11, intrusive_ptr in 2.15.
using Accumulator =
    decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

void check_parameters(const std::vector<torch::Tensor>& parameters) {
  std::set<const void*> seen;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    TORCH_CHECK(parameter.defined() && parameter.is_leaf() && parameter.requires_grad(),
                "parameter ", i, " of a GradientReducer is not a leaf that requires a gradient");
    TORCH_CHECK(seen.insert(parameter.unsafeGetTensorImpl()).second, "parameter ", i,
                " of a GradientReducer was given twice");
  }
}

}  // namespace

struct GradientReducer::State {
  State(std::vector<torch::Tensor> all_parameters, Communicator& ranks,
        GradientReducerOptions given)
      : parameters(std::move(all_parameters)), communicator(ranks), options(given) {
    check_parameters(parameters);
    buckets = place_gradients(parameters, options.bucket_bytes,
                              options.scatter ? communicator.world_size() : 1);
    bucket_of.resize(parameters.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      for (const auto member : buckets[i].members) bucket_of[member] = i;
    }
    arm();
  }

  // Whether autograd itself accumulates into the bucket.
  static bool is_view(const torch::Tensor& parameter) {
    return gradient_type(parameter) == parameter.scalar_type();
  }

  void attach_gradients() {
    for (auto& bucket : buckets) {
      for (std::size_t i = 0; i < bucket.members.size(); ++i) {
        torch::Tensor& parameter = parameters[bucket.members[i]];
        parameter.mutable_grad() = is_view(parameter) ? bucket.gradients[i] : torch::Tensor();
      }
    }
  }

  void check_views() const {
    for (const auto& bucket : buckets) {
      for (std::size_t i = 0; i < bucket.members.size(); ++i) {
        const auto& gradient = parameters[bucket.members[i]].grad();
        if (!is_view(parameters[bucket.members[i]])) continue;
        TORCH_CHECK(
            gradient.defined() && gradient.data_ptr() == bucket.gradients[i].data_ptr(),
            "the gradient of parameter ", bucket.members[i],
            " is no longer a view of its bucket: it was reset other than by zero(), or backward"
            " ran with create_graph");
      }
    }
  }

  // Forgets what the last step sent.
  void arm() {
    works.clear();
    onward.clear();
    travelling.clear();
    gradients_missing.clear();
    for (const auto& bucket : buckets) gradients_missing.push_back(bucket.members.size());
  }

  void gradient_arrived(std::size_t parameter) {
    // Backward of parameters on several devices runs on as many threads.
    std::lock_guard lock(mutex);
    const std::size_t bucket = bucket_of[parameter];
    if (!is_view(parameters[parameter])) take_gradient(bucket, parameter);
    if (!overlapping) return;
    TORCH_CHECK(gradients_missing[bucket] > 0, "a second gradient of parameter ", parameter,
                " arrived after overlap(true), which covers a single backward");
    --gradients_missing[bucket];
    while (works.size() < buckets.size() && gradients_missing[works.size()] == 0) send_next();
  }

  void take_gradient(std::size_t bucket, std::size_t parameter) {
    const auto& members = buckets[bucket].members;
    const auto at = std::find(members.begin(), members.end(), parameter) - members.begin();
    torch::NoGradGuard no_grad;
    torch::Tensor& gradient = parameters[parameter].mutable_grad();
    buckets[bucket].gradients[static_cast<std::size_t>(at)].add_(gradient);
    gradient.reset();
  }

  torch::Tensor own_slice(const torch::Tensor& flat) const {
    const std::int64_t size = flat.numel() / communicator.world_size();
    return options.scatter ? flat.narrow(0, communicator.rank() * size, size) : flat;
  }

  void send_next() {
    torch::NoGradGuard no_grad;
    const torch::Tensor& flat = buckets[works.size()].flat;
    const bool converts =
        options.wire != at::ScalarType::Undefined && flat.scalar_type() == at::kFloat;
    travelling.push_back(converts ? flat.to(options.wire) : flat);
    const torch::Tensor& sent = travelling.back();
    works.push_back(options.scatter ? communicator.reduce_scatter(own_slice(sent), sent)
                                    : communicator.all_reduce(sent));
    // Where collectives end at moments of the device's, sending them on then would mix those of two
    // communicators in an order of each rank's own, which NCCL forbids: finish() does it.
    if (!has_onward() || communicator.is_asynchronous()) return;
    while (onward.size() < works.size() && works[onward.size()]->is_completed()) send_onward();
  }

  bool has_onward() const { return options.scatter && options.replicas != nullptr; }

  // The next slice that its group has summed.
  void send_onward() {
    works[onward.size()]->wait();
    onward.push_back(options.replicas->all_reduce(own_slice(travelling[onward.size()])));
  }

  // Waits for the bucket that left as number `index`.
  void receive(std::size_t index) {
    (has_onward() ? onward : works)[index]->wait();
    const torch::Tensor& flat = buckets[index].flat;
    if (travelling[index].scalar_type() == flat.scalar_type()) return;
    torch::NoGradGuard no_grad;
    own_slice(flat).copy_(own_slice(travelling[index]));
  }

  std::vector<torch::Tensor> parameters;
  Communicator& communicator;
  GradientReducerOptions options;
  std::vector<GradientBucket> buckets;
  std::vector<std::size_t> bucket_of;  // by parameter
  // A leaf refers to its accumulator weakly; the hooks live as long as these do.
  std::vector<Accumulator> accumulators;
  double exposed_seconds = 0;

  std::mutex mutex;
  bool overlapping = false;
  std::vector<std::size_t> gradients_missing;  // by bucket
  std::vector<std::unique_ptr<Work>> works;    // of the buckets that have left, in order
  std::vector<std::unique_ptr<Work>> onward;   // of their slices, to replicas
  std::vector<torch::Tensor> travelling;       // what they carry
};

namespace {

// A graph that outlives the reducer may still hold the accumulator and so the hook, which then does
// nothing.
template <typename State>
class ArrivalHook : public torch::autograd::FunctionPostHook {
 public:
  ArrivalHook(const std::shared_ptr<State>& state, std::size_t parameter)
      : state_(state), parameter_(parameter) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (const auto state = state_.lock()) state->gradient_arrived(parameter_);
    return outputs;
  }

 private:
  std::weak_ptr<State> state_;
  std::size_t parameter_;
};

}  // namespace

GradientReducer::GradientReducer(std::vector<torch::Tensor> parameters, Communicator& communicator,
                                 GradientReducerOptions options)
    : state_(std::make_shared<State>(std::move(parameters), communicator, options)) {
  state_->attach_gradients();
  for (std::size_t i = 0; i < state_->parameters.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(state_->parameters[i]);
    accumulator->add_post_hook(std::make_unique<ArrivalHook<State>>(state_, i));
    state_->accumulators.push_back(std::move(accumulator));
  }
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::zero() {
  state_->attach_gradients();
  torch::NoGradGuard no_grad;
  for (auto& bucket : state_->buckets) bucket.flat.zero_();
}

void GradientReducer::overlap(bool enabled) {
  std::lock_guard lock(state_->mutex);
  TORCH_CHECK(state_->works.empty(),
              "overlap() was called while buckets are under way; finish() first");
  state_->arm();
  state_->overlapping = enabled;
}

void GradientReducer::finish() {
  std::lock_guard lock(state_->mutex);
  state_->check_views();
  const auto start = std::chrono::steady_clock::now();
  state_->overlapping = false;
  while (state_->works.size() < state_->buckets.size()) state_->send_next();
  while (state_->has_onward() && state_->onward.size() < state_->works.size()) {
    state_->send_onward();
  }
  for (std::size_t i = 0; i < state_->works.size(); ++i) state_->receive(i);
  state_->arm();
  state_->exposed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const std::vector<torch::Tensor>& GradientReducer::parameters() const { return state_->parameters; }

const GradientReducerOptions& GradientReducer::options() const { return state_->options; }

std::size_t GradientReducer::bucket_count() const { return state_->buckets.size(); }

std::vector<torch::Tensor> GradientReducer::buckets() const {
  std::vector<torch::Tensor> flat;
  for (const auto& bucket : state_->buckets) flat.push_back(bucket.flat);
  return flat;
}

const std::vector<GradientBucket>& GradientReducer::layout() const { return state_->buckets; }

double GradientReducer::exposed_seconds() const { return state_->exposed_seconds; }

}  // namespace tupelo

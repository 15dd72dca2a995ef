#include "distributed/gradient_reducer.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

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
        GradientReducerOptions options)
      : parameters(std::move(all_parameters)), communicator(ranks) {
    check_parameters(parameters);
    buckets = place_gradients(parameters, options.bucket_bytes);
    bucket_of.resize(parameters.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      for (const auto member : buckets[i].members) bucket_of[member] = i;
    }
    arm();
  }

  void attach_gradients() {
    for (auto& bucket : buckets) {
      for (std::size_t i = 0; i < bucket.members.size(); ++i) {
        parameters[bucket.members[i]].mutable_grad() = bucket.gradients[i];
      }
    }
  }

  void check_views() const {
    for (const auto& bucket : buckets) {
      for (std::size_t i = 0; i < bucket.members.size(); ++i) {
        const auto& gradient = parameters[bucket.members[i]].grad();
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
    gradients_missing.clear();
    for (const auto& bucket : buckets) gradients_missing.push_back(bucket.members.size());
  }

  void gradient_arrived(std::size_t parameter) {
    // Backward of parameters on several devices runs on as many threads.
    std::lock_guard lock(mutex);
    if (!overlapping) return;
    const std::size_t bucket = bucket_of[parameter];
    TORCH_CHECK(gradients_missing[bucket] > 0, "a second gradient of parameter ", parameter,
                " arrived after overlap(true), which covers a single backward");
    --gradients_missing[bucket];
    while (works.size() < buckets.size() && gradients_missing[works.size()] == 0) send_next();
  }

  void send_next() { works.push_back(communicator.all_reduce(buckets[works.size()].flat)); }

  std::vector<torch::Tensor> parameters;
  Communicator& communicator;
  std::vector<GradientBucket> buckets;
  std::vector<std::size_t> bucket_of;  // by parameter
  // A leaf refers to its accumulator weakly; the hooks live as long as these do.
  std::vector<Accumulator> accumulators;
  double exposed_seconds = 0;

  std::mutex mutex;
  bool overlapping = false;
  std::vector<std::size_t> gradients_missing;  // by bucket
  std::vector<std::unique_ptr<Work>> works;    // of the buckets that have left, in order
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
  for (const auto& work : state_->works) work->wait();
  state_->arm();
  state_->exposed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const std::vector<torch::Tensor>& GradientReducer::parameters() const { return state_->parameters; }

std::size_t GradientReducer::bucket_count() const { return state_->buckets.size(); }

std::vector<torch::Tensor> GradientReducer::buckets() const {
  std::vector<torch::Tensor> flat;
  for (const auto& bucket : state_->buckets) flat.push_back(bucket.flat);
  return flat;
}

double GradientReducer::exposed_seconds() const { return state_->exposed_seconds; }

}  // namespace tupelo

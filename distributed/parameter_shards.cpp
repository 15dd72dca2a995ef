#include "distributed/parameter_shards.h"

#include <algorithm>
#include <utility>

#include "distributed/gradient_buckets.h"

namespace tupelo {
namespace {

// An integer type as wide as `type`: whole() sums bits, since 0.0 + -0.0 is not -0.0.
at::ScalarType bits_of(at::ScalarType type) {
  switch (c10::elementSize(type)) {
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      TORCH_CHECK(false, "parts of parameters are float32 or float64, not ", type);
  }
}

// Elements [first, last) of a bucket that lie in [from, to), counted from the member's beginning.
struct Overlap {
  std::int64_t first, size;
};

Overlap overlap_of(std::int64_t begin, std::int64_t numel, std::int64_t from, std::int64_t to) {
  const std::int64_t first = std::clamp(from - begin, std::int64_t{0}, numel);
  const std::int64_t last = std::clamp(to - begin, std::int64_t{0}, numel);
  return {first, last - first};
}

}  // namespace

struct ParameterShards::State {
  // The flat forms of a bucket.
  struct Flat {
    torch::Tensor parameters;  // what the model computes with
    torch::Tensor masters;     // this rank's part, in the gradients' type
  };

  State(const GradientReducer& from, Communicator& ranks)
      : reducer(from), communicator(ranks), scatters(from.options().scatter) {
    slices.resize(reducer.parameters().size());
    bucket_of.resize(slices.size());
    works.resize(reducer.bucket_count());
    for (std::size_t i = 0; i < reducer.layout().size(); ++i) {
      for (const std::size_t member : reducer.layout()[i].members) bucket_of[member] = i;
    }
  }

  std::int64_t own_begin(const GradientBucket& bucket) const {
    return scatters ? communicator.rank() * own_size(bucket) : 0;
  }
  std::int64_t own_size(const GradientBucket& bucket) const {
    return scatters ? bucket.flat.numel() / communicator.world_size() : bucket.flat.numel();
  }

  static bool has_masters(const GradientBucket& bucket, const torch::Tensor& parameter) {
    return bucket.flat.scalar_type() != parameter.scalar_type();
  }

  void add_plain(const GradientBucket& bucket) {
    for (const std::size_t member : bucket.members)
      slices[member] = {0, reducer.parameters()[member]};
    flats.emplace_back();
  }

  void add_flat(const GradientBucket& bucket, const std::vector<torch::Tensor>& values) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor all = torch::zeros_like(bucket.flat);
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      const torch::Tensor& value = values[bucket.members[i]];
      all.narrow(0, bucket.begins[i], value.numel()).view(value.sizes()).copy_(value);
    }
    const torch::Tensor& first = reducer.parameters()[bucket.members.front()];
    const bool masters = has_masters(bucket, first);
    Flat flat;
    flat.parameters = masters ? all.to(first.scalar_type()) : all;
    const torch::Tensor own = all.narrow(0, own_begin(bucket), own_size(bucket));
    // A copy, lest it keep the memory of what other ranks own.
    flat.masters = masters && scatters ? own.clone() : own;
    master_bytes += masters ? flat.masters.nbytes() : 0;
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      torch::Tensor parameter = reducer.parameters()[bucket.members[i]];
      parameter.set_data(
          flat.parameters.narrow(0, bucket.begins[i], parameter.numel()).view(parameter.sizes()));
      add_slice(bucket, i, flat.masters);
    }
    flats.push_back(std::move(flat));
  }

  void add_slice(const GradientBucket& bucket, std::size_t i, const torch::Tensor& masters) {
    const std::size_t member = bucket.members[i];
    const torch::Tensor& parameter = reducer.parameters()[member];
    const std::int64_t begin = own_begin(bucket);
    const Overlap own =
        overlap_of(bucket.begins[i], parameter.numel(), begin, begin + own_size(bucket));
    const std::int64_t at = own.size == 0 ? 0 : bucket.begins[i] + own.first - begin;
    torch::Tensor master = masters.narrow(0, at, own.size);
    torch::Tensor gradient = bucket.flat.narrow(0, begin + at, own.size);
    if (!scatters) {
      master = master.view(parameter.sizes());
      gradient = gradient.view(parameter.sizes());
    }
    master.mutable_grad() = gradient;
    slices[member] = {own.first, master};
  }

  const GradientReducer& reducer;
  Communicator& communicator;
  bool scatters;
  std::vector<Flat> flats;  // by bucket; of undefined tensors where nothing had to move
  std::vector<ParameterSlice> slices;
  std::vector<std::size_t> bucket_of;        // by parameter
  std::vector<std::unique_ptr<Work>> works;  // by bucket; null where nothing is under way
  std::size_t master_bytes = 0;
};

ParameterShards::ParameterShards(const GradientReducer& reducer, Communicator& communicator,
                                 const std::vector<torch::Tensor>& values)
    : state_(std::make_unique<State>(reducer, communicator)) {
  TORCH_CHECK(values.size() == reducer.parameters().size(), values.size(), " values for ",
              reducer.parameters().size(), " parameters");
  for (const GradientBucket& bucket : reducer.layout()) {
    const torch::Tensor& first = reducer.parameters()[bucket.members.front()];
    if (state_->scatters || State::has_masters(bucket, first)) {
      state_->add_flat(bucket, values);
    } else {
      state_->add_plain(bucket);
    }
  }
}

ParameterShards::~ParameterShards() = default;

const std::vector<ParameterSlice>& ParameterShards::slices() const { return state_->slices; }

void ParameterShards::publish() {
  const torch::NoGradGuard no_grad;
  // The parameters that the next forward pass reads first lie in the last buckets.
  for (std::size_t i = state_->flats.size(); i-- > 0;) {
    const State::Flat& flat = state_->flats[i];
    if (!flat.parameters.defined()) continue;
    const GradientBucket& bucket = state_->reducer.layout()[i];
    const torch::Tensor own =
        flat.parameters.narrow(0, state_->own_begin(bucket), state_->own_size(bucket));
    if (own.data_ptr() != flat.masters.data_ptr()) own.copy_(flat.masters);
    if (state_->scatters) {
      state_->works[i] = state_->communicator.all_gather(flat.parameters, own);
    }
  }
}

void ParameterShards::wait() {
  for (std::size_t parameter = 0; parameter < state_->slices.size(); ++parameter) {
    wait_for(parameter);
  }
}

void ParameterShards::wait_for(std::size_t parameter) {
  const std::unique_ptr<Work> work = std::move(state_->works[state_->bucket_of[parameter]]);
  if (work) work->wait();
}

torch::Tensor ParameterShards::whole(std::size_t parameter, const torch::Tensor& part) const {
  const torch::Tensor& shaped = state_->reducer.parameters()[parameter];
  const ParameterSlice& slice = state_->slices[parameter];
  TORCH_CHECK(part.numel() == slice.master.numel(), "a part of ", part.numel(),
              " elements for a slice of ", slice.master.numel());
  if (!state_->scatters) return part.view(shaped.sizes());
  const torch::NoGradGuard no_grad;
  torch::Tensor flat = torch::zeros({shaped.numel()}, part.options().requires_grad(false));
  flat.narrow(0, slice.first, part.numel()).copy_(part.flatten());
  state_->communicator.all_reduce(flat.view(bits_of(flat.scalar_type())))->wait();
  return flat.view(shaped.sizes());
}

torch::Tensor ParameterShards::part(std::size_t parameter, const torch::Tensor& whole) const {
  const ParameterSlice& slice = state_->slices[parameter];
  TORCH_CHECK(whole.numel() == state_->reducer.parameters()[parameter].numel(), "a whole of ",
              whole.numel(), " elements for a parameter of ",
              state_->reducer.parameters()[parameter].numel());
  return whole.flatten().narrow(0, slice.first, slice.master.numel()).view(slice.master.sizes());
}

std::size_t ParameterShards::master_bytes() const { return state_->master_bytes; }

}  // namespace tupelo

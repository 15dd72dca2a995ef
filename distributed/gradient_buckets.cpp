#include "distributed/gradient_buckets.h"

#include <algorithm>
#include <utility>

namespace tupelo {
namespace {

struct Draft {
  torch::TensorOptions options;
  std::vector<std::size_t> members;
  std::size_t bytes = 0;
};

// More than the vectors that kernels work in, unrolled.
constexpr std::int64_t kSliceUnit = 64;

std::int64_t filled_up(std::int64_t size, std::int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

bool same_kind(const torch::TensorOptions& a, const torch::TensorOptions& b) {
  return a.dtype() == b.dtype() && a.device() == b.device();
}

std::vector<Draft> draft_buckets(const std::vector<torch::Tensor>& parameters,
                                 std::size_t bucket_bytes) {
  std::vector<Draft> closed;
  std::vector<Draft> open;  // at most one per dtype and device
  for (std::size_t index = parameters.size(); index-- > 0;) {
    const auto& parameter = parameters[index];
    const auto options = torch::TensorOptions(parameter.dtype()).device(parameter.device());
    auto draft = std::find_if(open.begin(), open.end(),
                              [&](const Draft& each) { return same_kind(each.options, options); });
    const std::size_t bytes =
        static_cast<std::size_t>(parameter.numel()) * c10::elementSize(gradient_type(parameter));
    if (draft != open.end() && draft->bytes + bytes > bucket_bytes) {
      closed.push_back(std::move(*draft));
      open.erase(draft);
      draft = open.end();
    }
    if (draft == open.end()) draft = open.insert(open.end(), Draft{options, {}, 0});
    draft->members.push_back(index);
    draft->bytes += bytes;
  }
  std::move(open.begin(), open.end(), std::back_inserter(closed));
  std::stable_sort(closed.begin(), closed.end(), [](const Draft& a, const Draft& b) {
    return a.members.back() > b.members.back();
  });
  return closed;
}

}  // namespace

at::ScalarType gradient_type(const torch::Tensor& parameter) {
  const at::ScalarType type = parameter.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

std::vector<GradientBucket> place_gradients(const std::vector<torch::Tensor>& parameters,
                                            std::size_t bucket_bytes, int slices) {
  const std::int64_t unit = slices > 1 ? kSliceUnit : 1;
  std::vector<GradientBucket> buckets;
  for (auto& draft : draft_buckets(parameters, bucket_bytes)) {
    GradientBucket bucket;
    std::int64_t size = 0;
    for (const auto index : draft.members) {
      bucket.begins.push_back(size);
      size = filled_up(size + parameters[index].numel(), unit);
    }
    size = filled_up(size, unit * slices);
    const auto type = gradient_type(parameters[draft.members.front()]);
    bucket.flat = torch::zeros({size}, draft.options.dtype(type));
    bucket.members = std::move(draft.members);
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      const auto& parameter = parameters[bucket.members[i]];
      bucket.gradients.push_back(
          bucket.flat.narrow(0, bucket.begins[i], parameter.numel()).view(parameter.sizes()));
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace tupelo

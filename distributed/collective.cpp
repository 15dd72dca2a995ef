#include "distributed/collective.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tupelo {
namespace {

class CompletedWork : public Work {
 public:
  bool is_completed() const override { return true; }
  void wait() override {}
};

constexpr std::array kSupported = {torch::kFloat32, torch::kFloat64, torch::kBFloat16,
                                   torch::kFloat16, torch::kInt32,   torch::kInt64,
                                   torch::kUInt8};

ElementType element_type(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return ElementType::kFloat32;
    case torch::kFloat64:
      return ElementType::kFloat64;
    case torch::kBFloat16:
      return ElementType::kBFloat16;
    case torch::kFloat16:
      return ElementType::kFloat16;
    case torch::kInt32:
      return ElementType::kInt32;
    case torch::kInt64:
      return ElementType::kInt64;
    case torch::kUInt8:
      return ElementType::kUInt8;
    default:
      TORCH_CHECK(false, "no reduction for ", dtype);
  }
}

bool is_supported(torch::ScalarType dtype) {
  return std::find(kSupported.begin(), kSupported.end(), dtype) != kSupported.end();
}

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
  }
  return "unknown operation";
}

}  // namespace

std::string describe(const Collective& collective) {
  std::string text = name_of(collective.kind);
  if (collective.kind == CollectiveKind::kBarrier) return text;
  if (collective.kind == CollectiveKind::kBroadcast) {
    text += "(root " + std::to_string(collective.root) + ")";
  } else if (collective.kind != CollectiveKind::kAllGather) {
    text += std::string("(") + name_of(collective.op) + ")";
  }
  return text + " of " + std::to_string(collective.input.numel()) + " " +
         c10::toString(collective.input.scalar_type());
}

std::byte* bytes_of(const torch::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::size_t count_of(const torch::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

Reduction reduction_of(const Collective& collective) {
  const ElementType type = element_type(collective.input.scalar_type());
  return {type, type, collective.op};
}

std::string describe_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  }
  return text;
}

std::unique_ptr<Work> CollectiveCommunicator::all_reduce(torch::Tensor tensor, ReduceOp op) {
  check_tensor(tensor, "all_reduce");
  return start({CollectiveKind::kAllReduce, tensor, tensor, op});
}

std::unique_ptr<Work> CollectiveCommunicator::reduce_scatter(torch::Tensor output,
                                                             torch::Tensor input, ReduceOp op) {
  check_slices(input, output, "reduce_scatter");
  return start({CollectiveKind::kReduceScatter, std::move(input), std::move(output), op});
}

std::unique_ptr<Work> CollectiveCommunicator::all_gather(torch::Tensor output,
                                                         torch::Tensor input) {
  check_slices(output, input, "all_gather");
  return start({CollectiveKind::kAllGather, std::move(input), std::move(output)});
}

std::unique_ptr<Work> CollectiveCommunicator::broadcast(torch::Tensor tensor, int root) {
  check_tensor(tensor, "broadcast");
  TORCH_CHECK(root >= 0 && root < world_size(), "broadcast from rank ", root,
              ", but the ranks are 0 to ", world_size() - 1);
  return start({CollectiveKind::kBroadcast, tensor, tensor, ReduceOp::kSum, root});
}

void CollectiveCommunicator::barrier() { start({})->wait(); }

void CollectiveCommunicator::check_tensor(const torch::Tensor& tensor, const char* call) const {
  TORCH_CHECK(tensor.defined(), call, ": the tensor is undefined");
  TORCH_CHECK(is_supported(tensor.scalar_type()), call, ": a tensor of ", tensor.scalar_type(),
              "; supported are float32, float64, bfloat16, float16, int32, int64 and uint8");
  TORCH_CHECK(tensor.is_contiguous(), call, ": the tensor is not contiguous");
  TORCH_CHECK(accepts(tensor.device()), call, ": a tensor on ", tensor.device(), ", which the ",
              backend(), " backend cannot reach");
}

void CollectiveCommunicator::check_slices(const torch::Tensor& whole, const torch::Tensor& slice,
                                          const char* call) const {
  check_tensor(whole, call);
  check_tensor(slice, call);
  TORCH_CHECK(whole.scalar_type() == slice.scalar_type(), call,
              ": input and output differ in dtype: ", whole.scalar_type(), " and ",
              slice.scalar_type());
  TORCH_CHECK(whole.numel() == slice.numel() * world_size(), call, ": ", whole.numel(),
              " elements are not ", world_size(), " slices of ", slice.numel());
}

std::unique_ptr<Work> completed_work() { return std::make_unique<CompletedWork>(); }

}  // namespace tupelo

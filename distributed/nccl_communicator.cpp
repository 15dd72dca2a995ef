#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "distributed/backends.h"
#include "distributed/collective.h"
#include "distributed/group.h"
#include "distributed/nccl_handle.h"
#include "distributed/nccl_watchdog.h"
#include "distributed/runtime.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;

ncclDataType_t nccl_type(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return ncclFloat32;
    case torch::kFloat64:
      return ncclFloat64;
    case torch::kBFloat16:
      return ncclBfloat16;
    case torch::kFloat16:
      return ncclFloat16;
    case torch::kInt32:
      return ncclInt32;
    case torch::kInt64:
      return ncclInt64;
    case torch::kUInt8:
      return ncclUint8;
    default:
      TORCH_CHECK(false, "NCCL has no type for ", dtype);
  }
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kMin:
      return ncclMin;
  }
  TORCH_CHECK(false, "NCCL has no such reduction");
}

ncclResult_t call_nccl(const Collective& collective, ncclComm_t communicator, cudaStream_t stream) {
  const void* input = collective.input.const_data_ptr();
  void* output = collective.output.data_ptr();
  const auto input_count = static_cast<std::size_t>(collective.input.numel());
  const auto output_count = static_cast<std::size_t>(collective.output.numel());
  const auto type = nccl_type(collective.input.scalar_type());
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return ncclAllReduce(input, output, input_count, type, nccl_op(collective.op), communicator,
                           stream);
    case CollectiveKind::kReduceScatter:
      return ncclReduceScatter(input, output, output_count, type, nccl_op(collective.op),
                               communicator, stream);
    case CollectiveKind::kAllGather:
      return ncclAllGather(input, output, input_count, type, communicator, stream);
    case CollectiveKind::kBroadcast:
      return ncclBroadcast(input, output, input_count, type, collective.root, communicator, stream);
    case CollectiveKind::kBarrier:
      break;
  }
  return ncclInvalidArgument;
}

// Where the id is made and handed round. The last that is done with MPI, which must not be called
// while NCCL kernels are in flight.
std::string agree_on_id(const Runtime& runtime, CommunicatorOptions options) {
  const auto messenger = make_host_communicator(runtime, options);
  return messenger->broadcast(messenger->rank() == 0 ? NcclHandle::make_id() : std::string(), 0);
}

torch::Device checked_device(int device_index) {
  const int count = c10::cuda::device_count();
  if (device_index < 0 || device_index >= count) {
    throw std::invalid_argument("CUDA device " + std::to_string(device_index) +
                                " does not exist: this host has " + std::to_string(count) +
                                " devices, numbered from 0");
  }
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(device_index)};
}

class NcclWork : public Work {
 public:
  NcclWork(std::shared_ptr<StreamOperation> operation, std::shared_ptr<NcclWatchdog> watchdog,
           torch::Device device)
      : operation_(std::move(operation)), watchdog_(std::move(watchdog)), device_(device) {}

  bool is_completed() const override { return operation_->finished.has_passed(); }

  void wait() override {
    watchdog_->check();
    // A device's default stream is a name for that of the thread's current device.
    const c10::cuda::CUDAGuard guard(device_);
    operation_->finished.hold_back(c10::cuda::getCurrentCUDAStream(device_.index()));
  }

 private:
  std::shared_ptr<StreamOperation> operation_;
  std::shared_ptr<NcclWatchdog> watchdog_;
  torch::Device device_;
};

class NcclCommunicator : public CollectiveCommunicator {
 public:
  NcclCommunicator(const Runtime& runtime, int device_index, CommunicatorOptions options)
      : rank_(Group::of(options.members, runtime.rank(), runtime.world_size()).place),
        world_size_(Group::of(options.members, runtime.rank(), runtime.world_size()).size),
        timeout_(options.timeout),
        device_(checked_device(device_index)),
        exceptions_at_start_(std::uncaught_exceptions()),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {
    const c10::cuda::CUDAGuard guard(device_);
    const auto id = agree_on_id(runtime, options);
    handle_ = std::make_shared<NcclHandle>(id, rank_, world_size_, Clock::now() + timeout_);
    watchdog_ = std::make_shared<NcclWatchdog>(handle_, device_.index(), timeout_);
  }

  ~NcclCommunicator() override {
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    if (unwinding || !watchdog_->drain()) {
      handle_->abort();
    } else {
      handle_->finalize(Clock::now() + timeout_);
    }
  }

  std::string backend() const override { return "nccl"; }
  bool is_asynchronous() const override { return true; }
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  void barrier() override {
    all_reduce(torch::zeros({1}, torch::TensorOptions(torch::kInt32).device(device_)),
               ReduceOp::kSum)
        ->wait();
    c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    check_health();
  }

 private:
  torch::Device device() const override { return device_; }
  bool accepts(torch::Device tensor_device) const override { return tensor_device == device_; }
  void check_health() override { watchdog_->check(); }

  std::unique_ptr<Work> start(Collective collective) override {
    watchdog_->check();
    if (collective.input.numel() == 0) return completed_work();
    const c10::cuda::CUDAGuard guard(device_);
    auto operation = std::make_shared<StreamOperation>();
    operation->name = "nccl " + describe(collective) + " #" + std::to_string(next_sequence_++) +
                      " on rank " + std::to_string(rank_);
    try {
      put_into_stream(collective, *operation);
    } catch (...) {
      watchdog_->fail(std::current_exception());
      watchdog_->check();  // the first failure, of which this one may be an echo
      throw;
    }
    watchdog_->watch(operation);
    return std::make_unique<NcclWork>(std::move(operation), watchdog_, device_);
  }

  void put_into_stream(const Collective& collective, StreamOperation& operation) {
    StreamEvent tensors_ready;
    tensors_ready.record(c10::cuda::getCurrentCUDAStream(device_.index()));
    tensors_ready.hold_back(stream_);
    operation.started.record(stream_);
    // The allocator may hand the memory out again only after this stream is done with it.
    for (const auto& tensor : {collective.input, collective.output}) {
      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream_);
    }
    handle_->enqueue(
        operation.name,
        [&](ncclComm_t communicator) { return call_nccl(collective, communicator, stream_); },
        Clock::now() + timeout_);
    operation.finished.record(stream_);
  }

  const int rank_;
  const int world_size_;
  const std::chrono::milliseconds timeout_;
  const torch::Device device_;
  const int exceptions_at_start_;
  c10::cuda::CUDAStream stream_;
  std::uint64_t next_sequence_ = 0;
  std::shared_ptr<NcclHandle> handle_;
  std::shared_ptr<NcclWatchdog> watchdog_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const Runtime& runtime, int device_index,
                                                     CommunicatorOptions options) {
  return std::make_unique<NcclCommunicator>(runtime, device_index, options);
}

bool nccl_is_available() { return true; }

std::string nccl_version() {
  constexpr int kMajor = 10000, kMinor = 100;
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor) + "." +
         std::to_string(version % kMinor);
}

}  // namespace tupelo

// The functions of NCCL that Tupelo calls, between processes of one machine that hold emulated
// devices. As a real one that does not block, it takes calls over to a thread of its own: a call
// says ncclInProgress first. A process runs one collective at a time, so that ranks which begin
// those of two communicators in different orders wait for each other forever.
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/nccl_reduction.h"
#include "tests/emulated_gpu/nccl_segment.h"
#include "tests/emulated_gpu/report.h"
#include "tests/emulated_gpu/runtime_api.h"

namespace emulated_gpu {
namespace {

enum Kind { kAllReduce = 1, kReduceScatter, kAllGather, kBroadcast };

// Collectives of this process, one after the other in the order of their numbers.
class OneAtATime {
 public:
  std::uint64_t take_number() {
    const std::lock_guard lock(mutex_);
    return next_++;
  }
  // False when it is given up, which frees the next.
  bool wait_for_turn(std::uint64_t number, const std::function<bool()>& gives_up) {
    std::unique_lock lock(mutex_);
    while (number != serving_) {
      if (gives_up()) {
        given_up_.insert(number);
        return false;
      }
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    do ++serving_;
    while (given_up_.erase(serving_) > 0);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint64_t> given_up_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

// Whether collectives run in the order of the host's calls, or in that in which streams come to
// them.
bool keeps_order_of_calls() {
  const char* text = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return text != nullptr && std::strcmp(text, "1") == 0;
}

OneAtATime& turns() {
  static OneAtATime& one = *new OneAtATime;
  return one;
}

}  // namespace
}  // namespace emulated_gpu

using namespace emulated_gpu;

struct ncclComm {
  int rank = 0;
  int ranks = 1;
  int device = 0;
  std::unique_ptr<NcclSegment> segment;
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<int> running{0};
  std::string error;  // written before `state` says that there is one

  bool gives_up() const { return aborted; }
  void fail(ncclResult_t result, const std::string& why) {
    error = why;
    state = result;
  }
};

namespace {

struct Call {
  CallShape shape;
  const char* input;
  char* output;
  std::size_t input_bytes;
  std::size_t output_bytes;
};

// Moves a piece of a collective through the ranks' slots, which hold kSlot bytes each.
bool move_piece(ncclComm& comm, const Call& call, std::size_t begin, std::size_t bytes) {
  const auto type = static_cast<ncclDataType_t>(call.shape.type);
  const auto op = static_cast<ncclRedOp_t>(call.shape.op);
  const auto gives_up = [&] { return comm.gives_up(); };
  const auto inputs = [&](std::size_t count_of_slots) {
    std::vector<const char*> slots;
    for (std::size_t i = 0; i < count_of_slots; ++i)
      slots.push_back(comm.segment->slot(static_cast<int>(i)));
    return slots;
  };
  if (call.shape.kind == kReduceScatter) {
    // One receiver after another, whose piece all others send.
    for (int receiver = 0; receiver < comm.ranks; ++receiver) {
      std::memcpy(comm.segment->slot(comm.rank),
                  call.input + static_cast<std::size_t>(receiver) * call.output_bytes + begin,
                  bytes);
      if (!comm.segment->meet(gives_up)) return false;
      if (receiver == comm.rank) {
        reduce(type, inputs(static_cast<std::size_t>(comm.ranks)), call.output + begin,
               bytes / size_of(type), op);
      }
      if (!comm.segment->meet(gives_up)) return false;
    }
    return true;
  }
  std::memcpy(comm.segment->slot(comm.rank), call.input + begin, bytes);
  if (!comm.segment->meet(gives_up)) return false;
  switch (call.shape.kind) {
    case kAllReduce:
      reduce(type, inputs(static_cast<std::size_t>(comm.ranks)), call.output + begin,
             bytes / size_of(type), op);
      break;
    case kAllGather:
      for (int rank = 0; rank < comm.ranks; ++rank) {
        std::memcpy(call.output + static_cast<std::size_t>(rank) * call.input_bytes + begin,
                    comm.segment->slot(rank), bytes);
      }
      break;
    default:
      std::memcpy(call.output + begin, comm.segment->slot(call.shape.root), bytes);
  }
  return comm.segment->meet(gives_up);
}

bool run(ncclComm& comm, const Call& call) {
  const auto gives_up = [&] { return comm.gives_up(); };
  comm.segment->post(call.shape);
  if (!comm.segment->meet(gives_up)) return false;
  if (!comm.segment->all_posted_alike()) {
    comm.fail(ncclInvalidUsage, "ranks began different collectives");
    while (!comm.gives_up()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return false;
  }
  if (!comm.segment->meet(gives_up)) return false;
  const std::size_t bytes =
      call.shape.kind == kReduceScatter ? call.output_bytes : call.input_bytes;
  for (std::size_t begin = 0; begin < bytes; begin += NcclSegment::kSlot) {
    if (!move_piece(comm, call, begin, std::min(NcclSegment::kSlot, bytes - begin))) return false;
  }
  return true;
}

// Counts a thread or a piece of work of a communicator, as long as it is kept.
std::shared_ptr<void> running_in(ncclComm* comm) {
  ++comm->running;
  return {nullptr, [comm](void*) { --comm->running; }};
}

bool is_served(const CallShape& shape) {
  switch (shape.type) {
    case ncclUint8:
    case ncclInt32:
    case ncclInt64:
    case ncclFloat16:
    case ncclBfloat16:
    case ncclFloat32:
    case ncclFloat64:
      return shape.op == ncclSum || shape.op == ncclMax || shape.op == ncclMin;
    default:
      return false;
  }
}

// What is wrong with a call; null when nothing is.
const char* objection(const ncclComm& comm, const Call& call, const Stream& stream) {
  if (!is_served(call.shape)) return "a type or reduction that is not emulated";
  if (stream.recording()) return "a collective in a stream that is recorded, which is not emulated";
  if (stream.device() != comm.device || device_of(call.input) != comm.device ||
      device_of(call.output) != comm.device) {
    return "a stream or memory of another device than the communicator's";
  }
  return nullptr;
}

ncclResult_t begin(ncclComm* comm, const Call& call, cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  if (const char* wrong = objection(*comm, call, stream)) {
    comm->error = wrong;
    return ncclInvalidArgument;
  }
  ncclResult_t idle = ncclSuccess;
  if (comm->aborted || !comm->state.compare_exchange_strong(idle, ncclInProgress)) {
    return idle == ncclInProgress || comm->aborted ? ncclInvalidUsage : idle;
  }
  count("collectives");
  Call reached = call;
  reached.input = static_cast<const char*>(reachable(call.input));
  reached.output = static_cast<char*>(reachable(call.output));
  std::optional<std::uint64_t> number;
  if (keeps_order_of_calls()) number = turns().take_number();
  std::thread([comm, reached, number, &stream, running = running_in(comm)] {
    stream.enqueue([comm, reached, number, running] {
      const auto turn = number ? *number : turns().take_number();
      if (!turns().wait_for_turn(turn, [&] { return comm->gives_up(); })) return;
      if (!comm->aborted) run(*comm, reached);
      turns().leave();
    });
    ncclResult_t expected = ncclInProgress;
    comm->state.compare_exchange_strong(expected, ncclSuccess);
  }).detach();
  return ncclInProgress;
}

Call make_call(Kind kind, const void* input, void* output, std::size_t sent, std::size_t received,
               ncclDataType_t type, ncclRedOp_t op, int root) {
  return {{kind, type, op, root, sent},
          static_cast<const char*>(input),
          static_cast<char*>(output),
          sent * size_of(type),
          received * size_of(type)};
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::ifstream("/proc/sys/kernel/random/uuid").read(id->internal, 36);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess           ? "no error"
         : result == ncclInvalidUsage    ? "invalid usage"
         : result == ncclInvalidArgument ? "invalid argument"
                                         : "emulated NCCL failed";
}

const char* ncclGetLastError(ncclComm_t comm) { return comm == nullptr ? "" : comm->error.c_str(); }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config == nullptr || config->blocking != 0) return ncclInvalidUsage;  // not emulated
  auto* made = new ncclComm;
  made->rank = rank;
  made->ranks = ranks;
  made->device = current_device();
  note_context(made->device);
  *comm = made;
  std::thread([made, name = std::string(id.internal), running = running_in(made)] {
    try {
      made->segment = std::make_unique<NcclSegment>(name, made->rank, made->ranks);
      if (made->segment->meet([&] { return made->gives_up(); })) {
        made->segment->forget_name();
        made->state = ncclSuccess;
      }
    } catch (const std::exception& error) {
      made->fail(ncclSystemError, error.what());
    }
  }).detach();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->state;
  return ncclSuccess;
}

// The communicator itself stays, for threads that still look at it.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  while (comm->running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  comm->segment.reset();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  ncclResult_t idle = ncclSuccess;
  if (!comm->state.compare_exchange_strong(idle, ncclInProgress)) return idle;
  std::thread([comm] {
    while (comm->running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ncclResult_t expected = ncclInProgress;
    comm->state.compare_exchange_strong(expected, ncclSuccess);
  }).detach();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->segment.reset();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return begin(comm, make_call(kAllReduce, input, output, count, count, type, op, 0), stream);
}

ncclResult_t ncclReduceScatter(const void* input, void* output, std::size_t received,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  const std::size_t sent = received * static_cast<std::size_t>(comm->ranks);
  return begin(comm, make_call(kReduceScatter, input, output, sent, received, type, op, 0), stream);
}

ncclResult_t ncclAllGather(const void* input, void* output, std::size_t sent, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t received = sent * static_cast<std::size_t>(comm->ranks);
  return begin(comm, make_call(kAllGather, input, output, sent, received, type, ncclSum, 0),
               stream);
}

ncclResult_t ncclBroadcast(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return begin(comm, make_call(kBroadcast, input, output, count, count, type, ncclSum, root),
               stream);
}

}  // extern "C"

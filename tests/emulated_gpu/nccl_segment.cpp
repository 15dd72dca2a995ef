#include "tests/emulated_gpu/nccl_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace emulated_gpu {
namespace {

std::string folder() {
  const char* given = std::getenv("EMULATED_GPU_FOLDER");
  return given == nullptr ? "/dev/shm" : given;
}

}  // namespace

NcclSegment::NcclSegment(const std::string& name, int rank, int ranks)
    : file_(folder() + "/emulated-nccl-" + name),
      rank_(rank),
      ranks_(ranks),
      bytes_(sizeof(Shared) + static_cast<std::size_t>(ranks) * kSlot) {
  if (ranks > kMostRanks) throw std::runtime_error("more ranks than the emulator serves");
  const int descriptor = ::open(file_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  // New pages are zeros, which is how counters begin.
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes_)) != 0) {
    throw std::runtime_error("no shared memory for an emulated NCCL communicator");
  }
  void* mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (mapped == MAP_FAILED) throw std::runtime_error("mmap of an emulated NCCL communicator");
  memory_ = static_cast<char*>(mapped);
  shared_ = reinterpret_cast<Shared*>(memory_);
}

NcclSegment::~NcclSegment() { ::munmap(memory_, bytes_); }

void NcclSegment::forget_name() { ::unlink(file_.c_str()); }

bool NcclSegment::meet(const std::function<bool()>& gives_up) {
  const std::uint64_t mine = ++shared_->meetings[static_cast<std::size_t>(rank_)];
  for (int rank = 0; rank < ranks_; ++rank) {
    while (shared_->meetings[static_cast<std::size_t>(rank)] < mine) {
      if (gives_up()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

void NcclSegment::post(const CallShape& shape) {
  shared_->calls[static_cast<std::size_t>(rank_)] = shape;
}

bool NcclSegment::all_posted_alike() const {
  for (int rank = 1; rank < ranks_; ++rank) {
    if (shared_->calls[static_cast<std::size_t>(rank)] != shared_->calls[0]) return false;
  }
  return true;
}

char* NcclSegment::slot(int rank) const {
  return memory_ + sizeof(Shared) + static_cast<std::size_t>(rank) * kSlot;
}

}  // namespace emulated_gpu

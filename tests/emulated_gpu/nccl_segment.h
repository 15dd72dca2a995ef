// Memory that the ranks of one emulated NCCL communicator share, processes of one machine: a file
// in the folder that EMULATED_GPU_FOLDER names (/dev/shm).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace emulated_gpu {

// What ranks must have asked for alike. A real NCCL would hang, or mix up bytes.
struct CallShape {
  std::int32_t kind = 0;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t root = 0;
  std::uint64_t elements = 0;

  bool operator==(const CallShape&) const = default;
};

class NcclSegment {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kSlot = std::size_t{1} << 20;  // bytes

  // Maps what the ranks that know `name` share, which the first of them makes.
  NcclSegment(const std::string& name, int rank, int ranks);
  ~NcclSegment();
  NcclSegment(const NcclSegment&) = delete;
  NcclSegment& operator=(const NcclSegment&) = delete;

  // Returns when all ranks have come to their next meet(); false when `gives_up` said so before.
  bool meet(const std::function<bool()>& gives_up);
  // Once all have met, so that a killed rank leaves no file behind.
  void forget_name();
  void post(const CallShape& shape);
  // Between two meetings.
  bool all_posted_alike() const;
  char* slot(int rank) const;

 private:
  struct Shared {
    std::array<std::atomic<std::uint64_t>, kMostRanks> meetings;
    std::array<CallShape, kMostRanks> calls;
  };

  const std::string file_;
  const int rank_;
  const int ranks_;
  const std::size_t bytes_;
  char* memory_;
  Shared* shared_;
};

}  // namespace emulated_gpu

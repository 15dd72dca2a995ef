// What only several ranks can find out together. Everything here is collective.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "launcher/doctor_checks.h"

namespace tupelo {

// Whether what one rank writes into `folder` reaches the others: new files, and files that are
// replaced. Leaves nothing behind. `hosts` by rank.
Finding check_shared_folder(Communicator& communicator, const std::vector<std::string>& hosts,
                            const std::filesystem::path& folder);

struct Clocks {
  std::vector<double> offsets;  // seconds by which each rank's clock is ahead of rank 0's
  double uncertainty = 0;       // seconds
};
Clocks compare_clocks(Communicator& communicator);

struct AllReduceSpeed {
  std::int64_t bytes = 0;
  double seconds = 0;
  double bus_gigabytes_per_second = 0;  // 2 (n - 1) / n times the bytes, over the time
};

// Sums over ranks of float32 tensors whose sum is known, by size. Sizes that would take long are
// left out. The finding says whether every element was right on every rank.
struct AllReduceReport {
  Finding finding;
  std::vector<AllReduceSpeed> speeds;
};
AllReduceReport check_all_reduce(Communicator& communicator, torch::Device device,
                                 const std::vector<std::string>& hosts);

}  // namespace tupelo

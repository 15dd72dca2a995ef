// What a rank finds on its host: processors, limits, networks, space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace tupelo {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct NetworkAddress {
  std::string interface, address;
  bool operator==(const NetworkAddress&) const = default;
};

struct ProcessReport {
  int rank = 0, local_rank = 0, local_size = 1;
  std::string host;
  int threads = 1;          // computing threads of this rank
  int cores = 1;            // of the host
  int allowed_cores = 1;    // that this process is bound to
  int numa_nodes = 1;       // of the host
  int allowed_nodes = 1;    // that the allowed cores belong to
  int devices = 0;          // CUDA devices that this process sees
  bool infiniband = false;  // the host has such an adapter
  // Soft limits; kUnlimited.
  std::uint64_t open_files = kUnlimited, file_bytes = kUnlimited, address_bytes = kUnlimited,
                locked_bytes = kUnlimited;
  std::uint64_t shared_memory_free = 0;   // bytes of /dev/shm
  std::uint64_t folder_free = 0;          // bytes, where the shared folder lies
  std::vector<NetworkAddress> addresses;  // IPv4, of interfaces that are up, without loopback
  // Networks that MPI was told to use (OMPI_MCA_btl_tcp_if_include and its like); may be empty.
  std::string chosen_networks;
};

// Of this host's interfaces that are up, IPv4, without loopback.
std::vector<NetworkAddress> network_addresses();

// Fills all but rank, local_rank, local_size, host, threads and devices. What the host does not
// tell stays at its default. Throws std::system_error when `folder` cannot be asked.
ProcessReport report_process(const std::filesystem::path& folder);

std::string to_json(const ProcessReport& report);
// Of what to_json() wrote.
ProcessReport process_report_of(const std::string& json);

// Cores of a list such as "0-3,8": how many; nothing sensible yields 0.
std::vector<int> numbers_of_list(const std::string& list);

}  // namespace tupelo

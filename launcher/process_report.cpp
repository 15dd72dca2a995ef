#include "launcher/process_report.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace tupelo {
namespace {

namespace fs = std::filesystem;

std::uint64_t soft_limit(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return limit.rlim_cur;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void count_cores(ProcessReport& report) {
  report.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  report.allowed_cores = CPU_COUNT(&allowed);
  const auto online = numbers_of_list(first_line("/sys/devices/system/cpu/online"));
  if (!online.empty()) report.cores = static_cast<int>(online.size());
  const auto nodes = numbers_of_list(first_line("/sys/devices/system/node/online"));
  if (nodes.empty()) return;
  report.numa_nodes = static_cast<int>(nodes.size());
  report.allowed_nodes = 0;
  for (const int node : nodes) {
    const fs::path folder = "/sys/devices/system/node/node" + std::to_string(node);
    const auto cores = numbers_of_list(first_line(folder / "cpulist"));
    const auto is_allowed = [&](int core) {
      return core < CPU_SETSIZE && CPU_ISSET(core, &allowed);
    };
    report.allowed_nodes += std::any_of(cores.begin(), cores.end(), is_allowed) ? 1 : 0;
  }
}

std::string chosen_networks() {
  for (const char* variable :
       {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude", "UCX_NET_DEVICES"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr) return value;
  }
  return {};
}

}  // namespace

std::vector<NetworkAddress> network_addresses() {
  std::vector<NetworkAddress> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return result;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const bool up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    result.push_back({each->ifa_name, text.data()});
  }
  return result;
}

std::vector<int> numbers_of_list(const std::string& list) {
  constexpr int kMost = 1 << 16;
  std::vector<int> numbers;
  std::stringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const long first = std::strtol(part.c_str(), &end, 10);
    if (end == part.c_str()) continue;
    const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
    for (long number = std::max(0L, first); number <= std::min<long>(last, kMost); ++number) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

ProcessReport report_process(const fs::path& folder) {
  ProcessReport report;
  count_cores(report);
  report.open_files = soft_limit(RLIMIT_NOFILE);
  report.file_bytes = soft_limit(RLIMIT_FSIZE);
  report.address_bytes = soft_limit(RLIMIT_AS);
  report.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
  std::error_code ignored;
  report.infiniband = fs::exists("/sys/class/infiniband", ignored) &&
                      !fs::is_empty("/sys/class/infiniband", ignored);
  report.shared_memory_free = fs::space("/dev/shm", ignored).available;
  report.folder_free = fs::space(folder).available;
  report.addresses = network_addresses();
  report.chosen_networks = chosen_networks();
  return report;
}

std::string to_json(const ProcessReport& report) {
  nlohmann::ordered_json addresses = nlohmann::ordered_json::array();
  for (const NetworkAddress& each : report.addresses) {
    addresses.push_back({{"interface", each.interface}, {"address", each.address}});
  }
  const nlohmann::ordered_json object = {{"rank", report.rank},
                                         {"host", report.host},
                                         {"local_rank", report.local_rank},
                                         {"local_size", report.local_size},
                                         {"threads", report.threads},
                                         {"cores", report.cores},
                                         {"allowed_cores", report.allowed_cores},
                                         {"numa_nodes", report.numa_nodes},
                                         {"allowed_nodes", report.allowed_nodes},
                                         {"devices", report.devices},
                                         {"infiniband", report.infiniband},
                                         {"open_files", report.open_files},
                                         {"file_bytes", report.file_bytes},
                                         {"address_bytes", report.address_bytes},
                                         {"locked_bytes", report.locked_bytes},
                                         {"shared_memory_free", report.shared_memory_free},
                                         {"folder_free", report.folder_free},
                                         {"addresses", addresses},
                                         {"chosen_networks", report.chosen_networks}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ProcessReport process_report_of(const std::string& json) {
  const auto object = nlohmann::json::parse(json);
  ProcessReport report;
  const auto take = [&](const char* name, auto& field) { object.at(name).get_to(field); };
  take("rank", report.rank);
  take("host", report.host);
  take("local_rank", report.local_rank);
  take("local_size", report.local_size);
  take("threads", report.threads);
  take("cores", report.cores);
  take("allowed_cores", report.allowed_cores);
  take("numa_nodes", report.numa_nodes);
  take("allowed_nodes", report.allowed_nodes);
  take("devices", report.devices);
  take("infiniband", report.infiniband);
  take("open_files", report.open_files);
  take("file_bytes", report.file_bytes);
  take("address_bytes", report.address_bytes);
  take("locked_bytes", report.locked_bytes);
  take("shared_memory_free", report.shared_memory_free);
  take("folder_free", report.folder_free);
  take("chosen_networks", report.chosen_networks);
  for (const auto& each : object.at("addresses")) {
    report.addresses.push_back({each.at("interface"), each.at("address")});
  }
  return report;
}

}  // namespace tupelo

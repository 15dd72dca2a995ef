#include "launcher/doctor_checks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "launcher/console.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Result = Finding::Result;
using Reports = std::vector<ProcessReport>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

std::string size_text(std::uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  if (bytes >= kGiB) return grouped(static_cast<std::int64_t>(bytes / kGiB)) + " GiB";
  return grouped(static_cast<std::int64_t>(bytes / kMiB)) + " MiB";
}

std::string number(int value) { return std::to_string(value); }

std::string on_host(const ProcessReport& report) { return " on " + report.host; }

// The rank with the least of something.
const ProcessReport& least(const Reports& reports,
                           const std::function<std::uint64_t(const ProcessReport&)>& amount) {
  return *std::min_element(reports.begin(), reports.end(), [&](const auto& one, const auto& other) {
    return amount(one) < amount(other);
  });
}

const ProcessReport* first_such(const Reports& reports,
                                const std::function<bool(const ProcessReport&)>& is_such) {
  const auto found = std::find_if(reports.begin(), reports.end(), is_such);
  return found == reports.end() ? nullptr : &*found;
}

Finding check_ranks(const Reports& reports) {
  std::map<std::string, int> hosts;
  for (const ProcessReport& report : reports) ++hosts[report.host];
  const ProcessReport& first = reports.front();
  Finding finding{"ranks", Result::kOk,
                  number(static_cast<int>(reports.size())) + " on " +
                      number(static_cast<int>(hosts.size())) +
                      (hosts.size() == 1 ? " host" : " hosts"),
                  ""};
  const auto* other = first_such(
      reports, [&](const auto& report) { return report.local_size != first.local_size; });
  if (other == nullptr) return finding;
  finding.result = Result::kWarning;
  finding.found = number(first.local_size) + on_host(first) + ", but " + number(other->local_size) +
                  on_host(*other);
  finding.advice = "give every host as many ranks (slots= of the hostfile, --map-by ppr:N:node)";
  return finding;
}

Finding check_devices(const Reports& reports) {
  const ProcessReport& first = reports.front();
  Finding finding{"devices", Result::kOk, "", ""};
  if (first.devices == 0) {
    finding.found = "no CUDA device is visible: computing on processors";
  } else {
    finding.found = number(first.devices) + " CUDA on each host, one per rank";
  }
  if (const auto* other = first_such(
          reports, [&](const auto& report) { return report.devices != first.devices; })) {
    return {"devices", Result::kFailed,
            number(first.devices) + " CUDA devices" + on_host(first) + ", but " +
                number(other->devices) + on_host(*other),
            "look at nvidia-smi there, and at CUDA_VISIBLE_DEVICES"};
  }
  const bool many = reports.size() > 1;
  const auto* odd = first_such(reports, [&](const auto& report) {
    return report.devices > 0 && many && report.devices != report.local_size;
  });
  if (odd == nullptr) return finding;
  return {"devices", Result::kFailed,
          number(odd->local_size) + " ranks for " + number(odd->devices) + " CUDA devices" +
              on_host(*odd),
          "start one rank per device, or name those to use in CUDA_VISIBLE_DEVICES"};
}

Finding check_cores(const Reports& reports) {
  const ProcessReport& first = reports.front();
  if (const auto* bound = first_such(
          reports, [](const auto& report) { return report.threads > report.allowed_cores; })) {
    return {"cores", Result::kWarning,
            "rank " + number(bound->rank) + on_host(*bound) + " computes with " +
                number(bound->threads) + " threads but is bound to " +
                number(bound->allowed_cores) + (bound->allowed_cores == 1 ? " core" : " cores"),
            "bind wider (mpirun --bind-to none, or --map-by socket:PE=" + number(bound->threads) +
                "; srun --cpus-per-task=" + number(bound->threads) + ")"};
  }
  if (const auto* crowded = first_such(reports, [](const auto& report) {
        return report.threads * report.local_size > report.cores;
      })) {
    return {"cores", Result::kWarning,
            number(crowded->local_size) + " ranks of " + number(crowded->threads) + " threads" +
                on_host(*crowded) + ", which has " + number(crowded->cores) + " cores",
            "start fewer ranks there, or set train.threads or OMP_NUM_THREADS lower"};
  }
  return {"cores", Result::kOk,
          number(first.cores) + on_host(first) + ", " + number(first.threads) +
              " threads for each of its ranks",
          ""};
}

Finding check_numa(const Reports& reports) {
  const ProcessReport& first = reports.front();
  const auto* wide = first_such(reports, [](const auto& report) {
    return report.numa_nodes > 1 && report.local_size >= report.numa_nodes &&
           report.allowed_nodes > 1;
  });
  if (wide != nullptr) {
    return {"numa", Result::kWarning,
            "rank " + number(wide->rank) + on_host(*wide) + " may run on " +
                number(wide->allowed_nodes) + " of " + number(wide->numa_nodes) +
                " memory nodes, and its memory lie on any of them",
            "bind each rank to one (mpirun --map-by numa --bind-to numa)"};
  }
  return {"numa", Result::kOk,
          number(first.numa_nodes) + (first.numa_nodes == 1 ? " memory node" : " memory nodes") +
              on_host(first),
          ""};
}

Finding check_limits(const Reports& reports) {
  const auto world = static_cast<std::uint64_t>(reports.size());
  // Connections to every rank, shards of a corpus, and what the libraries open.
  const std::uint64_t needed = 512 + 4 * world;
  const ProcessReport& files = least(reports, [](const auto& report) { return report.open_files; });
  if (files.open_files < needed) {
    return {"limits", Result::kFailed,
            "a process may open " + std::to_string(files.open_files) + " files" + on_host(files) +
                ", which is less than " + std::to_string(needed),
            "raise it: ulimit -n 65536, or nofile in /etc/security/limits.conf"};
  }
  const ProcessReport& file = least(reports, [](const auto& report) { return report.file_bytes; });
  if (file.file_bytes != kUnlimited) {
    return {"limits", file.file_bytes < kGiB ? Result::kFailed : Result::kWarning,
            "a file may not grow beyond " + size_text(file.file_bytes) + on_host(file),
            "raise it for checkpoints: ulimit -f unlimited"};
  }
  const ProcessReport& space =
      least(reports, [](const auto& report) { return report.address_bytes; });
  if (space.address_bytes != kUnlimited) {
    return {"limits", Result::kWarning,
            "a process may address " + size_text(space.address_bytes) + on_host(space),
            "a model and its buffers may need more: ulimit -v unlimited"};
  }
  if (const auto* locked = first_such(reports, [](const auto& report) {
        return report.infiniband && report.locked_bytes != kUnlimited;
      })) {
    return {"limits", Result::kWarning,
            "a process may lock " + size_text(locked->locked_bytes) + " of memory" +
                on_host(*locked) + ", which has InfiniBand",
            "lift it, or transfers are slow or fail: ulimit -l unlimited"};
  }
  return {"limits", Result::kOk,
          files.open_files == kUnlimited ? "none on open files"
                                         : std::to_string(files.open_files) + " open files",
          ""};
}

// An address that two hosts both have leads to neither of them; bridges of containers and virtual
// machines have such.
Finding check_networks(const Reports& reports) {
  std::map<std::string, std::pair<const ProcessReport*, std::string>> owners;
  std::set<std::string> interfaces;
  for (const ProcessReport& report : reports) {
    for (const NetworkAddress& each : report.addresses) {
      interfaces.insert(each.interface);
      const auto [owner, is_new] = owners.try_emplace(each.address, &report, each.interface);
      if (is_new || owner->second.first->host == report.host || !report.chosen_networks.empty()) {
        continue;
      }
      return {"networks", Result::kFailed,
              "address " + each.address + " belongs to " + owner->second.second +
                  on_host(*owner->second.first) + " and to " + each.interface + on_host(report),
              "name the network that joins the hosts: --mca btl_tcp_if_include NAME --mca "
              "oob_tcp_if_include NAME"};
    }
  }
  std::string found;
  for (const std::string& name : interfaces) found += (found.empty() ? "" : ", ") + name;
  const std::string& chosen = reports.front().chosen_networks;
  if (!chosen.empty()) found += "; MPI was told to use " + chosen;
  return {"networks", Result::kOk, found.empty() ? "only loopback" : found, ""};
}

Finding check_shared_memory(const Reports& reports) {
  const ProcessReport& tight = least(reports, [](const auto& report) {
    return report.shared_memory_free / static_cast<std::uint64_t>(report.local_size);
  });
  const auto ranks = static_cast<std::uint64_t>(tight.local_size);
  const std::string found =
      size_text(tight.shared_memory_free) + " free in /dev/shm" + on_host(tight);
  if (tight.local_size > 1 && tight.shared_memory_free < 64 * kMiB * ranks) {
    return {"shared memory", Result::kFailed,
            found + ", for " + number(tight.local_size) + " ranks",
            "remove what is left there, or give the container more (--shm-size 1g)"};
  }
  return {"shared memory", Result::kOk, found, ""};
}

Finding check_disk(const Reports& reports) {
  const ProcessReport& tight =
      least(reports, [](const auto& report) { return report.folder_free; });
  Finding finding{"free disk", Result::kOk,
                  size_text(tight.folder_free) + " in the shared folder" + on_host(tight), ""};
  if (tight.folder_free >= 10 * kGiB) return finding;
  finding.result = tight.folder_free < kGiB ? Result::kFailed : Result::kWarning;
  finding.advice =
      "a base-size model and its optimizer take 1.5 GiB for each checkpoint: make room";
  return finding;
}

}  // namespace

Findings check_reports(const Reports& reports) {
  return {check_ranks(reports),         check_devices(reports), check_cores(reports),
          check_numa(reports),          check_limits(reports),  check_networks(reports),
          check_shared_memory(reports), check_disk(reports)};
}

Finding check_links(const std::vector<LinkTime>& links) {
  constexpr double kFactor = 4;
  if (links.empty()) return {"links", Result::kOk, "one rank: none to measure", ""};
  std::vector<double> times;
  for (const LinkTime& link : links) times.push_back(link.seconds);
  std::sort(times.begin(), times.end());
  const double usual = times[(times.size() - 1) / 4];
  std::map<std::string, int> ends;
  std::string slow;
  int count = 0;
  for (const LinkTime& link : links) {
    if (link.seconds <= kFactor * usual) continue;
    ++count;
    ++ends[link.first];
    ++ends[link.second];
    if (count <= 4) {
      slow += (count > 1 ? ", " : "") + link.first + " - " + link.second + " (" +
              significant(link.seconds / usual, 2) + " times)";
    }
  }
  if (count == 0) {
    return {"links", Result::kOk,
            number(static_cast<int>(links.size())) +
                (links.size() == 1 ? " pair" : " pairs, none much slower than the others"),
            ""};
  }
  if (count > 4) slow += " and " + number(count - 4) + " more";
  std::string advice = "look at cable, port and driver of what they share";
  for (const auto& [end, times_named] : ends) {
    if (count > 1 && times_named == count)
      advice = "all of them end at " + end + ": look at its cable, port and driver";
  }
  return {"links", Result::kFailed, "slower than the others: " + slow, advice};
}

Finding check_clocks(const std::vector<std::string>& hosts, const std::vector<double>& offsets,
                     double uncertainty) {
  const auto worst = std::max_element(offsets.begin(), offsets.end(), [](double one, double other) {
    return std::abs(one) < std::abs(other);
  });
  const double skew = std::max(0.0, std::abs(*worst) - uncertainty);
  const std::string& host = hosts[static_cast<std::size_t>(worst - offsets.begin())];
  if (skew < 0.1) {
    return {"clocks", Result::kOk,
            "apart by less than " + significant(skew + uncertainty + 5e-4, 1) + " s", ""};
  }
  return {"clocks", skew < 1 ? Result::kWarning : Result::kFailed,
          "the clock of " + host + " is " + significant(std::abs(*worst), 2) + " s " +
              (*worst > 0 ? "ahead of" : "behind") + " that of " + hosts.front(),
          "let chrony or ntpd keep time on every host: times of logs and files would mislead"};
}

}  // namespace tupelo

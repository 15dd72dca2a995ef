#include "launcher/rank_map.h"

#include <map>

namespace tupelo {
namespace {

// Ascending numbers as "0-3, 8".
std::string ranges(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t end = at;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text.append(text.empty() ? "" : ", ").append(std::to_string(numbers[at]));
    if (end > at) text.append("-").append(std::to_string(numbers[end]));
    at = end + 1;
  }
  return text;
}

}  // namespace

std::vector<std::string> rank_map(const std::vector<std::string>& hosts, bool on_cuda,
                                  std::size_t most) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::size_t>> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    auto& of_host = ranks[hosts[rank]];
    if (of_host.empty()) order.push_back(hosts[rank]);
    of_host.push_back(rank);
  }
  std::vector<std::string> lines;
  for (const std::string& host : order) {
    if (lines.size() == most) {
      lines.push_back("and " + std::to_string(order.size() - most) + " more hosts");
      break;
    }
    const auto& of_host = ranks[host];
    std::string line = host;
    line += of_host.size() == 1 ? ": rank " : ": ranks ";
    line += ranges(of_host);
    if (on_cuda) {
      line += " on cuda:0";
      if (of_host.size() > 1) line.append("-").append(std::to_string(of_host.size() - 1));
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace tupelo

#include "distributed/topology.h"

#include <algorithm>
#include <map>

namespace tupelo {

Topology::Topology(const std::vector<int>& host_of_rank, int rank) : rank_(rank) {
  std::map<int, int> index_of;
  for (std::size_t each = 0; each < host_of_rank.size(); ++each) {
    const auto next = static_cast<int>(hosts_.size());
    const auto [found, is_new] = index_of.emplace(host_of_rank[each], next);
    if (is_new) hosts_.emplace_back();
    auto& ranks = hosts_[static_cast<std::size_t>(found->second)];
    places_.push_back({found->second, static_cast<int>(ranks.size())});
    ranks.push_back(static_cast<int>(each));
  }
  const auto smallest =
      std::min_element(hosts_.begin(), hosts_.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  courier_count_ = static_cast<int>(smallest->size());
}

bool Topology::has_shared_host() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& ranks) { return ranks.size() > 1; });
}

std::vector<int> Topology::peers() const {
  std::vector<int> ranks;
  for (const auto& host : hosts_) {
    if (own_place() < static_cast<int>(host.size())) {
      ranks.push_back(host[static_cast<std::size_t>(own_place())]);
    }
  }
  return ranks;
}

}  // namespace tupelo

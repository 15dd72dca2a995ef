#include "launcher/shard_groups.h"

#include <cstddef>
#include <map>
#include <stdexcept>

namespace tupelo {

NodeGroups node_groups(const std::vector<int>& host_of_rank, const std::vector<std::string>& hosts,
                       int rank) {
  std::map<int, std::vector<int>> ranks_of_host;
  for (std::size_t each = 0; each < host_of_rank.size(); ++each) {
    ranks_of_host[host_of_rank[each]].push_back(static_cast<int>(each));
  }
  const std::vector<int>& first = ranks_of_host.begin()->second;
  NodeGroups groups;
  groups.neighbours = ranks_of_host.at(host_of_rank[static_cast<std::size_t>(rank)]);
  for (const auto& [host, ranks] : ranks_of_host) {
    if (ranks.size() == first.size()) continue;
    const auto name = [&](const std::vector<int>& of) {
      return hosts[static_cast<std::size_t>(of.front())];
    };
    throw std::invalid_argument(
        "train.shard-optimizer node needs equally many ranks on every host, but " + name(first) +
        " runs " + std::to_string(first.size()) + " and " + name(ranks) + " " +
        std::to_string(ranks.size()) + "; valid here: none, world");
  }
  std::size_t place = 0;
  while (groups.neighbours[place] != rank) ++place;
  for (const auto& [host, ranks] : ranks_of_host) groups.peers.push_back(ranks[place]);
  return groups;
}

}  // namespace tupelo

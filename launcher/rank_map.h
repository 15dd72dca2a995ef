// Which ranks run where, for a person.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// One line per host in the order of its first rank: "node1: ranks 0-3 on cuda:0-3". `hosts` by
// rank. After `most` hosts a line says how many more there are.
std::vector<std::string> rank_map(const std::vector<std::string>& hosts, bool on_cuda,
                                  std::size_t most = 16);

}  // namespace tupelo

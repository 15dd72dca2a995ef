// Which ranks stand for ranks of one host in a test.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace tupelo::testing {

// A host's number, by rank.
using Placement = std::vector<int>;

inline std::string describe(const Placement& placement) {
  std::string text;
  for (const int host : placement) {
    text.append(text.empty() ? "" : " ").append(std::to_string(host));
  }
  return text;
}

// One host, equal and unequal ones, each rank on its own, and ranks that take turns.
inline std::vector<Placement> placements_of(int world_size) {
  std::set<Placement> all;
  const auto add = [&](auto host_of) {
    Placement placement;
    for (int rank = 0; rank < world_size; ++rank) placement.push_back(host_of(rank));
    all.insert(placement);
  };
  add([](int) { return 0; });
  add([&](int rank) { return rank * 2 / world_size; });
  add([](int rank) { return rank % 2; });
  add([](int rank) { return std::min(rank, 1); });
  add([&](int rank) { return std::min(rank, world_size - 2); });
  add([](int rank) { return rank; });
  return {all.begin(), all.end()};
}

// Those of several shared hosts that differ most, for suites of many tests.
inline std::vector<Placement> few_placements_of(int world_size) {
  std::set<Placement> all;
  for (const bool take_turns : {false, true}) {
    Placement placement;
    for (int rank = 0; rank < world_size; ++rank) {
      placement.push_back(take_turns ? rank % 2 : rank * 2 / world_size);
    }
    all.insert(placement);
  }
  return {all.begin(), all.end()};
}

}  // namespace tupelo::testing

// Repeated measurements of one thing.
#pragma once

#include <algorithm>
#include <vector>

namespace tupelo::bench {

struct Samples {
  std::vector<double> values;

  double min() const { return *std::min_element(values.begin(), values.end()); }
  double median() const {
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

}  // namespace tupelo::bench

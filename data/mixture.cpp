#include "data/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "data/keyed_permutation.h"

namespace tupelo {
namespace {

__extension__ using Wide = unsigned __int128;  // of GCC and Clang

constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;
// With two samples of each part in every block, rounding takes none back.
constexpr double kLeastShare = 2.0 / static_cast<double>(Mixture::kBlock);

void check_weights(const std::vector<double>& weights, double sum) {
  if (weights.empty()) throw std::invalid_argument("a mixture needs at least one corpus");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string which = "weight " + std::to_string(i + 1) + " of the mixture";
    if (!(weights[i] > 0.0) || !std::isfinite(weights[i])) {
      throw std::invalid_argument(which + " is not a positive number");
    }
    if (weights[i] < kLeastShare * sum) {
      throw std::invalid_argument(which +
                                  " is less than 1/2048 of the whole; leave it out, or raise it");
    }
  }
}

}  // namespace

Mixture::Mixture(const std::vector<double>& weights, std::uint64_t seed) : seed_(seed) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  check_weights(weights, sum);
  double so_far = 0;
  for (const double weight : weights) {
    so_far += weight;
    ends_.push_back(static_cast<std::uint64_t>(so_far / sum * static_cast<double>(kWhole)));
  }
  ends_.back() = kWhole;
}

std::uint64_t Mixture::up_to(std::size_t part, std::uint64_t blocks) const {
  return static_cast<std::uint64_t>(Wide{blocks} * kBlock * ends_[part] / kWhole);
}

Mixture::Draw Mixture::draw(std::uint64_t sample) const {
  if (parts() == 1) return {0, sample};
  const std::uint64_t block = sample / kBlock;
  const std::uint64_t place = KeyedPermutation(kBlock, seed_, block)(sample % kBlock);
  std::size_t part = 0;
  while (up_to(part, block + 1) - up_to(part, block) <= place) ++part;
  const std::uint64_t first = before(part, block + 1) - before(part, block);
  return {part, up_to(part, block) - before(part, block) + place - first};
}

std::uint64_t Mixture::drawn(std::size_t part, std::uint64_t samples) const {
  if (parts() == 1) return samples;
  const std::uint64_t blocks = samples / kBlock;
  std::uint64_t count = up_to(part, blocks) - before(part, blocks);
  for (std::uint64_t sample = blocks * kBlock; sample < samples; ++sample) {
    count += draw(sample).part == part;
  }
  return count;
}

std::vector<double> mixture_by_size(const std::vector<std::uint64_t>& tokens, double exponent) {
  std::vector<double> weights;
  for (const std::uint64_t count : tokens) {
    weights.push_back(std::pow(static_cast<double>(count), exponent));
  }
  return weights;
}

}  // namespace tupelo

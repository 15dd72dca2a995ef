#include "data/mixture.h"

#include <algorithm>
#include <charconv>
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

// By size to a power, unless there are weights.
struct MixtureText {
  double exponent = 1;
  std::vector<double> weights;
};

double parse_positive(const std::string& text, double most, const std::string& mixture) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= most) {
    return value;
  }
  throw std::invalid_argument(
      "'" + mixture + "' is not tokens, tokens^A with A from 0 to 1, or weights such as 0.7,0.3");
}

MixtureText parse_mixture(const std::string& text) {
  MixtureText mixture;
  if (text == "tokens") return mixture;
  const std::string power = "tokens^";
  if (text.starts_with(power)) {
    mixture.exponent = parse_positive(text.substr(power.size()), 1, text);
    return mixture;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    mixture.weights.push_back(parse_positive(text.substr(begin, end - begin), 1e9, text));
    begin = end + 1;
  }
  check_weights(mixture.weights,
                std::accumulate(mixture.weights.begin(), mixture.weights.end(), 0.0));
  return mixture;
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

std::vector<Mixture::Draw> Mixture::block(std::uint64_t block) const {
  std::vector<std::uint64_t> ends, next;  // of each part: its places in the block, its next index
  for (std::size_t part = 0; part < parts(); ++part) {
    ends.push_back(up_to(part, block + 1) - up_to(part, block));
    next.push_back(up_to(part, block) - before(part, block));
  }
  const KeyedPermutation order(kBlock, seed_, block);
  std::vector<Draw> draws;
  draws.reserve(kBlock);
  for (std::uint64_t sample = 0; sample < kBlock; ++sample) {
    const std::uint64_t place = order(sample);
    const auto part =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
    draws.push_back({part, next[part]++});
  }
  return draws;
}

std::vector<std::uint64_t> Mixture::drawn(std::uint64_t samples) const {
  if (parts() == 1) return {samples};
  const std::uint64_t blocks = samples / kBlock;
  std::vector<std::uint64_t> counts;
  for (std::size_t part = 0; part < parts(); ++part) {
    counts.push_back(up_to(part, blocks) - before(part, blocks));
  }
  if (samples % kBlock == 0) return counts;
  const std::vector<Draw> last = block(blocks);
  for (std::uint64_t i = 0; i < samples % kBlock; ++i) ++counts[last[i].part];
  return counts;
}

std::vector<double> mixture_weights(const std::string& mixture,
                                    const std::vector<std::uint64_t>& tokens) {
  const MixtureText parsed = parse_mixture(mixture);
  if (parsed.weights.empty()) {
    std::vector<double> weights;
    for (const std::uint64_t count : tokens) {
      weights.push_back(std::pow(static_cast<double>(count), parsed.exponent));
    }
    return weights;
  }
  if (parsed.weights.size() != tokens.size()) {
    throw std::invalid_argument("'" + mixture + "' has " + std::to_string(parsed.weights.size()) +
                                " weights for " + std::to_string(tokens.size()) + " corpora");
  }
  return parsed.weights;
}

void check_mixture(const std::string& mixture) { parse_mixture(mixture); }

}  // namespace tupelo

#include "data/span_law.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace tupelo {
namespace {

constexpr std::int64_t kMostWords = 64;

void check_length(const char* what, std::int64_t words) {
  if (words >= 1 && words <= kMostWords) return;
  throw std::invalid_argument(std::string("the longest ") + what + " must have 1 to " +
                              std::to_string(kMostWords) + " words, not " + std::to_string(words));
}

// SpanBERT's: a geometric law, cut off and scaled up to 1.
std::vector<double> geometric_weights(const DataOptions& options) {
  check_length("span", options.span_words);
  const double end = options.span_probability;
  if (!(end > 0 && end <= 1)) {
    throw std::invalid_argument("the probability that a span ends must be above 0 and at most 1");
  }
  std::vector<double> weights;
  double weight = end;
  for (std::int64_t n = 1; n <= options.span_words; ++n, weight *= 1 - end) {
    weights.push_back(weight);
  }
  return weights;
}

std::vector<double> ngram_weights(const DataOptions& options) {
  check_length("n-gram", options.ngram_words);
  std::vector<double> weights;
  for (std::int64_t n = 1; n <= options.ngram_words; ++n) {
    weights.push_back(1 / static_cast<double>(n));
  }
  return weights;
}

std::vector<double> length_weights(const DataOptions& options) {
  if (options.masking == Masking::kSpan) return geometric_weights(options);
  if (options.masking == Masking::kNgram) return ngram_weights(options);
  return {1};
}

// [n]: P(length > n).
std::vector<double> survival(const std::vector<double>& weights) {
  std::vector<double> above(weights.size());
  double sum = 0;
  for (std::size_t n = weights.size(); n-- > 0;) above[n] = sum += weights[n];
  for (double& value : above) value /= sum;
  return above;
}

}  // namespace

SpanLaw::SpanLaw(const DataOptions& options) {
  const std::vector<double> above = survival(length_weights(options));
  for (const double probability : above) {
    length_above_.push_back(static_cast<std::uint64_t>(std::llround(std::ldexp(probability, 32))));
  }
}

}  // namespace tupelo

#include "data/cleaning/near_duplicates.h"

#include <array>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::size_t kGram = 5;
constexpr std::size_t kLeastGrams = 100;
constexpr std::size_t kBins = std::size_t{kBands} * kRows;
constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// The least hash of the grams that fall into each bin.
struct Signature {
  std::array<std::uint64_t, kBins> bins;
  std::size_t grams = 0;

  explicit Signature(std::string_view text) {
    bins.fill(kEmpty);
    std::array<std::uint64_t, kGram> last = {};
    std::size_t characters = 0;
    for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
      const Utf8Character character = read_utf8(at, end);
      at += character.bytes;
      if (character.code_point <= ' ' || character.code_point == 0x3000) continue;
      last[characters++ % kGram] = character.code_point;
      if (characters >= kGram) add_gram(last, characters);
    }
  }

 private:
  void add_gram(const std::array<std::uint64_t, kGram>& last, std::size_t characters) {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < kGram; ++i) {
      hash = mix(hash * 0x9E3779B97F4A7C15u + last[(characters + i) % kGram] + 1);
    }
    const auto bin = static_cast<std::size_t>((hash >> 32) * kBins >> 32);
    const std::uint64_t value = hash & 0xFFFFFFFFu;
    if (value < bins[bin]) bins[bin] = value;
    ++grams;
  }
};

// An empty bin takes the next full one's value, changed by the distance.
void fill_empty_bins(std::array<std::uint64_t, kBins>& bins) {
  std::uint64_t value = kEmpty, distance = 0;
  for (std::size_t step = 2 * kBins; step-- > 0;) {
    std::uint64_t& bin = bins[step % kBins];
    if (bin < std::uint64_t{1} << 32) {
      value = bin;
      distance = 0;
    } else if (value != kEmpty) {
      ++distance;
      bin = value + (distance << 32);
    }
  }
}

Fingerprint fingerprint_of_band(const std::uint64_t* rows, std::uint64_t band,
                                std::uint64_t position) {
  std::uint64_t high = mix(band + 1), low = mix(~band);
  for (int row = 0; row < kRows; ++row) {
    high = mix(high ^ rows[row]);
    low = mix(low + rows[row] * 0x9E3779B97F4A7C15u);
  }
  return {high, low, position};
}

}  // namespace

std::vector<Fingerprint> near_duplicate_bands(std::string_view text, std::uint64_t position) {
  Signature signature(text);
  std::vector<Fingerprint> bands;
  if (signature.grams < kLeastGrams) return bands;
  fill_empty_bins(signature.bins);
  for (std::uint64_t band = 0; band < kBands; ++band) {
    bands.push_back(fingerprint_of_band(&signature.bins[band * kRows], band, position));
  }
  return bands;
}

}  // namespace tupelo

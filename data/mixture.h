// Which corpus each sample of a mixture comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

// A pure function of weights, seed and number of the sample, so seeking is free. Samples come in
// blocks of kBlock: each block has its share of every part, exact up to rounding that never adds up
// (after any number of blocks a part is less than one sample away from its share), in an order of
// its own.
class Mixture {
 public:
  static constexpr std::uint64_t kBlock = 4096;

  // Weights above 0, of any sum. Throws std::invalid_argument for none of them, for one that is not
  // a positive number, and for one below 1/2048 of their sum.
  Mixture(const std::vector<double>& weights, std::uint64_t seed);

  std::size_t parts() const { return ends_.size(); }

  struct Draw {
    std::size_t part;
    std::uint64_t index;  // how many samples of the part came before
  };
  // Samples [block * kBlock, (block + 1) * kBlock).
  std::vector<Draw> block(std::uint64_t block) const;

  // How many of the first `samples` samples come from each part. Takes a block() at most.
  std::vector<std::uint64_t> drawn(std::uint64_t samples) const;
  std::uint64_t drawn(std::size_t part, std::uint64_t samples) const {
    return drawn(samples)[part];
  }

 private:
  // Samples of the first `part` + 1 parts in the first `blocks` blocks.
  std::uint64_t up_to(std::size_t part, std::uint64_t blocks) const;
  std::uint64_t before(std::size_t part, std::uint64_t blocks) const {
    return part == 0 ? 0 : up_to(part - 1, blocks);
  }

  std::vector<std::uint64_t> ends_;  // of the parts' shares, of 2^32
  std::uint64_t seed_;
};

// Weights of corpora with so many tokens. `mixture` is "tokens": in proportion; "tokens^A" with A
// from 0 (equal weights) to 1: proportional to tokens^A (Conneau & Lample, "Cross-lingual language
// model pretraining", NeurIPS 2019, section 3.1); or a weight above 0 for each, "0.7,0.3". Throws
// std::invalid_argument that quotes what is wrong.
std::vector<double> mixture_weights(const std::string& mixture,
                                    const std::vector<std::uint64_t>& tokens);
// Throws the same for what is wrong whatever the number of corpora.
void check_mixture(const std::string& mixture);

}  // namespace tupelo

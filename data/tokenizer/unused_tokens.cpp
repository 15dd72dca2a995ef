#include "data/tokenizer/unused_tokens.h"

#include <stdexcept>

namespace tupelo {

void check_size_multiple(std::uint32_t multiple) {
  constexpr std::uint32_t kMost = 4096;
  if (multiple >= 1 && multiple <= kMost) return;
  throw std::invalid_argument("the vocabulary size cannot be padded to a multiple of " +
                              std::to_string(multiple) + ", only of 1 to " + std::to_string(kMost));
}

std::uint64_t padded_size(std::uint64_t size, std::uint32_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

void add_unused_tokens(std::vector<std::string>& tokens, std::uint64_t size) {
  for (std::size_t i = 0; tokens.size() < size; ++i) {
    tokens.push_back(std::string("[unused").append(std::to_string(i)) + "]");
  }
}

}  // namespace tupelo

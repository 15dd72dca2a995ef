#include "data/tokenizer/tokenizer.h"

#include <stdexcept>

namespace tupelo {

void Tokenizer::check_id(std::uint32_t id) const {
  if (id < vocab_size()) return;
  throw std::out_of_range("token id " + std::to_string(id) + " is not below the vocabulary size " +
                          std::to_string(vocab_size()));
}

}  // namespace tupelo

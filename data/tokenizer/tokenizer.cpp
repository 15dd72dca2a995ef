#include "data/tokenizer/tokenizer.h"

#include <stdexcept>

#include "data/errors.h"

namespace tupelo {

void Tokenizer::encode_with_spans(std::string_view, std::vector<std::uint32_t>&,
                                  std::vector<std::uint8_t>&, std::vector<TextSpan>&) const {
  throw CorpusError("a tokenizer of kind " + kind() +
                    " does not tell which bytes its tokens stand for, as words of a dictionary and "
                    "sentences need it");
}

void Tokenizer::check_id(std::uint32_t id) const {
  if (id < vocab_size()) return;
  throw std::out_of_range("token id " + std::to_string(id) + " is not below the vocabulary size " +
                          std::to_string(vocab_size()));
}

}  // namespace tupelo

#include "data/tokenizer/tokenizer.h"

#include <stdexcept>

namespace tupelo {

void Tokenizer::encode_with_spans(std::string_view, std::vector<std::uint32_t>&,
                                  std::vector<std::uint8_t>&, std::vector<TextSpan>&) const {
  throw std::logic_error("a tokenizer of kind " + kind() +
                         " does not tell which bytes its tokens stand for");
}

}  // namespace tupelo

#include <algorithm>

#include "data/errors.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {
namespace {

std::size_t characters_of(const std::string& token) {
  return static_cast<std::size_t>(std::count_if(token.begin(), token.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

}  // namespace

// Byte-level tokens are written with one character for each byte.
void Tokenizer::encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                                  std::vector<std::uint8_t>& word_start,
                                  std::vector<TextSpan>& spans) const {
  const std::size_t before = ids.size();
  encode(text, ids, &word_start);
  std::size_t bytes = 0;
  for (std::size_t i = before; i < ids.size(); ++i) bytes += characters_of(token(ids[i]));
  const std::size_t prefix = bytes == text.size() + 1 ? 1 : 0;  // a space, put before the text
  if (bytes != text.size() + prefix) {
    throw CorpusError("the tokenizer of kind " + kind() +
                      " does not keep every byte of a text, so that the words of a segmenter and "
                      "sentences cannot be told by its tokens");
  }
  std::size_t at = 0;
  for (std::size_t i = before; i < ids.size(); ++i) {
    const std::size_t begin = at - std::min(at, prefix);
    at += characters_of(token(ids[i]));
    spans.push_back({begin, at - prefix});
  }
}

}  // namespace tupelo

// Text to sentences.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// Changes with every change of the rules below, which data/FORMAT.md repeats.
inline constexpr std::uint64_t kSentenceRules = 1;

// Appends where sentences end, as byte offsets in `text`, rising, the last one text.size(). White
// space behind a sentence belongs to it. Chinese and English: a run of end marks, with the quotes
// and brackets that close behind it, ends a sentence
//   - at 。！？｡ and at two or more …, unless a comma, semicolon or colon follows;
//   - at . ! ? when white space follows and then no lower-case letter, or when an ideograph follows
//   a
//     ! or ?; a single . not behind an abbreviation or a single letter.
// A line break ends one, unless the very next line begins with a lower-case letter (a-z).
void find_sentences(std::string_view text, std::vector<std::size_t>& sentence_ends);

// Appends a flag for each token: 1 where a sentence begins. A token belongs to the sentence of its
// first character that is not white space; `spans` are those of Tokenizer::encode_with_spans.
void append_sentence_starts(std::string_view text, const std::vector<std::size_t>& sentence_ends,
                            std::span<const TextSpan> spans,
                            std::vector<std::uint8_t>& sentence_start);

}  // namespace tupelo

// Words of a text to words of its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// Han characters, for which word boundaries are not written.
bool is_ideograph(char32_t code_point);

// Turns the tokenizer's own word flags into those of the words that end at `word_ends` (bytes of
// `text`, rising). What is never divided is a unit: a whole word of the tokenizer when it has no
// ideograph, else the tokens of a character. Neighbouring units inside one word become one word; a
// unit that reaches across the end of a word stays a word by itself, and what is left of the words
// that it cuts are words, too. `spans` are those of Tokenizer::encode_with_spans, one for each
// flag. Source: whole-word masking for Chinese falls back where segmenter and tokenizer disagree,
// as in Cui et al., "Pre-training with whole word masking for Chinese BERT", 2021.
void align_word_starts(std::string_view text, const std::vector<std::size_t>& word_ends,
                       std::span<const TextSpan> spans, std::span<std::uint8_t> word_start);

}  // namespace tupelo

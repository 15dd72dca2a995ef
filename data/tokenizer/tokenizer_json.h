// What tokenizers write of themselves.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/byte_bpe_model.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

inline constexpr const char* kTokenizerJson = "tokenizer.json";
inline constexpr const char* kTokenizerConfig = "tokenizer_config.json";
inline constexpr const char* kVocabularyText = "vocab.txt";
inline constexpr const char* kSentencePieceModel = "sentencepiece.model";

// See Tokenizer::files().
std::vector<TokenizerFile> wordpiece_files(const std::vector<std::string>& tokens,
                                           const SpecialTokens& special,
                                           const WordPieceOptions& options);
std::vector<TokenizerFile> sentencepiece_files(const std::string& model);
std::vector<TokenizerFile> byte_bpe_files(const ByteBpeModel& model, const SpecialTokens& special);

}  // namespace tupelo

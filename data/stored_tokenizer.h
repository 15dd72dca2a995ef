// The tokenizer that lies inside a corpus.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

inline constexpr const char* kTokenizerFolder = "tokenizer";  // within a corpus

// Writes vocab.txt and tokenizer_config.json into a new folder. `vocabulary` is the text of
// vocab.txt. Throws std::system_error.
void store_wordpiece(const std::filesystem::path& folder, const std::string& vocabulary,
                     const WordPieceOptions& options);

// Throws CorpusError that names file and key or line.
std::unique_ptr<Tokenizer> load_stored_tokenizer(const std::filesystem::path& folder);

}  // namespace tupelo

// The tokenizer that lies inside a corpus.
#pragma once

#include <filesystem>
#include <memory>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

inline constexpr const char* kTokenizerFolder = "tokenizer";  // within a corpus

// Writes the tokenizer's files into a new folder. Throws std::system_error.
void store_tokenizer(const std::filesystem::path& folder, const Tokenizer& tokenizer);

// Throws CorpusError that names file and key or line.
std::unique_ptr<Tokenizer> load_stored_tokenizer(const std::filesystem::path& folder);

}  // namespace tupelo

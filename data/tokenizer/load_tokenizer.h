// A tokenizer from whatever files it lies in.
#pragma once

#include <filesystem>
#include <memory>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// For files that do not say themselves.
struct LoadTokenizerOptions {
  WordPieceOptions wordpiece;
  ByteBpeOptions byte_bpe;
};

// `path` is one of
//   a folder that holds tokenizer.json, or vocab.json and merges.txt, or sentencepiece.model, or
//   vocab.txt (looked for in this order), or a folder tokenizer/ that does: a corpus
//   vocab.json or merges.txt, with the other one beside it
//   another .json file: HF's tokenizer.json
//   a .model file: a SentencePiece model
//   any other file: vocab.txt, one token per line
// A tokenizer_config.json beside vocab.txt that has a do_lower_case decides about it. Throws
// std::invalid_argument when there is nothing of this kind, else as the loaders in tokenizer.h.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                          const LoadTokenizerOptions& options);

}  // namespace tupelo

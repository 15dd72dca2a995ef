// Corpora made of the documents of other corpora, and their text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/corpus_index.h"

namespace tupelo {

struct RewriteOptions {
  std::uint64_t shard_tokens = 64u << 20;  // a shard is closed at the first document past this
  bool force = false;                      // replace an existing corpus
  // Called from the calling thread now and then; may be empty.
  std::function<void(std::uint64_t done_tokens, std::uint64_t total_tokens)> progress = {};
};

// Writes one corpus with all documents of `inputs`, in their order, each in the split that it was
// in. Every input shard is re-hashed first. One input: the same documents in shards of another
// size. Since documents are held out by their hash, texts that several inputs share are never on
// both sides; that takes equal fractions. Memory: one shard of each split. The corpus appears whole
// or not at all. Throws std::invalid_argument when tokenizer, segmenter or held-out fraction of the
// inputs differ or two are the same corpus, CorpusError when one is damaged, std::system_error.
CorpusIndex merge_corpora(const std::vector<std::filesystem::path>& inputs,
                          const std::filesystem::path& output, const RewriteOptions& options);

// Writes `parts` corpora OUTPUT-00000-of-00004 ... of consecutive documents and about equally many
// tokens of each split; every part has at least one training document. Returns their folders.
// Throws as merge_corpora, and std::invalid_argument for fewer documents than parts.
std::vector<std::filesystem::path> split_corpus(const std::filesystem::path& input,
                                                const std::filesystem::path& output,
                                                std::uint64_t parts, const RewriteOptions& options);

// Calls `sink` with the decoded text of documents [first, first + count) of a split, as far as
// there are so many. Throws CorpusError, and what `sink` throws.
void decode_documents(
    const std::filesystem::path& corpus, Split split, std::uint64_t first, std::uint64_t count,
    const std::function<void(std::uint64_t document, const std::string& text)>& sink);

}  // namespace tupelo

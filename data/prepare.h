// Text files to a sharded corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tupelo {

enum class TextFormat {
  kAuto,       // by extension: .jsonl/.json -> kJsonLines, else kBlankLine
  kBlankLine,  // a blank line ends a document
  kLinePerDocument,
  kJsonLines,  // one object per line, the text under `text_key`
};

struct PrepareOptions {
  std::vector<std::filesystem::path>
      inputs;                    // files, or folders (every regular file inside, sorted)
  std::filesystem::path output;  // must not exist, unless `force`
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";
  std::optional<std::filesystem::path> vocab_file;  // exactly one of these two
  std::optional<std::uint32_t> train_vocab_size;
  std::uint64_t min_count = 2;  // occurrences that a character or a merge needs for the vocabulary
  bool lowercase = true;
  double held_out = 0.01;                  // fraction of documents, chosen by document hash
  std::uint64_t shard_tokens = 64u << 20;  // a shard is closed at the first document past this
  std::string language = "zh";
  int threads = 1;
  bool force = false;  // replace an existing corpus
  // Where words begin: by a dictionary in jieba's format, and the user's own on top of it, or by
  // spaces between the words of the input; neither: as the tokenizer sees words, each Chinese
  // character one.
  std::optional<std::filesystem::path> segmenter_dictionary;
  std::vector<std::filesystem::path> user_dictionaries;
  bool pre_segmented = false;    // spaces between Chinese words are not part of the text
  bool sentence_starts = false;  // store which tokens begin a sentence
};

struct PrepareProgress {
  std::string phase;  // "vocabulary", "tokenize", "verify"
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::uint64_t documents = 0, tokens = 0;
};

struct PrepareReport {
  std::uint64_t input_bytes = 0, invalid_bytes = 0, documents = 0, empty_documents = 0;
  std::uint64_t train_documents = 0, held_out_documents = 0, train_tokens = 0, held_out_tokens = 0;
  std::uint64_t unknown_tokens = 0;
  std::uint32_t vocab_size = 0;
  int train_shards = 0, held_out_shards = 0;
  double seconds = 0;           // wall clock, whole job
  double tokenize_seconds = 0;  // wall clock, tokenizing and writing
};

// Writes into a temporary sibling of `output` and renames at the end, so that a corpus exists
// entirely or not at all. The same inputs and options give the same bytes for any number of
// threads. Memory does not grow with the input. Throws std::invalid_argument (options), CorpusError
// (inputs without text, damaged vocabulary), std::system_error (files). `progress` is called from
// the calling thread.
PrepareReport prepare_corpus(const PrepareOptions& options,
                             const std::function<void(const PrepareProgress&)>& progress = {});

}  // namespace tupelo

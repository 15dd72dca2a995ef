// A corpus made of token ids that other programs wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/corpus_index.h"
#include "data/corpus_writer.h"
#include "data/segmenter/text_rules.h"

namespace tupelo {

// What all imports take.
struct ImportOptions {
  std::filesystem::path tokenizer;  // as load_tokenizer() takes it; the one that made the ids
  bool lowercase = true;            // of a vocab.txt that does not say
  std::optional<std::filesystem::path> segmenter_dictionary;  // finds Chinese words
  std::vector<std::filesystem::path> user_dictionaries;
  std::filesystem::path output;
  double held_out = 0.01;
  std::uint64_t shard_tokens = 64u << 20;
  std::string language = "zh";
  bool force = false;
};

// Collects documents, then publishes the corpus whole.
//
// A word begins at a token that does not begin with "##" (WordPiece), or begins with the mark of a
// space or behind a sequence's start (byte-level BPE, SentencePiece). With a dictionary, each run
// of tokens between [UNK]s is decoded and cut into words as prepare does, unless its text does not
// give the same tokens again. A document is held out by the hash of its decoded text.
class ImportedCorpus {
 public:
  // Keeps a reference to `options`. Throws std::invalid_argument, CorpusError, std::system_error.
  explicit ImportedCorpus(const ImportOptions& options);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // A folder for scratch files, which go away.
  std::filesystem::path scratch() const { return corpus_.scratch(); }

  // Appends a sequence to the current document. All ids are below the vocabulary's size; special
  // tokens (but not the unknown one) and other reserved ids are left out.
  void add_sequence(std::span<const std::uint32_t> ids);
  // False, and nothing is added, for a document without a token.
  bool end_document();
  // What is added from now on comes from the next file.
  void end_source(CorpusIndex::Source source);
  // Throws CorpusError when there is no document to train on.
  CorpusIndex publish();

 private:
  CorpusInfo info() const;
  void find_words();
  void find_words(std::size_t begin, std::size_t end);

  const ImportOptions& options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  TextRules rules_;
  std::vector<bool> begins_word_, left_out_;  // by id
  UnfinishedCorpus corpus_;
  CorpusWriter writer_;
  ContentDigest digest_;
  std::vector<CorpusIndex::Source> sources_;
  std::uint64_t documents_ = 0, empty_documents_ = 0, unknown_tokens_ = 0, input_bytes_ = 0;
  std::vector<std::uint32_t> ids_;  // of the current document
  std::vector<std::uint8_t> starts_;
};

}  // namespace tupelo

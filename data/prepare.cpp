#include "data/prepare.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/corpus_writer.h"
#include "data/document_batch.h"
#include "data/document_text.h"
#include "data/ordered_pipeline.h"
#include "data/prepare_options.h"
#include "data/segmenter/sentence_ends.h"
#include "data/segmenter/text_rules.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/wordpiece_trainer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Progress = std::function<void(const PrepareProgress&)>;

constexpr std::size_t kBatchBytes = std::size_t{512} << 10;
constexpr std::size_t kVocabularyBatchBytes = std::size_t{4} << 20;

struct TokenizedBatch {
  struct Document {
    std::size_t tokens;
    std::uint64_t source, hash;
  };
  std::vector<Document> documents;  // those with tokens
  std::vector<std::uint32_t> ids;   // of all, one after another
  std::vector<std::uint8_t> word_start;
  std::vector<std::uint8_t> sent_start;  // empty when not asked for
  std::uint64_t empty_documents = 0, invalid_bytes = 0, unknown_tokens = 0;
};

SegmenterInfo segmenter_info(const TextRules& rules) {
  SegmenterInfo info{.kind = rules.word_kind(), .fingerprint = {}, .files = {}};
  if (rules.segmenter() == nullptr) return info;
  info.fingerprint = rules.segmenter()->fingerprint();
  for (const DictionaryFile& file : rules.segmenter()->files()) {
    info.files.push_back({file.file.string(), file.sha256});
  }
  return info;
}

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const Progress& progress)
      : options_(options),
        progress_(progress),
        sources_(list_text_sources(options.inputs, options.format)),
        extractor_(sources_, options_.text_key),
        rules_(options.segmenter_dictionary, options.user_dictionaries, options.pre_segmented,
               options.sentence_starts),
        corpus_(options.output, options.force) {
    for (const TextSource& source : sources_) total_bytes_ += source.bytes;
  }

  PrepareReport run() {
    make_tokenizer();
    tokenize();
    verify();
    corpus_.publish();
    return report_;
  }

 private:
  void make_tokenizer();
  std::string trained_vocabulary() const;
  void tokenize();
  TokenizedBatch tokenize_batch(DocumentBatch&& batch) const;
  CorpusInfo info() const;
  void write_index(CorpusIndex index) const;
  void check_splits(const CorpusIndex& index) const;
  void count_splits(const CorpusIndex& index);
  void verify() const;
  void tell(const std::string& phase, std::uint64_t done, std::uint64_t total) const {
    if (progress_) {
      progress_(
          {phase, done, total, report_.documents, report_.train_tokens + report_.held_out_tokens});
    }
  }

  const PrepareOptions& options_;
  const Progress& progress_;
  const std::vector<TextSource> sources_;
  const TextExtractor extractor_;
  const TextRules rules_;
  UnfinishedCorpus corpus_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::uint64_t total_bytes_ = 0;
  PrepareReport report_;
};

void Preparation::make_tokenizer() {
  const WordPieceOptions wordpiece{.lowercase = options_.lowercase};
  std::string vocabulary;
  if (options_.vocab_file) {
    load_wordpiece(*options_.vocab_file, wordpiece);  // errors name the user's file, not our copy
    vocabulary = read_corpus_text(*options_.vocab_file, SIZE_MAX);
  } else {
    vocabulary = trained_vocabulary();
  }
  const fs::path folder = corpus_.folder() / kTokenizerFolder;
  store_wordpiece(folder, vocabulary, wordpiece);
  tokenizer_ = load_stored_tokenizer(folder);
  report_.vocab_size = tokenizer_->vocab_size();
}

// Learns from the documents that are not held out.
std::string Preparation::trained_vocabulary() const {
  WordPieceTrainer trainer({.vocab_size = *options_.train_vocab_size,
                            .min_count = options_.min_count,
                            .wordpiece = {.lowercase = options_.lowercase},
                            .threads = options_.threads});
  DocumentReader reader(sources_);
  ordered_pipeline<DocumentBatch>(
      options_.threads,
      [&](DocumentBatch& batch) {
        return read_document_batch(reader, kVocabularyBatchBytes, batch);
      },
      [&](DocumentBatch&& batch) {
        ContentDigest digest;
        std::uint64_t ignored = 0;
        std::vector<std::string> texts;
        for (RawDocument& document : batch.documents) {
          std::string text = rules_.plain_text(extractor_.text_of(std::move(document), ignored));
          if (is_held_out(document_hash(text, digest), options_.held_out)) continue;
          texts.push_back(std::move(text));
        }
        return texts;
      },
      [&](std::vector<std::string>&& texts) {
        trainer.add(texts);
        tell("vocabulary", reader.bytes_read(), total_bytes_);
      });
  std::string vocabulary;
  for (const std::string& token : trainer.train()) vocabulary += token + "\n";
  return vocabulary;
}

CorpusInfo Preparation::info() const {
  return {.language = options_.language,
          .tokenizer_kind = tokenizer_->kind(),
          .tokenizer_fingerprint = tokenizer_->fingerprint(),
          .vocab_size = tokenizer_->vocab_size(),
          .special = tokenizer_->special_tokens(),
          .reserved_ids = tokenizer_->reserved_ids(),
          .segmenter = segmenter_info(rules_),
          .sentence_rules = rules_.finds_sentences() ? kSentenceRules : 0,
          .digest = {}};
}

TokenizedBatch Preparation::tokenize_batch(DocumentBatch&& batch) const {
  TokenizedBatch result;
  ContentDigest digest;
  for (RawDocument& document : batch.documents) {
    const std::uint64_t source = document.source;
    const DividedText text =
        rules_.divide(extractor_.text_of(std::move(document), result.invalid_bytes));
    const std::size_t before = result.ids.size();
    TextRules::encode(*tokenizer_, text, result.ids, result.word_start, result.sent_start);
    if (result.ids.size() == before) {
      ++result.empty_documents;
      continue;
    }
    result.documents.push_back(
        {result.ids.size() - before, source, document_hash(text.text, digest)});
  }
  const std::uint32_t unknown = tokenizer_->special_tokens().unk;
  result.unknown_tokens =
      static_cast<std::uint64_t>(std::count(result.ids.begin(), result.ids.end(), unknown));
  return result;
}

void Preparation::tokenize() {
  const Clock::time_point start = Clock::now();
  CorpusWriter writer(corpus_.folder(), info(), options_.held_out, options_.shard_tokens);
  DocumentReader reader(sources_);
  const auto consume = [&](TokenizedBatch&& batch) {
    std::size_t at = 0;
    for (const TokenizedBatch::Document& document : batch.documents) {
      writer.add(
          std::span(batch.ids).subspan(at, document.tokens),
          std::span(batch.word_start).subspan(at, document.tokens), document.source, document.hash,
          batch.sent_start.empty() ? std::span<const std::uint8_t>()
                                   : std::span(batch.sent_start).subspan(at, document.tokens));
      at += document.tokens;
    }
    report_.documents += batch.documents.size();
    report_.train_tokens += batch.ids.size();  // of both splits, until they are counted
    report_.empty_documents += batch.empty_documents;
    report_.invalid_bytes += batch.invalid_bytes;
    report_.unknown_tokens += batch.unknown_tokens;
    tell("tokenize", reader.bytes_read(), total_bytes_);
  };
  ordered_pipeline<DocumentBatch>(
      options_.threads,
      [&](DocumentBatch& batch) { return read_document_batch(reader, kBatchBytes, batch); },
      [&](DocumentBatch&& batch) { return tokenize_batch(std::move(batch)); }, consume);
  report_.input_bytes = reader.bytes_read();
  const CorpusIndex index = writer.finish();
  check_splits(index);
  count_splits(index);
  write_index(index);
  report_.tokenize_seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void Preparation::check_splits(const CorpusIndex& index) const {
  if (report_.documents == 0) {
    throw CorpusError("the input holds no document with text: " + std::to_string(sources_.size()) +
                      " files, the first of them " + sources_.front().file.string());
  }
  if (index.train.empty()) {
    throw CorpusError("all " + std::to_string(report_.documents) +
                      " documents of the input are held out, so none is left to train on: choose a "
                      "smaller held-out fraction than " +
                      std::to_string(options_.held_out));
  }
}

void Preparation::count_splits(const CorpusIndex& index) {
  report_.train_tokens = 0;
  const auto count = [](const std::vector<ShardSummary>& shards, std::uint64_t& documents,
                        std::uint64_t& tokens, int& files) {
    for (const ShardSummary& shard : shards) {
      documents += shard.documents;
      tokens += shard.tokens;
    }
    files = static_cast<int>(shards.size());
  };
  count(index.train, report_.train_documents, report_.train_tokens, report_.train_shards);
  count(index.held_out, report_.held_out_documents, report_.held_out_tokens,
        report_.held_out_shards);
}

void Preparation::write_index(CorpusIndex index) const {
  for (const TextSource& source : sources_) {
    index.sources.push_back({source.file.string(), source.bytes});
  }
  index.input_bytes = report_.input_bytes;
  index.invalid_bytes = report_.invalid_bytes;
  index.empty_documents = report_.empty_documents;
  index.unknown_tokens = report_.unknown_tokens;
  write_corpus_file(corpus_.folder() / "index.json", format_corpus_index(index));
}

// Opens the corpus as a reader will, before it gets its name. Every shard was compared with what
// was meant when it was written.
void Preparation::verify() const {
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    tell("verify", split == Split::kTrain ? 0 : report_.input_bytes / 2, report_.input_bytes);
    const ShardedCorpus corpus(corpus_.folder(), split);
  }
  ShardedCorpus::load_tokenizer(corpus_.folder());
  tell("verify", report_.input_bytes, report_.input_bytes);
}

}  // namespace

PrepareReport prepare_corpus(const PrepareOptions& options, const Progress& progress) {
  const Clock::time_point start = Clock::now();
  check_prepare_options(options);
  PrepareReport report = Preparation(options, progress).run();
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace tupelo

#include "data/prepare.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "data/cleaning/cleaning_report.h"
#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/corpus_writer.h"
#include "data/document_text.h"
#include "data/document_texts.h"
#include "data/ordered_pipeline.h"
#include "data/prepare_options.h"
#include "data/segmenter/sentence_ends.h"
#include "data/segmenter/text_rules.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/byte_bpe_trainer.h"
#include "data/tokenizer/load_tokenizer.h"
#include "data/tokenizer/wordpiece_model.h"
#include "data/tokenizer/wordpiece_trainer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Progress = std::function<void(const PrepareProgress&)>;

constexpr std::size_t kBatchBytes = std::size_t{512} << 10;
constexpr std::size_t kMostDamageTold = 20;
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
  std::uint64_t empty_documents = 0, unknown_tokens = 0;
  TextCounts counts;
  CleaningReport cleaning;
  std::map<std::uint64_t, SourceReport> sources;
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
        sources_(list_text_sources(options.inputs, options.format, &skipped_)),
        rules_(options.segmenter_dictionary, options.user_dictionaries, options.pre_segmented,
               options.sentence_starts),
        corpus_(options.output, options.force),
        texts_(std::in_place, sources_, options_, scratch_folder()) {
    for (const TextSource& source : sources_) total_bytes_ += source.bytes;
  }

  PrepareReport run() {
    texts_->find_duplicates([&](std::uint64_t bytes) { tell("clean", bytes, total_bytes_); });
    make_tokenizer();
    tokenize();
    clear_scratch();
    verify();
    corpus_.publish();
    return report_;
  }

 private:
  void make_tokenizer();
  std::unique_ptr<Tokenizer> trained_tokenizer() const;
  void read_training_texts(const std::function<void(const std::vector<std::string>&)>& add) const;
  void tokenize();
  TokenizedBatch tokenize_batch(DocumentTexts::Batch&& batch) const;
  CorpusInfo info() const;
  void write_index(CorpusIndex index) const;
  void add_source(std::uint64_t source, const SourceReport& report);
  void report_input(const TextCounts& counts, const std::vector<DamagedFile>& damaged);
  void write_report() const;
  void check_splits(const CorpusIndex& index) const;
  void count_splits(const CorpusIndex& index);
  void verify() const;
  void clear_scratch() {
    texts_.reset();
    fs::remove_all(scratch_folder());
  }
  void tell(const std::string& phase, std::uint64_t done, std::uint64_t total) const {
    if (progress_) {
      progress_(
          {phase, done, total, report_.documents, report_.train_tokens + report_.held_out_tokens});
    }
  }

  // Beside what is to stay, so that it goes away with an unfinished corpus.
  fs::path scratch_folder() const {
    const fs::path folder = corpus_.folder() / "scratch";
    fs::create_directory(folder);
    return folder;
  }

  const PrepareOptions& options_;
  const Progress& progress_;
  SkippedEntries skipped_;
  const std::vector<TextSource> sources_;
  const TextRules rules_;
  UnfinishedCorpus corpus_;
  std::optional<DocumentTexts> texts_;  // until the last of them was read
  std::unique_ptr<Tokenizer> tokenizer_;
  std::uint64_t total_bytes_ = 0;
  PrepareReport report_;
};

void Preparation::make_tokenizer() {
  const LoadTokenizerOptions defaults{.wordpiece = {.lowercase = options_.lowercase},
                                      .byte_bpe = {.add_prefix_space = options_.add_prefix_space}};
  const fs::path folder = corpus_.folder() / kTokenizerFolder;
  store_tokenizer(folder, options_.vocab_file ? *load_tokenizer(*options_.vocab_file, defaults)
                                              : *trained_tokenizer());
  tokenizer_ = load_stored_tokenizer(folder);
  report_.vocab_size = tokenizer_->vocab_size();
}

std::unique_ptr<Tokenizer> Preparation::trained_tokenizer() const {
  if (options_.train_kind == TokenizerKind::kByteBpe) {
    ByteBpeTrainer trainer({.vocab_size = *options_.train_vocab_size,
                            .size_multiple = options_.vocab_multiple,
                            .min_count = options_.min_count,
                            .byte_bpe = {.add_prefix_space = options_.add_prefix_space},
                            .threads = options_.threads});
    read_training_texts([&](const auto& texts) { trainer.add(texts); });
    return trainer.train();
  }
  WordPieceTrainer trainer({.vocab_size = *options_.train_vocab_size,
                            .size_multiple = options_.vocab_multiple,
                            .min_count = options_.min_count,
                            .wordpiece = {.lowercase = options_.lowercase},
                            .threads = options_.threads});
  read_training_texts([&](const auto& texts) { trainer.add(texts); });
  return make_wordpiece(trainer.train(), {.lowercase = options_.lowercase}, "trained vocabulary");
}

// A vocabulary is learnt from the documents that are not held out.
void Preparation::read_training_texts(
    const std::function<void(const std::vector<std::string>&)>& add) const {
  DocumentTexts::Pass pass(*texts_);
  ordered_pipeline<DocumentTexts::Batch>(
      options_.threads,
      [&](DocumentTexts::Batch& batch) { return pass.next(kVocabularyBatchBytes, batch); },
      [&](DocumentTexts::Batch&& batch) {
        ContentDigest digest;
        CleaningReport unused = texts_->empty_report();
        TextCounts ignored;
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < batch.raw.documents.size(); ++i) {
          std::optional<std::string> raw = texts_->take_text(batch, i, ignored, unused);
          if (!raw) continue;
          std::string text = rules_.plain_text(std::move(*raw));
          if (is_held_out(document_hash(text, digest), options_.held_out)) continue;
          texts.push_back(std::move(text));
        }
        return texts;
      },
      [&](std::vector<std::string>&& texts) {
        add(texts);
        tell("vocabulary", pass.reader().bytes_read(), total_bytes_);
      });
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

TokenizedBatch Preparation::tokenize_batch(DocumentTexts::Batch&& batch) const {
  TokenizedBatch result;
  result.cleaning = texts_->empty_report();
  ContentDigest digest;
  for (std::size_t i = 0; i < batch.raw.documents.size(); ++i) {
    const std::uint64_t source = batch.raw.documents[i].source;
    TextCounts counts;
    std::optional<std::string> raw = texts_->take_text(batch, i, counts, result.cleaning);
    result.counts.add(counts);
    SourceReport& report = result.sources[source];
    report.invalid_bytes += counts.invalid_bytes;
    if (!raw) continue;
    ++report.documents;
    report.text_bytes += raw->size();
    const DividedText text = rules_.divide(std::move(*raw));
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
  DocumentTexts::Pass pass(*texts_);
  const DocumentReader& reader = pass.reader();
  TextCounts counts;
  report_.cleaning = texts_->empty_report();
  report_.sources.resize(sources_.size());
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
    counts.add(batch.counts);
    report_.cleaning.add(batch.cleaning);
    for (const auto& [source, report] : batch.sources) add_source(source, report);
    report_.unknown_tokens += batch.unknown_tokens;
    tell("tokenize", reader.bytes_read(), total_bytes_);
  };
  ordered_pipeline<DocumentTexts::Batch>(
      options_.threads, [&](DocumentTexts::Batch& batch) { return pass.next(kBatchBytes, batch); },
      [&](DocumentTexts::Batch&& batch) { return tokenize_batch(std::move(batch)); }, consume);
  report_.input_bytes = reader.bytes_read();
  report_input(counts, reader.damaged_files());
  const CorpusIndex index = writer.finish();
  check_splits(index);
  count_splits(index);
  write_index(index);
  write_report();
  report_.tokenize_seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void Preparation::add_source(std::uint64_t source, const SourceReport& report) {
  SourceReport& sum = report_.sources[source];
  sum.documents += report.documents;
  sum.text_bytes += report.text_bytes;
  sum.invalid_bytes += report.invalid_bytes;
}

void Preparation::report_input(const TextCounts& counts, const std::vector<DamagedFile>& damaged) {
  report_.invalid_bytes = counts.invalid_bytes;
  report_.dropped_lines = counts.dropped_lines;
  report_.damaged_records = counts.damaged_records;
  report_.damaged_files = damaged.size();
  report_.special_files = skipped_.special;
  report_.dangling_links = skipped_.dangling;
  report_.repeated_files = skipped_.repeated;
  for (const DamagedFile& file : damaged) {
    report_.sources[file.source].damage = file.reason;
    if (report_.damage.size() < kMostDamageTold) report_.damage.push_back(file.reason);
  }
  report_.damage.insert(report_.damage.end(), counts.damage.begin(), counts.damage.end());
  report_.empty_files = static_cast<std::uint64_t>(std::count_if(
      report_.sources.begin(), report_.sources.end(),
      [](const SourceReport& source) { return source.documents == 0 && source.damage.empty(); }));
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
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    index.sources.push_back({sources_[i].file.string(), sources_[i].bytes, report_.sources[i]});
  }
  index.input_bytes = report_.input_bytes;
  index.invalid_bytes = report_.invalid_bytes;
  index.empty_documents = report_.empty_documents;
  index.unknown_tokens = report_.unknown_tokens;
  write_corpus_file(corpus_.folder() / "index.json", format_corpus_index(index));
}

void Preparation::write_report() const {
  if (!options_.cleaning.enabled) return;
  write_corpus_file(corpus_.folder() / "report.json", format_report_json(report_.cleaning));
  write_corpus_file(corpus_.folder() / "report.html", format_report_html(report_.cleaning));
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

#include "data/prepare.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "data/cleaning/cleaning_report.h"
#include "data/corpus_files.h"
#include "data/corpus_index.h"
#include "data/errors.h"
#include "data/preparation/assemble.h"
#include "data/preparation/duplicates.h"
#include "data/preparation/job.h"
#include "data/preparation/token_part.h"
#include "data/preparation/tokenize.h"
#include "data/preparation/vocabulary.h"
#include "data/segmenter/sentence_ends.h"
#include "data/segmenter_info.h"
#include "data/stored_tokenizer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostDamageTold = 20;

CorpusInfo corpus_info(const PreparationJob& job, const Tokenizer& tokenizer) {
  return {.language = job.options().language,
          .tokenizer_kind = tokenizer.kind(),
          .tokenizer_fingerprint = tokenizer.fingerprint(),
          .vocab_size = tokenizer.vocab_size(),
          .special = tokenizer.special_tokens(),
          .reserved_ids = tokenizer.reserved_ids(),
          .segmenter = segmenter_info(job.rules()),
          .sentence_rules = job.rules().finds_sentences() ? kSentenceRules : 0,
          .digest = {}};
}

PartReport whole_report(const PartFolder& folder, const Tokenizer& tokenizer, bool sentences) {
  PartReport report;
  for (const PartKey& key : folder.all()) {
    report.add(TokenPartFile(folder.file(key), token_bytes_of(tokenizer), sentences).report());
  }
  return report;
}

// What the first process knows at the end.
class Results {
 public:
  Results(const PreparationJob& job, const Tokenizer& tokenizer, const PartFolder& folder,
          CorpusIndex index)
      : job_(job),
        whole_(whole_report(folder, tokenizer, job.rules().finds_sentences())),
        index_(std::move(index)) {
    report_.vocab_size = tokenizer.vocab_size();
    count_input();
    count_sources();
    count_splits();
  }

  // Throws CorpusError when the corpus is of no use.
  void check() const;
  void write() const;
  const PrepareReport& report() const { return report_; }

 private:
  void count_input();
  void count_sources();
  void count_splits();

  const PreparationJob& job_;
  const PartReport whole_;
  CorpusIndex index_;
  PrepareReport report_;
};

void Results::count_input() {
  report_.input_bytes = whole_.input_bytes;
  report_.invalid_bytes = whole_.counts.invalid_bytes;
  report_.dropped_lines = whole_.counts.dropped_lines;
  report_.damaged_records = whole_.counts.damaged_records;
  report_.empty_documents = whole_.empty_documents;
  report_.unknown_tokens = whole_.unknown_tokens;
  report_.special_files = job_.skipped().special;
  report_.dangling_links = job_.skipped().dangling;
  report_.repeated_files = job_.skipped().repeated;
  report_.cleaning = whole_.cleaning;
}

void Results::count_sources() {
  report_.sources.resize(job_.sources().size());
  for (const auto& [source, report] : whole_.sources) report_.sources[source] = report;
  report_.damaged_files = whole_.damaged_files.size();
  for (const DamagedFile& file : whole_.damaged_files) {
    report_.sources[file.source].damage = file.reason;
    if (report_.damage.size() < kMostDamageTold) report_.damage.push_back(file.reason);
  }
  for (const DamagedRecord& record : whole_.counts.damage) {
    report_.damage.push_back(text_place(record.place, job_.sources()) + ": " + record.reason);
  }
  report_.empty_files = static_cast<std::uint64_t>(std::count_if(
      report_.sources.begin(), report_.sources.end(),
      [](const SourceReport& source) { return source.documents == 0 && source.damage.empty(); }));
}

void Results::count_splits() {
  const auto count = [](const std::vector<ShardSummary>& shards, std::uint64_t& documents,
                        std::uint64_t& tokens, int& files) {
    for (const ShardSummary& shard : shards) {
      documents += shard.documents;
      tokens += shard.tokens;
    }
    files = static_cast<int>(shards.size());
  };
  count(index_.train, report_.train_documents, report_.train_tokens, report_.train_shards);
  count(index_.held_out, report_.held_out_documents, report_.held_out_tokens,
        report_.held_out_shards);
  report_.documents = report_.train_documents + report_.held_out_documents;
}

void Results::check() const {
  const std::vector<TextSource>& sources = job_.sources();
  if (report_.documents == 0 && report_.cleaning.documents_before > 0) {
    throw CorpusError("cleaning left none of the " +
                      std::to_string(report_.cleaning.documents_before) +
                      " documents of the input: choose other rules or limits");
  }
  if (report_.documents == 0) {
    throw CorpusError("the input holds no document with text: " + std::to_string(sources.size()) +
                      " files, the first of them " + sources.front().file.string());
  }
  if (index_.train.empty()) {
    throw CorpusError("all " + std::to_string(report_.documents) +
                      " documents of the input are held out, so none is left to train on: choose a "
                      "smaller held-out fraction than " +
                      std::to_string(job_.options().held_out));
  }
}

// Beside the shards. A killed run may have left them.
void Results::write() const {
  CorpusIndex index = index_;
  for (std::size_t i = 0; i < job_.sources().size(); ++i) {
    const TextSource& source = job_.sources()[i];
    index.sources.push_back({source.file.string(), source.bytes, report_.sources[i]});
  }
  index.input_bytes = report_.input_bytes;
  index.invalid_bytes = report_.invalid_bytes;
  index.empty_documents = report_.empty_documents;
  index.unknown_tokens = report_.unknown_tokens;
  replace_corpus_file(job_.corpus() / "index.json", format_corpus_index(index));
  if (!job_.options().cleaning.enabled) return;
  replace_corpus_file(job_.corpus() / "report.json",
                      format_report_json(report_.cleaning, job_.sources()));
  replace_corpus_file(job_.corpus() / "report.html",
                      format_report_html(report_.cleaning, job_.sources()));
}

// Opens the corpus as a reader will, before it gets its name. Every shard was compared with what
// was meant when it was written.
void verify(PreparationJob& job) {
  job.begin_phase("verify", 2, 0);
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    const ShardedCorpus corpus(job.corpus(), split);
    job.advance(1);
  }
  ShardedCorpus::load_tokenizer(job.corpus());
}

PrepareReport prepare(PreparationJob& job) {
  std::optional<DuplicateTable> table;
  if (job.texts().looks_for_duplicates()) {
    find_duplicates(job);
    job.together([&] { table.emplace(job); });
  }
  const DuplicateTable* const duplicates = table ? &*table : nullptr;
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(job, duplicates);
  const Clock::time_point start = Clock::now();
  const PartFolder tokens = tokenize_documents(job, *tokenizer, duplicates);
  CorpusIndex index = assemble_shards(job, tokens, corpus_info(job, *tokenizer));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  PrepareReport report;
  job.together([&] {
    if (!job.is_first()) return;
    const Results results(job, *tokenizer, tokens, std::move(index));
    results.check();
    results.write();
    verify(job);
    report = results.report();
    report.tokenize_seconds = seconds;
    job.publish();
  });
  return report;
}

}  // namespace

PrepareReport prepare_corpus(const PrepareOptions& options,
                             const std::function<void(const PrepareProgress&)>& progress,
                             const PrepareTeam& team) {
  const Clock::time_point start = Clock::now();
  PreparationJob job(options, team, progress);
  PrepareReport report = prepare(job);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace tupelo

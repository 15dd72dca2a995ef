#include "data/preparation/job.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "data/content_digest.h"
#include "data/mapped_file.h"
#include "data/preparation/patience.h"
#include "data/prepare_options.h"
#include "data/segmenter/sentence_ends.h"
#include "data/shard_layout.h"
#include "data/tokenizer/load_tokenizer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kTellEvery(250);

Json cleaning_json(const CleaningOptions& o) {
  if (!o.enabled) return nullptr;
  return {o.control_characters,
          o.html,
          o.symbol_lines,
          o.min_line_characters,
          o.most_repeated_lines,
          o.most_repeated_grams,
          o.min_chinese,
          o.most_foreign,
          o.min_document_characters,
          o.max_document_characters,
          o.duplicate_documents,
          o.near_duplicate_documents,
          o.duplicate_line_characters};
}

Json options_json(const PrepareOptions& o) {
  return {o.text_key,
          o.text_column,
          o.encoding,
          o.invalid_bytes,
          o.damaged_input,
          o.train_vocab_size ? Json(*o.train_vocab_size) : Json(),
          o.train_kind,
          o.vocab_multiple,
          o.min_count,
          o.vocab_text_bytes,
          o.lowercase,
          o.add_prefix_space,
          cleaning_json(o.cleaning),
          o.held_out,
          o.shard_tokens,
          o.language,
          o.pre_segmented,
          o.sentence_starts,
          o.unit_bytes};
}

Json sources_json(const std::vector<TextSource>& sources) {
  Json json = Json::array();
  for (const TextSource& source : sources) {
    const FileState state = source.state.value_or(FileState());
    json.push_back(
        {source.file.string(), source.format, source.bytes, state.modified_ns, state.changed_ns});
  }
  return json;
}

// Another program may do everything differently.
std::string digest_of_program() {
  const MappedFile program("/proc/self/exe");
  return sha256_hex_of(program.bytes().data(), program.bytes().size());
}

}  // namespace

PreparationJob::PreparationJob(const PrepareOptions& options, const PrepareTeam& team,
                               Progress progress)
    : options_(options), team_(team), progress_(std::move(progress)) {
  team_.together([&] {
    list_input();
    place_ = work_place(options_.output, identity());
    if (!is_first()) return;
    unfinished_.emplace(place_, options_.output, options_.force);
    fs::remove(failure_file());
  });
  team_.together([&] { meet(); });
}

void PreparationJob::list_input() {
  check_prepare_options(options_);
  sources_ = list_text_sources(options_.inputs, options_.format, &skipped_);
  groups_ = divide_into_groups(sources_, read_options(options_), options_.unit_bytes);
  rules_ = std::make_unique<TextRules>(options_.segmenter_dictionary, options_.user_dictionaries,
                                       options_.pre_segmented, options_.sentence_starts);
  texts_.emplace(sources_, options_);
  if (options_.vocab_file) {
    tokenizer_ = load_tokenizer(
        *options_.vocab_file,
        {.wordpiece = {.lowercase = options_.lowercase}, .byte_bpe = {options_.add_prefix_space}});
  }
}

void PreparationJob::meet() {
  be_patient([&] { return fs::is_directory(scratch()); }, [&] { return scratch(); },
             std::chrono::seconds(20));
}

std::string PreparationJob::identity() const {
  const Segmenter* const segmenter = rules_->segmenter();
  const Json json = {digest_of_program(),
                     shard_layout::kVersion,
                     kSentenceRules,
                     options_json(options_),
                     sources_json(sources_),
                     segmenter == nullptr ? "" : segmenter->fingerprint(),
                     tokenizer_ ? tokenizer_->fingerprint() : ""};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return sha256_hex_of(text.data(), text.size()).substr(0, 16);
}

std::uint64_t PreparationJob::input_bytes() const {
  return std::accumulate(
      groups_.begin(), groups_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const TextGroup& group) { return sum + group.bytes; });
}

void PreparationJob::together(const std::function<void()>& action) {
  team_.together([&] {
    try {
      action();
    } catch (const PeerFailed&) {
      // Its own error is what all will throw.
    } catch (...) {
      if (processes() > 1) std::ofstream(failure_file()).put('\n');
      throw;
    }
  });
}

std::vector<std::size_t> PreparationJob::share(const std::vector<std::uint64_t>& costs) const {
  std::vector<std::size_t> by_cost(costs.size());
  std::iota(by_cost.begin(), by_cost.end(), std::size_t{0});
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(processes()));
  std::vector<std::size_t> mine;
  for (const std::size_t piece : by_cost) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += costs[piece] + 1;
    if (least - loads.begin() == rank()) mine.push_back(piece);
  }
  std::sort(mine.begin(), mine.end());
  return mine;
}

void PreparationJob::begin_phase(const std::string& name, std::uint64_t total, std::uint64_t done) {
  phase_ = {};
  phase_.phase = name;
  phase_.total_bytes = total;
  phase_.skipped_bytes = done;
  told_ = {};
  if (processes() > 1) write_progress();
  advance(0);
}

void PreparationJob::advance(std::uint64_t bytes, std::uint64_t documents, std::uint64_t tokens) {
  phase_.done_bytes += bytes;
  phase_.documents += documents;
  phase_.tokens += tokens;
  if (processes() > 1) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    if (fs::exists(failure_file())) throw PeerFailed();
    if (!is_first()) write_progress();
  }
  if (!is_first() || !progress_) return;
  PrepareProgress all = phase_;
  all.done_bytes += phase_.skipped_bytes;
  read_progress_of_others(all);
  progress_(all);
}

// For people only, so that a reader may find half of it.
void PreparationJob::write_progress() const {
  std::ofstream(scratch() / ("progress-" + std::to_string(rank())))
      << phase_.phase << ' ' << phase_.done_bytes << ' ' << phase_.documents << ' ' << phase_.tokens
      << '\n';
}

void PreparationJob::read_progress_of_others(PrepareProgress& progress) const {
  for (int other = 1; other < processes(); ++other) {
    std::ifstream file(scratch() / ("progress-" + std::to_string(other)));
    PrepareProgress theirs;
    if (!(file >> theirs.phase >> theirs.done_bytes >> theirs.documents >> theirs.tokens)) continue;
    if (theirs.phase != progress.phase) continue;
    progress.done_bytes += theirs.done_bytes;
    progress.documents += theirs.documents;
    progress.tokens += theirs.tokens;
  }
}

}  // namespace tupelo

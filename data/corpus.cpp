#include "data/corpus.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "data/content_digest.h"
#include "data/corpus_index.h"
#include "data/regular_file.h"
#include "data/shard.h"
#include "data/stored_tokenizer.h"

namespace tupelo {
namespace {

// Whether this process has run out of something, so that no file is to blame.
bool is_of_the_process(const std::error_code& code) {
  for (const int lack : {EMFILE, ENFILE, ENOMEM}) {
    if (code == std::error_code(lack, std::generic_category())) return true;
  }
  return false;
}

}  // namespace

struct ShardedCorpus::State : DocumentTable {
  CorpusInfo info;
  std::vector<ShardSummary> summaries;
  std::vector<Part> counts;                       // of each shard, from the index
  std::vector<std::uint64_t> first_documents{0};  // of each shard, and the end
  std::uint64_t tokens = 0;

  // Where documents begin is asked for each row, so an open shard keeps it in memory: 4 bytes for
  // each document.
  struct OpenShard {
    OpenShard(const std::filesystem::path& file, const ShardIdentity& identity,
              const ShardSummary& summary);
    std::uint64_t offset(std::uint64_t document) const {
      return wide_offsets.empty() ? offsets.at(document) : wide_offsets.at(document);
    }

    Shard shard;
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint64_t> wide_offsets;  // of a shard of 2^32 tokens or more, instead
  };

  State(const std::filesystem::path& folder, Split split);
  // Of the same corpus, without some shards.
  State(const State& whole, const std::set<std::string>& without);
  const OpenShard& shard(std::size_t index) const;
  std::size_t open_shards() const;
  std::filesystem::path file(std::size_t index) const { return folder_ / summaries[index].file; }
  const std::vector<std::uint64_t>& all_offsets() const;

  const std::vector<Part>& parts() const override { return counts; }
  std::uint64_t offset(std::size_t part, std::uint64_t document) const override {
    return shard(part).offset(document);
  }

  struct Place {
    std::size_t part;
    std::uint64_t document;  // of the shard
  };
  Place place(std::uint64_t document) const;

  // Calls read(shard, its number of the document).
  template <typename Read>
  auto read_document(std::uint64_t document, Read read) const;
  // Calls read(shard, its number of the first token) for tokens [first, first + count) of a
  // document. Throws std::out_of_range when it has fewer.
  template <typename Read>
  void read_tokens(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                   Read read) const;
  // Calls `read`, which reads the shard: what goes wrong is the shard's.
  template <typename Read>
  auto blaming(std::size_t index, Read read) const;

 private:
  struct Slot {
    std::shared_ptr<const OpenShard> owned;
    std::atomic<const OpenShard*> opened = nullptr;
  };
  void number_documents(std::vector<ShardSummary> shards);
  std::shared_ptr<const OpenShard> opened_shard(std::size_t index) const;

  std::filesystem::path folder_;
  ShardIdentity identity_;
  mutable std::mutex opening_;
  mutable std::vector<Slot> slots_;
  mutable std::mutex collecting_;
  mutable std::vector<std::uint64_t> offsets_;
};

ShardedCorpus::State::OpenShard::OpenShard(const std::filesystem::path& file,
                                           const ShardIdentity& identity,
                                           const ShardSummary& summary)
    : shard(file, identity, summary) {
  wide_offsets.resize(shard.documents() + 1);
  shard.read_offsets(0, wide_offsets.size(), wide_offsets.data());
  if (shard.tokens() > UINT32_MAX) return;
  offsets.assign(wide_offsets.begin(), wide_offsets.end());
  wide_offsets = {};
}

void ShardedCorpus::State::number_documents(std::vector<ShardSummary> shards) {
  summaries = std::move(shards);
  for (const ShardSummary& summary : summaries) {
    counts.push_back({summary.documents, summary.tokens});
    first_documents.push_back(first_documents.back() + summary.documents);
    tokens += summary.tokens;
  }
  slots_ = std::vector<Slot>(summaries.size());
}

ShardedCorpus::State::State(const std::filesystem::path& folder, Split split) : folder_(folder) {
  const CorpusIndex index = read_corpus_index(folder);
  info = index.info;
  identity_ = shard_identity(info, split);
  number_documents(index.shards(split));
}

ShardedCorpus::State::State(const State& whole, const std::set<std::string>& without)
    : info(whole.info), folder_(whole.folder_), identity_(whole.identity_) {
  std::vector<ShardSummary> shards;
  std::vector<std::shared_ptr<const OpenShard>> opened;
  for (std::size_t i = 0; i < whole.summaries.size(); ++i) {
    if (without.count(whole.summaries[i].file) > 0) continue;
    shards.push_back(whole.summaries[i]);
    opened.push_back(whole.opened_shard(i));
  }
  number_documents(std::move(shards));
  for (std::size_t i = 0; i < opened.size(); ++i) {
    slots_[i].owned = opened[i];
    slots_[i].opened = opened[i].get();
  }
}

std::shared_ptr<const ShardedCorpus::State::OpenShard> ShardedCorpus::State::opened_shard(
    std::size_t index) const {
  const std::lock_guard lock(opening_);
  return slots_[index].owned;
}

template <typename Read>
auto ShardedCorpus::State::blaming(std::size_t index, Read read) const {
  const auto name = [&] { return ShardName{info.digest, summaries[index].file}; };
  try {
    return read();
  } catch (const CorpusError& error) {
    throw ErrorOfShard<CorpusError>(error, name());
  } catch (const std::system_error& error) {
    if (is_of_the_process(error.code())) throw;
    throw ErrorOfShard<std::system_error>(error, name());
  }
}

const ShardedCorpus::State::OpenShard& ShardedCorpus::State::shard(std::size_t index) const {
  Slot& slot = slots_[index];
  if (const OpenShard* opened = slot.opened.load(std::memory_order_acquire)) return *opened;
  const std::lock_guard lock(opening_);
  if (!slot.owned) {
    const ShardSummary& summary = summaries[index];
    slot.owned = blaming(
        index, [&] { return std::make_shared<const OpenShard>(file(index), identity_, summary); });
    slot.opened.store(slot.owned.get(), std::memory_order_release);
  }
  return *slot.owned;
}

std::size_t ShardedCorpus::State::open_shards() const {
  const std::lock_guard lock(opening_);
  return static_cast<std::size_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.owned != nullptr; }));
}

const std::vector<std::uint64_t>& ShardedCorpus::State::all_offsets() const {
  const std::lock_guard lock(collecting_);
  if (!offsets_.empty()) return offsets_;
  std::vector<std::uint64_t> offsets{0};
  offsets.reserve(first_documents.back() + 1);
  for (std::size_t part = 0; part < counts.size(); ++part) {
    const std::uint64_t base = offsets.back();
    const OpenShard& of_part = shard(part);
    for (std::uint64_t d = 1; d <= counts[part].documents; ++d) {
      offsets.push_back(base + of_part.offset(d));
    }
  }
  offsets_ = std::move(offsets);
  return offsets_;
}

ShardedCorpus::State::Place ShardedCorpus::State::place(std::uint64_t document) const {
  if (document >= first_documents.back()) {
    throw std::out_of_range("document " + std::to_string(document) + " is not in the corpus");
  }
  const auto after = std::upper_bound(first_documents.begin(), first_documents.end(), document);
  const std::size_t index = static_cast<std::size_t>(after - first_documents.begin()) - 1;
  return {index, document - first_documents[index]};
}

template <typename Read>
auto ShardedCorpus::State::read_document(std::uint64_t document, Read read) const {
  const Place at = place(document);
  const OpenShard& opened = shard(at.part);
  return blaming(at.part, [&] { return read(opened.shard, at.document); });
}

template <typename Read>
void ShardedCorpus::State::read_tokens(std::uint64_t document, std::uint64_t first,
                                       std::uint64_t count, Read read) const {
  const Place at = place(document);
  const OpenShard& opened = shard(at.part);
  const std::uint64_t begin = opened.offset(at.document);
  const std::uint64_t length = opened.offset(at.document + 1) - begin;
  if (first > length || count > length - first) {
    throw std::out_of_range("document " + std::to_string(document) + " has only " +
                            std::to_string(length) + " tokens");
  }
  blaming(at.part, [&] { read(opened.shard, begin + first); });
}

ShardedCorpus::ShardedCorpus(const std::filesystem::path& folder, Split split, Open open)
    : state_(std::make_shared<State>(folder, split)) {
  if (open == Open::kWhenRead) return;
  for (std::size_t i = 0; i < state_->summaries.size(); ++i) state_->shard(i);
}

ShardedCorpus::ShardedCorpus(std::shared_ptr<State> state) : state_(std::move(state)) {}
ShardedCorpus::~ShardedCorpus() = default;
ShardedCorpus::ShardedCorpus(ShardedCorpus&&) noexcept = default;
ShardedCorpus& ShardedCorpus::operator=(ShardedCorpus&&) noexcept = default;

ShardedCorpus ShardedCorpus::without(const std::set<std::string>& files) const {
  return ShardedCorpus(std::make_shared<State>(*state_, files));
}

const CorpusInfo& ShardedCorpus::info() const { return state_->info; }
const std::vector<ShardSummary>& ShardedCorpus::shards() const { return state_->summaries; }
std::uint64_t ShardedCorpus::documents() const { return state_->first_documents.back(); }
std::uint64_t ShardedCorpus::tokens() const { return state_->tokens; }
std::size_t ShardedCorpus::open_shards() const { return state_->open_shards(); }
std::shared_ptr<const DocumentTable> ShardedCorpus::document_table() const { return state_; }
const std::vector<std::uint64_t>& ShardedCorpus::document_offsets() const {
  return state_->all_offsets();
}

std::uint64_t ShardedCorpus::length(std::uint64_t document) const {
  const State::Place at = state_->place(document);
  return state_->length(at.part, at.document);
}

void ShardedCorpus::read(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                         std::uint32_t* tokens) const {
  state_->read_tokens(document, first, count, [&](const Shard& shard, std::uint64_t begin) {
    shard.read(begin, count, tokens);
  });
}

bool ShardedCorpus::begins_word(std::uint64_t document, std::uint64_t offset) const {
  std::uint8_t flag = 0;
  read_word_starts(document, offset, 1, &flag);
  return flag != 0;
}

void ShardedCorpus::read_word_starts(std::uint64_t document, std::uint64_t first,
                                     std::uint64_t count, std::uint8_t* flags) const {
  state_->read_tokens(document, first, count, [&](const Shard& shard, std::uint64_t begin) {
    shard.read_word_starts(begin, count, flags);
  });
}

std::uint64_t ShardedCorpus::hash(std::uint64_t document) const {
  return state_->read_document(
      document, [](const Shard& shard, std::uint64_t number) { return shard.hash(number); });
}

std::uint64_t ShardedCorpus::source(std::uint64_t document) const {
  return state_->read_document(document, [](const Shard& shard, std::uint64_t number) {
    return std::uint64_t{shard.source(number)};
  });
}

void ShardedCorpus::read_sentence_starts(std::uint64_t document, std::uint64_t first,
                                         std::uint64_t count, std::uint8_t* flags) const {
  if (state_->info.sentence_rules == 0) {
    throw CorpusError(
        "the corpus does not say where sentences begin: prepare it with sentence starts");
  }
  state_->read_tokens(document, first, count, [&](const Shard& shard, std::uint64_t begin) {
    shard.read_sentence_starts(begin, count, flags);
  });
}

void ShardedCorpus::verify_shard(std::size_t shard) const {
  const ShardSummary& summary = state_->summaries.at(shard);
  const State::OpenShard& opened = state_->shard(shard);
  state_->blaming(shard, [&] { opened.shard.verify(summary.sha256); });
}

bool ShardedCorpus::shard_has_its_digest(std::size_t shard) const {
  const ShardSummary& summary = state_->summaries.at(shard);
  try {
    return sha256_hex_of(RegularFile(state_->file(shard))) == summary.sha256;
  } catch (const std::exception&) {
    return false;
  }
}

std::unique_ptr<Tokenizer> ShardedCorpus::load_tokenizer(const std::filesystem::path& folder) {
  const CorpusInfo info = read_corpus_index(folder).info;
  std::unique_ptr<Tokenizer> tokenizer = load_stored_tokenizer(folder / kTokenizerFolder);
  if (tokenizer->fingerprint() != info.tokenizer_fingerprint) {
    throw CorpusError((folder / kTokenizerFolder).string() +
                      ": is not the tokenizer that made this corpus: its fingerprint is " +
                      tokenizer->fingerprint() + ", but index.json says " +
                      info.tokenizer_fingerprint);
  }
  return tokenizer;
}

std::string ShardedCorpus::index_json(const std::filesystem::path& folder) {
  return read_corpus_index_text(folder);
}

}  // namespace tupelo

#include "data/corpus.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "data/corpus_index.h"
#include "data/shard.h"
#include "data/stored_tokenizer.h"

namespace tupelo {

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
  const OpenShard& shard(std::size_t index) const;
  std::size_t open_shards() const;
  const std::vector<std::uint64_t>& all_offsets() const;

  const std::vector<Part>& parts() const override { return counts; }
  std::uint64_t offset(std::size_t part, std::uint64_t document) const override {
    return shard(part).offset(document);
  }

  struct Place {
    const OpenShard& shard;
    std::uint64_t document;  // of the shard
  };
  Place place(std::uint64_t document) const;
  // A run of tokens of one document, in the numbering of its shard.
  struct Span {
    const Shard& shard;
    std::uint64_t first;
  };
  Span span(std::uint64_t document, std::uint64_t first, std::uint64_t count) const;

 private:
  struct Slot {
    std::unique_ptr<const OpenShard> owned;
    std::atomic<const OpenShard*> opened = nullptr;
  };

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

ShardedCorpus::State::State(const std::filesystem::path& folder, Split split) : folder_(folder) {
  const CorpusIndex index = read_corpus_index(folder);
  info = index.info;
  summaries = index.shards(split);
  identity_ = shard_identity(info, split);
  for (const ShardSummary& summary : summaries) {
    counts.push_back({summary.documents, summary.tokens});
    first_documents.push_back(first_documents.back() + summary.documents);
    tokens += summary.tokens;
  }
  slots_ = std::vector<Slot>(summaries.size());
}

const ShardedCorpus::State::OpenShard& ShardedCorpus::State::shard(std::size_t index) const {
  Slot& slot = slots_[index];
  if (const OpenShard* opened = slot.opened.load(std::memory_order_acquire)) return *opened;
  const std::lock_guard lock(opening_);
  if (!slot.owned) {
    const ShardSummary& summary = summaries[index];
    slot.owned = std::make_unique<const OpenShard>(folder_ / summary.file, identity_, summary);
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
  return {shard(index), document - first_documents[index]};
}

ShardedCorpus::State::Span ShardedCorpus::State::span(std::uint64_t document, std::uint64_t first,
                                                      std::uint64_t count) const {
  const Place at = place(document);
  const std::uint64_t begin = at.shard.offset(at.document);
  const std::uint64_t length = at.shard.offset(at.document + 1) - begin;
  if (first > length || count > length - first) {
    throw std::out_of_range("document " + std::to_string(document) + " has only " +
                            std::to_string(length) + " tokens");
  }
  return {at.shard.shard, begin + first};
}

ShardedCorpus::ShardedCorpus(const std::filesystem::path& folder, Split split, Open open)
    : state_(std::make_shared<State>(folder, split)) {
  if (open == Open::kWhenRead) return;
  for (std::size_t i = 0; i < state_->summaries.size(); ++i) state_->shard(i);
}

ShardedCorpus::~ShardedCorpus() = default;
ShardedCorpus::ShardedCorpus(ShardedCorpus&&) noexcept = default;

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
  return at.shard.offset(at.document + 1) - at.shard.offset(at.document);
}

void ShardedCorpus::read(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                         std::uint32_t* tokens) const {
  const State::Span span = state_->span(document, first, count);
  span.shard.read(span.first, count, tokens);
}

bool ShardedCorpus::begins_word(std::uint64_t document, std::uint64_t offset) const {
  const State::Span span = state_->span(document, offset, 1);
  std::uint8_t flag = 0;
  span.shard.read_word_starts(span.first, 1, &flag);
  return flag != 0;
}

void ShardedCorpus::read_word_starts(std::uint64_t document, std::uint64_t first,
                                     std::uint64_t count, std::uint8_t* flags) const {
  const State::Span span = state_->span(document, first, count);
  span.shard.read_word_starts(span.first, count, flags);
}

std::uint64_t ShardedCorpus::hash(std::uint64_t document) const {
  const State::Place place = state_->place(document);
  return place.shard.shard.hash(place.document);
}

std::uint64_t ShardedCorpus::source(std::uint64_t document) const {
  const State::Place place = state_->place(document);
  return place.shard.shard.source(place.document);
}

void ShardedCorpus::read_sentence_starts(std::uint64_t document, std::uint64_t first,
                                         std::uint64_t count, std::uint8_t* flags) const {
  if (state_->info.sentence_rules == 0) {
    throw CorpusError(
        "the corpus does not say where sentences begin: prepare it with sentence starts");
  }
  const State::Span span = state_->span(document, first, count);
  span.shard.read_sentence_starts(span.first, count, flags);
}

void ShardedCorpus::verify_shard(std::size_t shard) const {
  const ShardSummary& summary = state_->summaries.at(shard);
  state_->shard(shard).shard.verify(summary.sha256);
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

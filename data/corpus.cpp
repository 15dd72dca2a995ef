#include "data/corpus.h"

#include <algorithm>
#include <stdexcept>

#include "data/corpus_index.h"
#include "data/shard.h"
#include "data/stored_tokenizer.h"

namespace tupelo {

struct ShardedCorpus::State {
  CorpusInfo info;
  std::vector<ShardSummary> summaries;
  std::vector<Shard> shards;
  std::vector<std::uint64_t> first_documents{0};  // of each shard, and the end
  std::vector<std::uint64_t> document_offsets{0};

  void open(const std::filesystem::path& folder, Split split);
  void append(Shard shard);

  struct Place {
    const Shard& shard;
    std::uint64_t document;  // of the shard
  };
  Place place(std::uint64_t document) const;
  // A run of tokens of one document, in the numbering of its shard.
  struct Span {
    const Shard& shard;
    std::uint64_t first;
  };
  Span span(std::uint64_t document, std::uint64_t first, std::uint64_t count) const;
};

void ShardedCorpus::State::open(const std::filesystem::path& folder, Split split) {
  const CorpusIndex index = read_corpus_index(folder);
  info = index.info;
  summaries = index.shards(split);
  const ShardIdentity identity = shard_identity(info, split);
  shards.reserve(summaries.size());
  for (const ShardSummary& summary : summaries) {
    const std::filesystem::path file = folder / summary.file;
    // Both before HDF5 looks inside: the library is not safe against damaged structure.
    const MappedFile mapped(file);
    const std::uint64_t bytes = mapped.bytes().size();
    if (bytes != summary.bytes) {
      throw CorpusError(file.string() + ": has " + std::to_string(bytes) +
                        " bytes, but index.json says " + std::to_string(summary.bytes));
    }
    if (structure_digest(mapped.bytes(), summary.payload) != summary.structure_sha256) {
      throw CorpusError(
          file.string() +
          ": is damaged outside its datasets: the SHA-256 of its structure is not the "
          "one in index.json");
    }
    Shard shard(file, identity);
    if (shard.tokens() != summary.tokens || shard.documents() != summary.documents) {
      throw CorpusError(file.string() +
                        ": its counts of tokens and documents are not those in index.json");
    }
    append(std::move(shard));
  }
}

void ShardedCorpus::State::append(Shard shard) {
  const std::uint64_t base = document_offsets.back();
  for (std::uint64_t d = 1; d <= shard.documents(); ++d) {
    document_offsets.push_back(base + shard.offset(d));
  }
  first_documents.push_back(first_documents.back() + shard.documents());
  shards.push_back(std::move(shard));
}

ShardedCorpus::State::Place ShardedCorpus::State::place(std::uint64_t document) const {
  if (document >= first_documents.back()) {
    throw std::out_of_range("document " + std::to_string(document) + " is not in the corpus");
  }
  const auto after = std::upper_bound(first_documents.begin(), first_documents.end(), document);
  const std::size_t shard = static_cast<std::size_t>(after - first_documents.begin()) - 1;
  return {shards[shard], document - first_documents[shard]};
}

ShardedCorpus::State::Span ShardedCorpus::State::span(std::uint64_t document, std::uint64_t first,
                                                      std::uint64_t count) const {
  const Place at = place(document);
  const std::uint64_t begin = document_offsets[document];
  const std::uint64_t length = document_offsets[document + 1] - begin;
  if (first > length || count > length - first) {
    throw std::out_of_range("document " + std::to_string(document) + " has only " +
                            std::to_string(length) + " tokens");
  }
  return {at.shard, at.shard.offset(at.document) + first};
}

ShardedCorpus::ShardedCorpus(const std::filesystem::path& folder, Split split)
    : state_(std::make_unique<State>()) {
  state_->open(folder, split);
}

ShardedCorpus::~ShardedCorpus() = default;
ShardedCorpus::ShardedCorpus(ShardedCorpus&&) noexcept = default;

const CorpusInfo& ShardedCorpus::info() const { return state_->info; }
const std::vector<ShardSummary>& ShardedCorpus::shards() const { return state_->summaries; }
std::uint64_t ShardedCorpus::documents() const { return state_->first_documents.back(); }
std::uint64_t ShardedCorpus::tokens() const { return state_->document_offsets.back(); }
const std::vector<std::uint64_t>& ShardedCorpus::document_offsets() const {
  return state_->document_offsets;
}

void ShardedCorpus::read(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                         std::uint32_t* tokens) const {
  const State::Span span = state_->span(document, first, count);
  span.shard.read(span.first, count, tokens);
}

bool ShardedCorpus::begins_word(std::uint64_t document, std::uint64_t offset) const {
  const State::Span span = state_->span(document, offset, 1);
  return span.shard.begins_word(span.first);
}

void ShardedCorpus::read_word_starts(std::uint64_t document, std::uint64_t first,
                                     std::uint64_t count, std::uint8_t* flags) const {
  const State::Span span = state_->span(document, first, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    flags[i] = span.shard.begins_word(span.first + i) ? 1 : 0;
  }
}

std::uint64_t ShardedCorpus::hash(std::uint64_t document) const {
  const State::Place place = state_->place(document);
  return place.shard.hash(place.document);
}

std::uint64_t ShardedCorpus::source(std::uint64_t document) const {
  const State::Place place = state_->place(document);
  return place.shard.source(place.document);
}

void ShardedCorpus::read_sentence_starts(std::uint64_t document, std::uint64_t first,
                                         std::uint64_t count, std::uint8_t* flags) const {
  if (state_->info.sentence_rules == 0) {
    throw CorpusError(
        "the corpus does not say where sentences begin: prepare it with sentence starts");
  }
  const State::Span span = state_->span(document, first, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    flags[i] = span.shard.begins_sentence(span.first + i) ? 1 : 0;
  }
}

void ShardedCorpus::verify_shard(std::size_t shard) const {
  state_->shards.at(shard).verify(state_->summaries.at(shard).sha256);
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

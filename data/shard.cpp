#include "data/shard.h"

#include <algorithm>
#include <cstring>

#include "data/content_digest.h"
#include "data/errors.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

using namespace shard_layout;

template <typename Integer>
Integer load(const std::byte* at) {
  Integer value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename Integer>
void widen(const std::byte* from, std::uint64_t count, std::uint32_t* to) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] = load<Integer>(from + i * sizeof(Integer));
}

// Compares the attributes of an open file with what is expected of it.
class IdentityCheck {
 public:
  IdentityCheck(const Hdf5Reader& reader, const std::filesystem::path& file)
      : reader_(reader), file_(file) {}

  void expect(const char* name, const std::string& expected) const {
    const std::string found = reader_.text_attribute(name);
    if (found != expected) refuse(name, found, expected);
  }
  void expect(const char* name, std::uint64_t expected) const {
    const std::uint64_t found = reader_.integer_attribute(name);
    if (found != expected) refuse(name, std::to_string(found), std::to_string(expected));
  }

  // The attribute is there only for what is not empty.
  void expect_if_known(const char* name, const std::string& expected) const {
    const std::string found = reader_.has_attribute(name) ? reader_.text_attribute(name) : "";
    if (found != expected) {
      refuse(name, found.empty() ? "missing" : found, expected.empty() ? "none" : expected);
    }
  }
  void expect_if_known(const char* name, std::uint64_t expected) const {
    if (expected > 0 && reader_.has_attribute(name)) return expect(name, expected);
    if (expected > 0) refuse(name, "missing", std::to_string(expected));
    if (reader_.has_attribute(name)) refuse(name, "there", "none");
  }

 private:
  [[noreturn]] void refuse(const char* name, const std::string& found,
                           const std::string& expected) const {
    throw CorpusError(file_.string() + ": attribute '" + name + "' is " + found + ", expected " +
                      expected);
  }

  const Hdf5Reader& reader_;
  const std::filesystem::path& file_;
};

void check_identity(const Hdf5Reader& reader, const std::filesystem::path& file,
                    const ShardIdentity& identity) {
  const IdentityCheck check(reader, file);
  check.expect("format", kFormat);
  check.expect("version", kVersion);
  if (!reader.has_attribute("complete")) {
    throw CorpusError(file.string() +
                      ": attribute 'complete' is missing, so the shard was never finished: "
                      "prepare the corpus again");
  }
  check.expect("complete", 1);
  check.expect("split", identity.split);
  check.expect("language", identity.language);
  check.expect("tokenizer_kind", identity.tokenizer_kind);
  check.expect("tokenizer_sha256", identity.tokenizer_fingerprint);
  check.expect_if_known("segmenter_kind", identity.segmenter_kind);
  check.expect_if_known("segmenter_sha256", identity.segmenter_fingerprint);
  check.expect_if_known("sentence_rules", identity.sentence_rules);
  check.expect("vocab_size", identity.vocab_size);
  check.expect("pad_id", identity.special.pad);
  check.expect("unk_id", identity.special.unk);
  check.expect("cls_id", identity.special.cls);
  check.expect("sep_id", identity.special.sep);
  check.expect("mask_id", identity.special.mask);
}

}  // namespace

std::string split_name(Split split) { return split == Split::kTrain ? "train" : "held-out"; }

ShardIdentity shard_identity(const CorpusInfo& info, Split split) {
  return {.split = split_name(split),
          .language = info.language,
          .tokenizer_kind = info.tokenizer_kind,
          .tokenizer_fingerprint = info.tokenizer_fingerprint,
          .segmenter_kind = info.segmenter.kind,
          .segmenter_fingerprint = info.segmenter.fingerprint,
          .sentence_rules = info.sentence_rules,
          .vocab_size = info.vocab_size,
          .special = info.special};
}

std::string structure_digest(std::span<const std::byte> file,
                             const std::vector<ByteRange>& payload) {
  ContentDigest digest;
  std::uint64_t at = 0;
  for (const ByteRange& range : payload) {
    const bool ascends = range.first >= at && range.first <= file.size();
    if (!ascends || range.bytes > file.size() - range.first) return {};
    digest.update(file.data() + at, range.first - at);
    at = range.first + range.bytes;
  }
  digest.update(file.data() + at, file.size() - at);
  return digest.finish_hex();
}

Shard::Shard(const std::filesystem::path& file, const ShardIdentity& identity)
    : path_(file), vocab_size_(identity.vocab_size), file_(file) {
  const Hdf5Reader reader(file);
  check_identity(reader, file, identity);
  const ElementType token_type =
      vocab_size_ <= kNarrowVocabulary ? ElementType::kUint16 : ElementType::kUint32;
  tokens_ = reader.dataset(kTokens, {token_type});
  doc_offsets_ = reader.dataset(kDocOffsets, {ElementType::kUint64});
  word_start_ = reader.dataset(kWordStart, {ElementType::kUint8});
  if (identity.sentence_rules > 0) sent_start_ = reader.dataset(kSentStart, {ElementType::kUint8});
  doc_source_ = reader.dataset(kDocSource, {ElementType::kUint16});
  doc_hash_ = reader.dataset(kDocHash, {ElementType::kUint64});
  check_sizes(reader.integer_attribute("n_tokens"), reader.integer_attribute("n_docs"));
  check_offsets();
}

void Shard::refuse(const std::string& what) const {
  throw CorpusError(path_.string() + ": " + what);
}

void Shard::check_sizes(std::uint64_t tokens, std::uint64_t documents) const {
  const auto expect = [this](const char* name, const DatasetPlace& place, std::uint64_t count) {
    if (place.count == count) return;
    refuse("dataset '" + std::string(name) + "' has " + std::to_string(place.count) +
           " elements, expected " + std::to_string(count));
  };
  expect(kTokens, tokens_, tokens);
  expect(kDocOffsets, doc_offsets_, documents + 1);
  expect(kWordStart, word_start_, (tokens + 7) / 8);
  if (has_sentences()) expect(kSentStart, sent_start_, (tokens + 7) / 8);
  expect(kDocSource, doc_source_, documents);
  expect(kDocHash, doc_hash_, documents);
  // The file was opened twice, by name: what HDF5 measured must still fit what is mapped.
  for (const DatasetPlace* place :
       {&tokens_, &doc_offsets_, &word_start_, &sent_start_, &doc_source_, &doc_hash_}) {
    if (place->offset + place->count * element_bytes(place->type) > bytes()) {
      refuse("changed while it was opened");
    }
  }
}

void Shard::check_offsets() const {
  bool fits = offset(0) == 0 && offset(documents()) == tokens();
  for (std::uint64_t d = 0; fits && d < documents(); ++d) fits = offset(d) < offset(d + 1);
  if (!fits) {
    refuse("dataset '" + std::string(kDocOffsets) +
           "' does not rise from 0 to the number of tokens");
  }
}

const std::byte* Shard::at(const DatasetPlace& place, std::uint64_t index) const {
  return file_.bytes().data() + place.offset + index * element_bytes(place.type);
}

std::uint64_t Shard::offset(std::uint64_t document) const {
  return load<std::uint64_t>(at(doc_offsets_, document));
}

std::uint64_t Shard::hash(std::uint64_t document) const {
  return load<std::uint64_t>(at(doc_hash_, document));
}

std::uint16_t Shard::source(std::uint64_t document) const {
  return load<std::uint16_t>(at(doc_source_, document));
}

void Shard::read(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const {
  if (tokens_.type == ElementType::kUint16) {
    widen<std::uint16_t>(at(tokens_, first), count, ids);
  } else {
    widen<std::uint32_t>(at(tokens_, first), count, ids);
  }
}

bool Shard::bit(const DatasetPlace& place, std::uint64_t index) const {
  const auto bits = load<std::uint8_t>(at(place, index / 8));
  return ((bits >> (index % 8)) & 1) != 0;
}

bool Shard::begins_word(std::uint64_t token) const { return bit(word_start_, token); }

bool Shard::begins_sentence(std::uint64_t token) const { return bit(sent_start_, token); }

void Shard::check_digest(const char* name, const DatasetPlace& place) const {
  if (sha256_hex_of(at(place, 0), place.count * element_bytes(place.type)) == place.sha256) return;
  refuse("dataset '" + std::string(name) + "' is damaged: its SHA-256 is not the recorded one");
}

void Shard::check_ids() const {
  constexpr std::uint64_t kBlock = 4096;
  std::uint32_t ids[kBlock];
  for (std::uint64_t first = 0; first < tokens(); first += kBlock) {
    const std::uint64_t count = std::min(kBlock, tokens() - first);
    read(first, count, ids);
    const std::uint32_t* largest = std::max_element(ids, ids + count);
    if (*largest < vocab_size_) continue;
    refuse("dataset '" + std::string(kTokens) + "' holds id " + std::to_string(*largest) + " at " +
           std::to_string(first + static_cast<std::uint64_t>(largest - ids)) +
           ", but the vocabulary has " + std::to_string(vocab_size_) + " tokens");
  }
}

void Shard::verify(const std::string& sha256) const {
  check_digest(kTokens, tokens_);
  check_digest(kDocOffsets, doc_offsets_);
  check_digest(kWordStart, word_start_);
  if (has_sentences()) check_digest(kSentStart, sent_start_);
  check_digest(kDocSource, doc_source_);
  check_digest(kDocHash, doc_hash_);
  check_ids();
  if (sha256_hex_of(file_.bytes().data(), bytes()) != sha256) {
    refuse("is damaged outside its datasets: its SHA-256 is not the one in index.json");
  }
}

}  // namespace tupelo

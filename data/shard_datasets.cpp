// A shard's structure: what it says about itself, and where its datasets lie.
#include <algorithm>

#include "data/errors.h"
#include "data/shard.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

using namespace shard_layout;

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

void check_version(const Hdf5Reader& reader, const std::filesystem::path& file) {
  const std::uint64_t version = reader.integer_attribute("version");
  if (version == kVersion) return;
  throw CorpusError(file.string() + ": is a shard of version " + std::to_string(version) +
                    ", but this program reads version " + std::to_string(kVersion) +
                    " only: prepare the corpus again");
}

void check_identity(const Hdf5Reader& reader, const std::filesystem::path& file,
                    const ShardIdentity& identity) {
  const IdentityCheck check(reader, file);
  check.expect("format", kFormat);
  check_version(reader, file);
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

void check_count(const RegularFile& file, const char* name, const DatasetPlace& place,
                 std::uint64_t count) {
  if (place.count == count) return;
  throw CorpusError(file.path().string() + ": dataset '" + name + "' has " +
                    std::to_string(place.count) + " elements, expected " + std::to_string(count));
}

void check_counts(const RegularFile& file, const ShardDatasets& datasets, std::uint64_t tokens,
                  std::uint64_t documents) {
  const auto expect = [&](const CheckedDataset& dataset, std::uint64_t count) {
    check_count(file, dataset.name.c_str(), dataset.place, count);
  };
  expect(datasets.tokens, tokens);
  expect(datasets.doc_offsets, documents + 1);
  expect(datasets.word_start, tokens / 8 + (tokens % 8 > 0 ? 1 : 0));
  if (datasets.sent_start.place.count > 0)
    expect(datasets.sent_start, datasets.word_start.place.count);
  expect(datasets.doc_source, documents);
  expect(datasets.doc_hash, documents);
}

// Elements of which a reader would believe two things.
void check_overlaps(const RegularFile& file, const ShardDatasets& datasets) {
  std::vector<ByteRange> ranges = {{datasets.block_sums.offset, datasets.block_sums.bytes()}};
  for (const CheckedDataset* dataset : datasets.checked()) {
    ranges.push_back({dataset->place.offset, dataset->place.bytes()});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first - ranges[i - 1].first >= ranges[i - 1].bytes) continue;
    throw CorpusError(file.path().string() + ": two of its datasets overlap");
  }
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

std::vector<const CheckedDataset*> ShardDatasets::checked() const {
  std::vector<const CheckedDataset*> all = {&tokens, &doc_offsets, &word_start};
  if (sent_start.place.count > 0) all.push_back(&sent_start);
  all.insert(all.end(), {&doc_source, &doc_hash});
  return all;
}

ShardDatasets find_shard_datasets(const RegularFile& file, const ShardIdentity& identity) {
  const Hdf5Reader reader(file);
  check_identity(reader, file.path(), identity);
  std::uint64_t blocks = 0;
  const auto find = [&](const char* name, ElementType type) {
    const CheckedDataset dataset = {name, reader.dataset(name, {type}), blocks};
    blocks += checksum_blocks(dataset.place.bytes());
    return dataset;
  };
  const bool narrow = identity.vocab_size <= kNarrowVocabulary;
  ShardDatasets datasets;
  datasets.tokens = find(kTokens, narrow ? ElementType::kUint16 : ElementType::kUint32);
  datasets.doc_offsets = find(kDocOffsets, ElementType::kUint64);
  datasets.word_start = find(kWordStart, ElementType::kUint8);
  if (identity.sentence_rules > 0) datasets.sent_start = find(kSentStart, ElementType::kUint8);
  datasets.doc_source = find(kDocSource, ElementType::kUint16);
  datasets.doc_hash = find(kDocHash, ElementType::kUint64);
  datasets.block_sums = reader.dataset(kBlockSums, {ElementType::kUint32});
  check_counts(file, datasets, reader.integer_attribute("n_tokens"),
               reader.integer_attribute("n_docs"));
  check_count(file, kBlockSums, datasets.block_sums, blocks);
  check_overlaps(file, datasets);
  return datasets;
}

}  // namespace tupelo

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/crc32c.h"
#include "data/hdf5.h"
#include "data/shard.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

using namespace shard_layout;

// Adds datasets to an image, and then their checksums.
class DatasetWriter {
 public:
  explicit DatasetWriter(Hdf5Image& image) : image_(image) {}

  void add(const char* name, ElementType type, const void* elements, std::uint64_t count) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(elements),
                                           count * element_bytes(type));
    image_.add_dataset(name, type, elements, count, sha256_hex_of(bytes.data(), bytes.size()));
    const std::size_t before = sums_.size();
    sums_.resize(before + checksum_blocks(bytes.size()));
    crc32c_of_blocks(bytes, kChecksumBlockBytes, &sums_[before]);
  }

  void add_sums() {
    image_.add_dataset(kBlockSums, ElementType::kUint32, sums_.data(), sums_.size(),
                       sha256_hex_of(sums_.data(), sums_.size() * sizeof(sums_[0])));
  }

 private:
  Hdf5Image& image_;
  std::vector<std::uint32_t> sums_;
};

void add_identity(Hdf5Image& image, const ShardIdentity& identity) {
  image.add_attribute("format", std::string(kFormat));
  image.add_attribute("version", kVersion);
  image.add_attribute("split", identity.split);
  image.add_attribute("language", identity.language);
  image.add_attribute("tokenizer_kind", identity.tokenizer_kind);
  image.add_attribute("tokenizer_sha256", identity.tokenizer_fingerprint);
  const auto add_if_known = [&](const char* name, const std::string& value) {
    if (!value.empty()) image.add_attribute(name, value);
  };
  add_if_known("segmenter_kind", identity.segmenter_kind);
  add_if_known("segmenter_sha256", identity.segmenter_fingerprint);
  if (identity.sentence_rules > 0) image.add_attribute("sentence_rules", identity.sentence_rules);
  image.add_attribute("vocab_size", identity.vocab_size);
  image.add_attribute("pad_id", identity.special.pad);
  image.add_attribute("unk_id", identity.special.unk);
  image.add_attribute("cls_id", identity.special.cls);
  image.add_attribute("sep_id", identity.special.sep);
  image.add_attribute("mask_id", identity.special.mask);
}

void compare_with_disk(const RegularFile& file, std::span<const std::byte> meant) {
  std::vector<std::byte> buffer(std::min<std::size_t>(meant.size(), std::size_t{1} << 20));
  bool equal = file.bytes() == meant.size();
  for (std::size_t at = 0; equal && at < meant.size(); at += buffer.size()) {
    const std::span<std::byte> piece =
        std::span(buffer).first(std::min(buffer.size(), meant.size() - at));
    file.read(at, piece);
    equal = std::equal(piece.begin(), piece.end(), &meant[at]);
  }
  if (equal) return;
  throw std::system_error(EIO, std::generic_category(),
                          "the disk does not return what was written to " + file.path().string());
}

// Where the elements of the datasets lie, ascending.
std::vector<ByteRange> payload_of(const ShardDatasets& datasets) {
  std::vector<ByteRange> payload = {{datasets.block_sums.offset, datasets.block_sums.bytes()}};
  for (const CheckedDataset* dataset : datasets.checked()) {
    payload.push_back({dataset->place.offset, dataset->place.bytes()});
  }
  std::sort(payload.begin(), payload.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  return payload;
}

void append_bits(std::vector<std::uint8_t>& bits, std::uint64_t token,
                 std::span<const std::uint8_t> flags) {
  if (flags.empty()) return;
  bits.resize((token + flags.size() + 7) / 8);
  for (const std::uint8_t flag : flags) {
    bits[token / 8] |= static_cast<std::uint8_t>((flag & 1) << (token % 8));
    ++token;
  }
}

}  // namespace

ShardContent::ShardContent(std::uint32_t vocab_size)
    : token_type_(vocab_size <= kNarrowVocabulary ? ElementType::kUint16 : ElementType::kUint32) {}

void ShardContent::add(std::span<const std::uint32_t> ids, std::span<const std::uint8_t> word_start,
                       std::uint64_t source, std::uint64_t hash,
                       std::span<const std::uint8_t> sent_start) {
  const std::size_t width = element_bytes(token_type_);
  std::size_t end = token_bytes_.size();
  token_bytes_.resize(end + ids.size() * width);
  for (std::size_t i = 0; i < ids.size(); ++i, end += width) {
    std::memcpy(token_bytes_.data() + end, &ids[i], width);  // little-endian: the low bytes first
  }
  append_bits(word_bits_, tokens_, word_start);
  append_bits(sentence_bits_, tokens_, sent_start);
  tokens_ += ids.size();
  offsets_.push_back(tokens_);
  hashes_.push_back(hash);
  sources_.push_back(static_cast<std::uint16_t>(std::min(source, kLastSource)));
}

ShardSummary ShardContent::write(const std::filesystem::path& file,
                                 const ShardIdentity& identity) const {
  Hdf5Image image;
  DatasetWriter datasets(image);
  datasets.add(kTokens, token_type_, token_bytes_.data(), tokens_);
  datasets.add(kDocOffsets, ElementType::kUint64, offsets_.data(), offsets_.size());
  datasets.add(kWordStart, ElementType::kUint8, word_bits_.data(), word_bits_.size());
  if (identity.sentence_rules > 0) {
    datasets.add(kSentStart, ElementType::kUint8, sentence_bits_.data(), sentence_bits_.size());
  }
  datasets.add(kDocSource, ElementType::kUint16, sources_.data(), sources_.size());
  datasets.add(kDocHash, ElementType::kUint64, hashes_.data(), hashes_.size());
  datasets.add_sums();
  add_identity(image, identity);
  image.add_attribute("n_tokens", tokens_);
  image.add_attribute("n_docs", documents());
  image.add_attribute("complete", std::uint64_t{1});

  const std::span<const std::byte> bytes = image.bytes();
  write_corpus_file(file, bytes);
  const RegularFile written(file);
  compare_with_disk(written, bytes);
  const std::vector<ByteRange> payload = payload_of(find_shard_datasets(written, identity));
  return {.file = {},
          .bytes = bytes.size(),
          .tokens = tokens_,
          .documents = documents(),
          .sha256 = sha256_hex_of(bytes.data(), bytes.size()),
          .payload = payload,
          .structure_sha256 = structure_digest(written, payload)};
}

}  // namespace tupelo

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/shard.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

using namespace shard_layout;

void add_dataset(Hdf5Image& image, const char* name, ElementType type, const void* elements,
                 std::uint64_t count) {
  const std::string digest = sha256_hex_of(elements, count * element_bytes(type));
  image.add_dataset(name, type, elements, count, digest);
}

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

void compare_with_disk(const std::filesystem::path& file, std::span<const std::byte> meant) {
  const MappedFile written(file);
  if (std::equal(meant.begin(), meant.end(), written.bytes().begin(), written.bytes().end())) {
    return;
  }
  throw std::system_error(EIO, std::generic_category(),
                          "the disk does not return what was written to " + file.string());
}

// Where the elements of the datasets lie, ascending.
std::vector<ByteRange> payload_of(const Hdf5Reader& reader, ElementType token_type,
                                  bool sentences) {
  std::vector<ByteRange> payload;
  const auto add = [&](const char* name, ElementType type) {
    const DatasetPlace place = reader.dataset(name, {type});
    payload.push_back({place.offset, place.count * element_bytes(type)});
  };
  add(kTokens, token_type);
  add(kDocOffsets, ElementType::kUint64);
  add(kWordStart, ElementType::kUint8);
  if (sentences) add(kSentStart, ElementType::kUint8);
  add(kDocSource, ElementType::kUint16);
  add(kDocHash, ElementType::kUint64);
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
  add_dataset(image, kTokens, token_type_, token_bytes_.data(), tokens_);
  add_dataset(image, kDocOffsets, ElementType::kUint64, offsets_.data(), offsets_.size());
  add_dataset(image, kWordStart, ElementType::kUint8, word_bits_.data(), word_bits_.size());
  const bool sentences = identity.sentence_rules > 0;
  if (sentences) {
    add_dataset(image, kSentStart, ElementType::kUint8, sentence_bits_.data(),
                sentence_bits_.size());
  }
  add_dataset(image, kDocSource, ElementType::kUint16, sources_.data(), sources_.size());
  add_dataset(image, kDocHash, ElementType::kUint64, hashes_.data(), hashes_.size());
  add_identity(image, identity);
  image.add_attribute("n_tokens", tokens_);
  image.add_attribute("n_docs", documents());
  image.add_attribute("complete", std::uint64_t{1});

  const std::span<const std::byte> bytes = image.bytes();
  write_corpus_file(file, bytes);
  compare_with_disk(file, bytes);
  const std::vector<ByteRange> payload = payload_of(Hdf5Reader(file), token_type_, sentences);
  return {.file = {},
          .bytes = bytes.size(),
          .tokens = tokens_,
          .documents = documents(),
          .sha256 = sha256_hex_of(bytes.data(), bytes.size()),
          .payload = payload,
          .structure_sha256 = structure_digest(bytes, payload)};
}

}  // namespace tupelo

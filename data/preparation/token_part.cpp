#include "data/preparation/token_part.h"

#include <zlib.h>

#include <cstring>
#include <numeric>

namespace tupelo {
namespace {

std::uint64_t bit_bytes(std::uint64_t bits) { return (bits + 7) / 8; }

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::vector<std::uint8_t> flags_of(std::span<const std::byte> bits, std::uint64_t count) {
  std::vector<std::uint8_t> flags(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    flags[i] = static_cast<std::uint8_t>(static_cast<unsigned>(bits[i / 8]) >> (i % 8) & 1);
  }
  return flags;
}

}  // namespace

void TokenPart::append_bits(std::span<const std::uint8_t> flags) {
  const std::size_t begin = records_.size();
  records_.resize(begin + bit_bytes(flags.size()));
  for (std::size_t i = 0; i < flags.size(); ++i) {
    records_[begin + i / 8] |= static_cast<std::byte>((flags[i] & 1) << (i % 8));
  }
}

void TokenPart::add_document(std::span<const std::uint32_t> ids,
                             std::span<const std::uint8_t> word_start,
                             std::span<const std::uint8_t> sentence_start, std::uint64_t source,
                             std::uint64_t hash) {
  const std::size_t begin = records_.size();
  std::size_t end = begin;
  records_.resize(begin + ids.size() * token_bytes_);
  for (const std::uint32_t id : ids) {
    std::memcpy(records_.data() + end, &id, token_bytes_);  // little-endian: the low bytes first
    end += token_bytes_;
  }
  append_bits(word_start);
  if (sentences_) append_bits(sentence_start);
  documents_.push_back({.hash = hash,
                        .tokens = ids.size(),
                        .source = static_cast<std::uint32_t>(source),
                        .checksum = checksum_of(std::span(records_).subspan(begin))});
  tokens_ += ids.size();
}

void TokenPart::append(const TokenPart& other) {
  records_.insert(records_.end(), other.records_.begin(), other.records_.end());
  documents_.insert(documents_.end(), other.documents_.begin(), other.documents_.end());
  tokens_ += other.tokens_;
  report.add(other.report);
}

void TokenPart::write(const std::filesystem::path& file) const {
  write_sections(file, format_part_report(report), {bytes_of(documents_), bytes_of(records_)});
}

TokenPartFile::TokenPartFile(const std::filesystem::path& file, std::size_t token_bytes,
                             bool sentences)
    : file_(file),
      token_bytes_(token_bytes),
      sentences_(sentences),
      documents_(file_.values<TokenDocument>(0)) {
  const std::uint64_t bytes = std::accumulate(
      documents_.begin(), documents_.end(), std::uint64_t{0},
      [&](std::uint64_t sum, const TokenDocument& one) { return sum + record_bytes(one); });
  if (bytes != file_.unchecked_section(1).size()) file_.refuse();
}

std::uint64_t TokenPartFile::record_bytes(const TokenDocument& document) const {
  return document.tokens * token_bytes_ + bit_bytes(document.tokens) * (sentences_ ? 2 : 1);
}

bool TokenPartFile::Reader::next(bool with_content) {
  if (next_ == part_.documents_.size()) return false;
  const std::uint64_t bytes = part_.record_bytes(part_.documents_[next_++]);
  if (with_content) read_content(part_.file_.unchecked_section(1).subspan(at_, bytes));
  at_ += bytes;
  return true;
}

void TokenPartFile::Reader::read_content(std::span<const std::byte> record) {
  const std::uint64_t tokens = document().tokens;
  if (checksum_of(record) != document().checksum) part_.file_.refuse();
  ids_.assign(tokens, 0);
  for (std::uint64_t i = 0; i < tokens; ++i) {
    std::memcpy(&ids_[i], record.data() + i * part_.token_bytes_, part_.token_bytes_);
  }
  const auto bits = record.subspan(tokens * part_.token_bytes_);
  flags_.word_start = flags_of(bits, tokens);
  if (part_.sentences_) flags_.sentence_start = flags_of(bits.subspan(bit_bytes(tokens)), tokens);
}

}  // namespace tupelo

// Tokenized documents on their way to shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/preparation/part_report.h"
#include "data/preparation/section_file.h"

namespace tupelo {

// A document among those of a part. Its record holds ids as a shard has them, then a bit for every
// token (does it begin a word?), then, if sentences are stored, another (a sentence?), each filled
// up to a byte.
struct TokenDocument {
  std::uint64_t hash = 0, tokens = 0;
  std::uint32_t source = 0;
  std::uint32_t checksum = 0;  // CRC-32 of the record
};

struct TokenFlags {
  std::vector<std::uint8_t> word_start, sentence_start;  // 0 or 1 for each token
};

// Sections: documents, records. The description is a PartReport.
class TokenPart {
 public:
  // A token takes `token_bytes`, 2 or 4.
  TokenPart(std::size_t token_bytes, bool sentences)
      : token_bytes_(token_bytes), sentences_(sentences) {}

  // `word_start` and, if sentences are stored, `sentence_start` are 0 or 1 for each id.
  void add_document(std::span<const std::uint32_t> ids, std::span<const std::uint8_t> word_start,
                    std::span<const std::uint8_t> sentence_start, std::uint64_t source,
                    std::uint64_t hash);
  // Documents behind those that are here.
  void append(const TokenPart& other);

  PartReport report;

  std::uint64_t tokens() const { return tokens_; }
  void write(const std::filesystem::path& file) const;

 private:
  void append_bits(std::span<const std::uint8_t> flags);

  std::size_t token_bytes_;
  bool sentences_;
  std::uint64_t tokens_ = 0;
  std::vector<TokenDocument> documents_;
  std::vector<std::byte> records_;
};

class TokenPartFile {
 public:
  // As it was written. Throws CorpusError, std::system_error.
  TokenPartFile(const std::filesystem::path& file, std::size_t token_bytes, bool sentences);

  PartReport report() const { return parse_part_report(file_.description()); }
  std::span<const TokenDocument> documents() const { return documents_; }

  // One document after another, from the first.
  class Reader {
   public:
    explicit Reader(const TokenPartFile& part) : part_(part) {}
    // The next document; `with_content`: its ids and flags, too, which are checked.
    bool next(bool with_content);
    const TokenDocument& document() const { return part_.documents_[next_ - 1]; }
    std::span<const std::uint32_t> ids() const { return ids_; }
    const TokenFlags& flags() const { return flags_; }

   private:
    void read_content(std::span<const std::byte> record);

    const TokenPartFile& part_;
    std::size_t next_ = 0;
    std::uint64_t at_ = 0;
    std::vector<std::uint32_t> ids_;
    TokenFlags flags_;
  };

 private:
  std::uint64_t record_bytes(const TokenDocument& document) const;

  SectionFile file_;
  std::size_t token_bytes_;
  bool sentences_;
  std::span<const TokenDocument> documents_;
};

}  // namespace tupelo

// Text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tupelo {

struct SpecialTokens {
  std::uint32_t pad = 0, unk = 0, cls = 0, sep = 0, mask = 0;
};

// Immutable after construction; encode() may be called from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` (UTF-8; invalid bytes become U+FFFD) without special tokens. Special-token
  // text such as "[MASK]" is ordinary text. When `word_start` is given, one flag per id is appended:
  // 1 where a word (as the pre-tokenizer sees it; one CJK character is a word) begins.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& ids,
                      std::vector<std::uint8_t>* word_start = nullptr) const = 0;

  virtual std::string decode(const std::vector<std::uint32_t>& ids) const = 0;
  virtual std::uint32_t vocab_size() const = 0;
  virtual const std::string& token(std::uint32_t id) const = 0;
  virtual const SpecialTokens& special_tokens() const = 0;
  // Ids that random replacement must never produce and masking never touches: [PAD], [UNK], [CLS],
  // [SEP], [MASK] and every [unused...] entry; sorted.
  virtual const std::vector<std::uint32_t>& reserved_ids() const = 0;
  virtual std::string kind() const = 0;  // "wordpiece"
  // SHA-256 (hex) over vocabulary, flags and the version of the character tables: equal fingerprints
  // give equal ids for every text.
  virtual std::string fingerprint() const = 0;
};

struct WordPieceOptions {
  bool lowercase = true;  // also strips accents, as BERT's uncased models do
};

// `vocab.txt`: one token per line, id = line number from 0; must hold [PAD] [UNK] [CLS] [SEP] [MASK].
// Throws CorpusError that names file and line.
std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab_file,
                                          WordPieceOptions options);

}  // namespace tupelo

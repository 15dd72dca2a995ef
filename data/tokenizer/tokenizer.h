// Text to token ids and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tupelo {

// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct SpecialTokens {
  std::uint32_t pad = 0, unk = 0, cls = 0, sep = 0, mask = 0;
};

// Immutable after construction; encode() may be called from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` (UTF-8; each maximal invalid subpart counts as U+FFFD, which BERT
  // then removes) without special tokens. Special-token text such as "[MASK]" is ordinary text,
  // brackets and all: here, and only here, the ids differ from HF's BertTokenizerFast, which lets
  // any text inject the special id. When `word_start` is given, one flag per id is appended: 1
  // where a word (as the pre-tokenizer sees it; one CJK character is a word) begins.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& ids,
                      std::vector<std::uint8_t>* word_start = nullptr) const = 0;

  // encode(), and for each id the bytes of `text` that it stands for, rising. Ids whose parts of
  // the text cannot be told apart, such as the pieces of a word that was normalised, share those of
  // the whole word. As it stands here, for byte-level tokenizers, whose tokens are the text byte by
  // byte; throws CorpusError where they are not.
  virtual void encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                                 std::vector<std::uint8_t>& word_start,
                                 std::vector<TextSpan>& spans) const;

  // Readable text: "##" pieces joined to the piece before them, a space between words, none between
  // CJK characters and CJK punctuation. What encode() removed or replaced ([UNK]) does not come
  // back, but encode(decode(encode(text))) == encode(text) where there is no [UNK]. Throws
  // std::out_of_range for an id that is not below vocab_size(); so does token().
  virtual std::string decode(const std::vector<std::uint32_t>& ids) const = 0;
  virtual std::uint32_t vocab_size() const = 0;
  virtual const std::string& token(std::uint32_t id) const = 0;
  virtual const SpecialTokens& special_tokens() const = 0;
  // Ids that random replacement must never produce and masking never touches: [PAD], [UNK], [CLS],
  // [SEP], [MASK] and every [unused...] entry; sorted.
  virtual const std::vector<std::uint32_t>& reserved_ids() const = 0;
  virtual std::string kind() const = 0;  // "wordpiece"
  // SHA-256 (hex) over vocabulary, flags and the version of the character tables: equal
  // fingerprints give equal ids for every text.
  virtual std::string fingerprint() const = 0;
};

struct WordPieceOptions {
  bool lowercase = true;  // also strips accents, as BERT's uncased models do
};

// BERT's WordPiece, the same ids as HF's BertTokenizerFast (tokenizers 0.23.3; its strip_accents
// follows lowercase, words beyond 100 characters are [UNK]) for every text but special tokens, see
// encode(). `vocab.txt`: one token per line, id = line number from 0; must hold [PAD] [UNK] [CLS]
// [SEP] [MASK]. Throws CorpusError that names file and line (the rules: vocabulary_file.h),
// std::system_error when the file cannot be read.
std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab_file,
                                          WordPieceOptions options);

}  // namespace tupelo

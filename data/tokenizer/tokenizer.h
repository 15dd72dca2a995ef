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

inline constexpr const char* kWordPieceKind = "wordpiece";
inline constexpr const char* kByteBpeKind = "byte-bpe";
inline constexpr const char* kSentencePieceKind = "sentencepiece";

struct TokenizerFile {
  std::string name, content;
};

// Immutable after construction; encode() may be called from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` (UTF-8; each maximal invalid subpart counts as U+FFFD) without
  // special tokens. Special-token text such as "[MASK]" or "<mask>" is ordinary text, brackets and
  // all: here, and only here, the ids differ from HF's fast tokenizers, which let any text inject
  // the special id. When `word_start` is given, one flag per id is appended: 1 where a word (as the
  // pre-tokenizer sees it) begins.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& ids,
                      std::vector<std::uint8_t>* word_start = nullptr) const = 0;

  // encode(), and for each id the bytes of `text` that it stands for, rising. Ids whose parts of
  // the text cannot be told apart, such as the pieces of a word that was normalised, share those of
  // the whole word. `text` must be valid UTF-8. Throws CorpusError where a kind of tokenizer does
  // not keep account.
  virtual void encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                                 std::vector<std::uint8_t>& word_start,
                                 std::vector<TextSpan>& spans) const;

  // Readable text. Throws std::out_of_range for an id that is not below vocab_size(); so does
  // token().
  virtual std::string decode(const std::vector<std::uint32_t>& ids) const = 0;
  virtual std::uint32_t vocab_size() const = 0;
  // As the vocabulary writes it: "##ing", "\u0120the".
  virtual const std::string& token(std::uint32_t id) const = 0;
  virtual const SpecialTokens& special_tokens() const = 0;
  // Ids that random replacement must never produce and masking never touches: the special tokens
  // and every entry that is only there to be reserved, such as [unused0]; sorted.
  virtual const std::vector<std::uint32_t>& reserved_ids() const = 0;
  virtual std::string kind() const = 0;  // one of the kinds above
  // SHA-256 (hex) over vocabulary, flags and the version of the character tables: equal
  // fingerprints give equal ids for every text.
  virtual std::string fingerprint() const = 0;
  // The files of a folder from which load_tokenizer() makes this tokenizer again. Of WordPiece and
  // BPE, one of them is tokenizer.json, with which HF's `tokenizers` gives equal ids.
  virtual std::vector<TokenizerFile> files() const = 0;

 protected:
  void check_id(std::uint32_t id) const;  // throws as decode()
};

struct WordPieceOptions {
  bool lowercase = true;  // also strips accents, as BERT's uncased models do
};

// BERT's WordPiece, the same ids as HF's BertTokenizerFast (tokenizers 0.23.3; its strip_accents
// follows lowercase, words beyond 100 characters are [UNK]) for every text but special tokens, see
// encode(). One CJK character is a word. Invalid UTF-8 leaves no trace: BERT removes U+FFFD.
// decode() joins "##" pieces to the piece before them and sets a space between words, none between
// CJK characters and CJK punctuation. What encode() removed or replaced ([UNK]) does not come back,
// but encode(decode(encode(text))) == encode(text) where there is no [UNK]. Reserved are the
// special tokens and every [unused...] entry. `vocab.txt`: one token per line, id = line number
// from 0; must hold [PAD] [UNK] [CLS] [SEP] [MASK]. Throws CorpusError that names file and line
// (the rules: vocabulary_file.h), std::system_error when the file cannot be read.
std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab_file,
                                          WordPieceOptions options);

struct ByteBpeOptions {
  bool add_prefix_space = false;  // before a text that begins with none
};

// Byte-level BPE, the same ids as HF's RobertaTokenizerFast and GPT2TokenizerFast (tokenizers
// 0.23.3) for every text but special tokens, see encode(). A word is what GPT-2's pattern finds: a
// run of letters, numbers or symbols with the space before it; Chinese is not cut between
// characters. decode() gives back the text, with U+FFFD for bytes that are not UTF-8. Reserved is
// every entry that no text leads to. `vocab_file` is vocab.json ({token: id}, ids from 0 without a
// gap), `merges_file` is merges.txt (two tokens a line, the first merge first; lines that begin
// with #version do not count). Of <s> </s> <unk> <pad> <mask> those that the vocabulary lacks are
// put behind it, in this order, as transformers does with GPT-2's. Throws CorpusError that names
// file and what is wrong with it (the rules: byte_bpe_model.h), std::system_error when a file
// cannot be read.
std::unique_ptr<Tokenizer> load_byte_bpe(const std::filesystem::path& vocab_file,
                                         const std::filesystem::path& merges_file,
                                         ByteBpeOptions options);

// HF's tokenizer.json, when it is one of the two kinds above: WordPiece with BertNormalizer and
// BertPreTokenizer, or BPE with ByteLevel. Everything else that would change ids is refused by
// name. Throws CorpusError, std::system_error as above.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& file);

// A SentencePiece model, unigram or BPE, through libsentencepiece, line by line as its own tools
// do. A word begins at a piece that begins with the mark of a space (U+2581), and at each line.
// Special tokens are the model's control symbols [CLS] [SEP] [PAD] [MASK], or else <s> </s> <pad>
// <mask>; those that it lacks are put behind its pieces, in this order. Reserved are control,
// unknown and unused pieces. decode() does not bring back what the model normalised. The library
// reads a model with less suspicion than the other loaders read their files: take models from those
// you trust. Throws CorpusError that names the file when it is no such model or text could become
// one of its special tokens, std::system_error when it cannot be read.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& model_file);

}  // namespace tupelo

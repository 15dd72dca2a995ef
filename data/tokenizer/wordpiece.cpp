#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/errors.h"
#include "data/tokenizer/bert_tables.h"
#include "data/tokenizer/double_array.h"
#include "data/tokenizer/fingerprint.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/tokenizer_json.h"
#include "data/tokenizer/vocabulary_file.h"
#include "data/tokenizer/word_splitter.h"
#include "data/tokenizer/wordpiece_model.h"

namespace tupelo {
namespace {

constexpr std::string_view kContinuation = "##";

// No token holds a line break, so the text below is unambiguous.
std::string fingerprint_of(const std::vector<std::string>& tokens,
                           const WordPieceOptions& options) {
  std::string text = "wordpiece\n";
  text += bert_tables::version();
  text += options.lowercase ? "\nlowercase\n" : "\ncased\n";
  for (const std::string& token : tokens) {
    text += token;
    text += '\n';
  }
  return sha256_hex(text);
}

bool is_unused(const std::string& token) {
  return token.starts_with("[unused") && token.ends_with("]");
}

// Chinese sets no space around characters and their punctuation.
bool stands_without_spaces(const std::string& token) {
  const Utf8Character first = read_utf8(token.data(), token.data() + token.size());
  if (first.bytes != token.size()) return false;
  const auto found = character_class(first.code_point);
  return found == bert_tables::CharacterClass::kCjk ||
         (found == bert_tables::CharacterClass::kPunctuation && first.code_point >= 0x80);
}

class WordPieceTokenizer final : public Tokenizer {
 public:
  WordPieceTokenizer(std::vector<std::string> tokens, SpecialTokens special_tokens,
                     WordPieceOptions options)
      : tokens_(std::move(tokens)),
        options_(options),
        special_tokens_(special_tokens),
        trie_(tokens_),
        continuation_root_(trie_.find_node(kContinuation)),
        characters_(options.lowercase, [this](char32_t c) { return id_of(c); }),
        fingerprint_(fingerprint_of(tokens_, options)) {
    for (std::uint32_t id = 0; id < vocab_size(); ++id) {
      const bool special = id == special_tokens_.pad || id == special_tokens_.unk ||
                           id == special_tokens_.cls || id == special_tokens_.sep ||
                           id == special_tokens_.mask;
      if (special || is_unused(tokens_[id])) reserved_ids_.push_back(id);
    }
  }

  void encode(std::string_view text, std::vector<std::uint32_t>& ids,
              std::vector<std::uint8_t>* word_start) const override;
  void encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                         std::vector<std::uint8_t>& word_start,
                         std::vector<TextSpan>& spans) const override;
  std::string decode(const std::vector<std::uint32_t>& ids) const override;

  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(tokens_.size()); }
  const std::string& token(std::uint32_t id) const override {
    check_id(id);
    return tokens_[id];
  }
  const SpecialTokens& special_tokens() const override { return special_tokens_; }
  const std::vector<std::uint32_t>& reserved_ids() const override { return reserved_ids_; }
  std::string kind() const override { return kWordPieceKind; }
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<TokenizerFile> files() const override {
    return wordpiece_files(tokens_, special_tokens_, options_);
  }

 private:
  class Output;

  std::uint32_t id_of(char32_t isolated) const {
    char bytes[kMaxUtf8Bytes];
    const std::uint32_t id = trie_.find({bytes, write_utf8(isolated, bytes)});
    return id == DoubleArray::kNone ? special_tokens_.unk : id;
  }

  std::vector<std::string> tokens_;
  WordPieceOptions options_;
  SpecialTokens special_tokens_;
  DoubleArray trie_;
  // Where "##" leads: pieces inside a word are matched from here. A word never begins with '#',
  // which is punctuation, so one trie serves both.
  std::uint32_t continuation_root_;
  CharacterTable characters_;
  std::vector<std::uint32_t> reserved_ids_;
  std::string fingerprint_;
};

// Cuts words into pieces: the longest that matches, again and again; a word that does not come out
// even is one [UNK].
class WordPieceTokenizer::Output {
 public:
  Output(const WordPieceTokenizer& tokenizer, std::vector<std::uint32_t>& ids,
         std::vector<std::uint8_t>* word_start, std::vector<TextSpan>* spans)
      : tokenizer_(tokenizer), ids_(ids), word_start_(word_start), spans_(spans) {}

  void source(std::size_t begin, std::size_t end) { source_ = {begin, end}; }
  void isolated(std::uint32_t id) { push(id, true); }
  void long_word() { push(tokenizer_.special_tokens_.unk, true); }

  void word(std::string_view word) {
    const std::size_t first_piece = ids_.size();
    std::uint32_t root = DoubleArray::kRoot;
    while (!word.empty()) {
      const auto [id, size] = longest_piece(root, word);
      if (size == 0) {
        take_back(ids_.size() - first_piece);
        push(tokenizer_.special_tokens_.unk, true);
        return;
      }
      push(id, root == DoubleArray::kRoot);
      word.remove_prefix(size);
      root = tokenizer_.continuation_root_;
    }
  }

 private:
  struct Piece {
    std::uint32_t id;
    std::size_t size;
  };

  // Both keys and word are whole characters, so a match never ends inside one.
  Piece longest_piece(std::uint32_t node, std::string_view word) const {
    Piece longest{0, 0};
    if (node == DoubleArray::kNone) return longest;
    for (std::size_t i = 0; i < word.size(); ++i) {
      node = tokenizer_.trie_.step(node, word[i]);
      if (node == DoubleArray::kNone) break;
      const std::uint32_t id = tokenizer_.trie_.value(node);
      if (id != DoubleArray::kNone) longest = {id, i + 1};
    }
    return longest;
  }

  void push(std::uint32_t id, bool begins_word) {
    ids_.push_back(id);
    if (word_start_ != nullptr) word_start_->push_back(begins_word ? 1 : 0);
    if (spans_ != nullptr) spans_->push_back(source_);
  }

  void take_back(std::size_t pieces) {
    ids_.resize(ids_.size() - pieces);
    if (word_start_ != nullptr) word_start_->resize(word_start_->size() - pieces);
    if (spans_ != nullptr) spans_->resize(spans_->size() - pieces);
  }

  const WordPieceTokenizer& tokenizer_;
  std::vector<std::uint32_t>& ids_;
  std::vector<std::uint8_t>* word_start_;
  std::vector<TextSpan>* spans_;
  TextSpan source_;
};

void WordPieceTokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids,
                                std::vector<std::uint8_t>* word_start) const {
  split_words(characters_, text, Output(*this, ids, word_start, nullptr));
}

void WordPieceTokenizer::encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                                           std::vector<std::uint8_t>& word_start,
                                           std::vector<TextSpan>& spans) const {
  split_words(characters_, text, Output(*this, ids, &word_start, &spans));
}

std::string WordPieceTokenizer::decode(const std::vector<std::uint32_t>& ids) const {
  std::string text;
  bool previous_is_tight = false;
  for (const std::uint32_t id : ids) {
    const std::string& piece = token(id);
    if (!text.empty() && piece.starts_with(kContinuation) && piece != kContinuation) {
      text.append(piece, kContinuation.size());
      previous_is_tight = false;
      continue;
    }
    const bool tight = stands_without_spaces(piece);
    if (!text.empty() && !(tight && previous_is_tight)) text += ' ';
    text += piece;
    previous_is_tight = tight;
  }
  return text;
}

std::uint32_t required_id(const std::string& where, const std::vector<std::string>& tokens,
                          const std::string& token) {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) {
    throw CorpusError(where + ": none of its " + std::to_string(tokens.size()) + " tokens is " +
                      token + "; [PAD], [UNK], [CLS], [SEP] and [MASK] must be there");
  }
  return static_cast<std::uint32_t>(found - tokens.begin());
}

}  // namespace

std::unique_ptr<Tokenizer> make_wordpiece(std::vector<std::string> tokens, WordPieceOptions options,
                                          const std::string& where) {
  SpecialTokens special;
  special.pad = required_id(where, tokens, kBertNames.pad);
  special.unk = required_id(where, tokens, kBertNames.unk);
  special.cls = required_id(where, tokens, kBertNames.cls);
  special.sep = required_id(where, tokens, kBertNames.sep);
  special.mask = required_id(where, tokens, kBertNames.mask);
  return std::make_unique<WordPieceTokenizer>(std::move(tokens), special, options);
}

std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab_file,
                                          WordPieceOptions options) {
  return make_wordpiece(read_vocabulary(vocab_file), options, "vocabulary " + vocab_file.string());
}

}  // namespace tupelo

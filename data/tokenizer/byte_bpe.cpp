#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "data/errors.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/byte_bpe_model.h"
#include "data/tokenizer/byte_level_splitter.h"
#include "data/tokenizer/byte_pair_encoder.h"
#include "data/tokenizer/fingerprint.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/tokenizer_json.h"

namespace tupelo {
namespace {

using Ids = std::unordered_map<std::string, std::uint32_t>;

std::string shown(const std::string& token) {
  constexpr std::size_t kMost = 60;
  return std::string("'").append(token, 0, kMost).append(token.size() > kMost ? "...'" : "'");
}

class ModelChecker {
 public:
  explicit ModelChecker(const std::string& where) : where_(where) {}

  void check_size(std::size_t count, const char* what) const {
    if (count <= kMaxByteBpeTokens) return;
    refuse(std::to_string(count) + " " + what + ", but at most " +
           std::to_string(kMaxByteBpeTokens) + " are read");
  }

  Ids ids_of(const std::vector<std::string>& tokens) const {
    Ids ids;
    for (const std::string& token : tokens) {
      const auto id = static_cast<std::uint32_t>(ids.size());
      if (token.empty()) refuse("the token with id " + std::to_string(id) + " is empty");
      if (token.size() > kMaxByteBpeTokenBytes) {
        refuse("the token with id " + std::to_string(id) + " is longer than " +
               std::to_string(kMaxByteBpeTokenBytes) + " bytes");
      }
      const auto [earlier, is_new] = ids.emplace(token, id);
      if (is_new) continue;
      refuse("the token " + shown(token) + " has the ids " + std::to_string(earlier->second) +
             " and " + std::to_string(id));
    }
    return ids;
  }

  std::array<std::uint32_t, 256> byte_ids(const Ids& ids) const {
    std::array<std::uint32_t, 256> found{};
    for (std::uint32_t byte = 0; byte < found.size(); ++byte) {
      const std::string symbol = to_utf8(byte_symbol(static_cast<std::uint8_t>(byte)));
      const auto entry = ids.find(symbol);
      if (entry == ids.end()) {
        refuse("the vocabulary lacks '" + symbol + "', the token of byte " + std::to_string(byte) +
               "; all 256 bytes must have one");
      }
      found[byte] = entry->second;
    }
    return found;
  }

  std::vector<BytePairEncoder::Rule> rules(const ByteBpeModel& model, const Ids& ids) const {
    std::vector<BytePairEncoder::Rule> rules;
    std::unordered_map<std::uint64_t, std::size_t> seen;
    for (const auto& [left, right] : model.merges) {
      const std::size_t number = rules.size() + 1;
      rules.push_back({token_of(ids, left, number), token_of(ids, right, number),
                       token_of(ids, left + right, number)});
      const std::uint64_t pair = std::uint64_t{rules.back().left} << 32 | rules.back().right;
      const auto [earlier, is_new] = seen.emplace(pair, number);
      if (is_new) continue;
      refuse(merge_text(number) + " joins " + shown(left) + " and " + shown(right) + ", as merge " +
             std::to_string(earlier->second) + " did before");
    }
    return rules;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(where_ + ": " + what);
  }

 private:
  static std::string merge_text(std::size_t number) {
    return std::string("merge ") + std::to_string(number);
  }

  std::uint32_t token_of(const Ids& ids, const std::string& token, std::size_t number) const {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      refuse(merge_text(number) + " names " + shown(token) + ", which is not in the vocabulary");
    }
    if (!bytes_of(token)) {
      refuse(merge_text(number) + " names " + shown(token) + ", which is not written in bytes");
    }
    return found->second;
  }

  const std::string& where_;
};

// The id of a special token; one that the vocabulary lacks goes behind it.
std::uint32_t special_id(std::vector<std::string>& tokens, const Ids& ids, const char* name) {
  const auto found = ids.find(name);
  if (found != ids.end()) return found->second;
  tokens.emplace_back(name);
  return static_cast<std::uint32_t>(tokens.size() - 1);
}

// In the order in which transformers adds them to a GPT-2 vocabulary.
SpecialTokens special_ids(std::vector<std::string>& tokens, const Ids& ids) {
  SpecialTokens special;
  special.cls = special_id(tokens, ids, kRobertaNames.cls);
  special.sep = special_id(tokens, ids, kRobertaNames.sep);
  special.unk = special_id(tokens, ids, kRobertaNames.unk);
  special.pad = special_id(tokens, ids, kRobertaNames.pad);
  special.mask = special_id(tokens, ids, kRobertaNames.mask);
  return special;
}

std::vector<std::string> bytes_by_id(const std::vector<std::string>& tokens) {
  std::vector<std::string> bytes;
  bytes.reserve(tokens.size());
  for (const std::string& token : tokens) bytes.push_back(bytes_of(token).value_or(token));
  return bytes;
}

// Tokens that no text leads to: the special ones and whatever else is neither byte nor merged.
std::vector<std::uint32_t> unreachable(std::size_t vocab_size,
                                       const std::array<std::uint32_t, 256>& byte_ids,
                                       const std::vector<BytePairEncoder::Rule>& rules) {
  std::vector<bool> reached(vocab_size);
  for (const std::uint32_t id : byte_ids) reached[id] = true;
  for (const auto& rule : rules) reached[rule.joined] = true;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < vocab_size; ++id) {
    if (!reached[id]) ids.push_back(id);
  }
  return ids;
}

std::string fingerprint_of(const ByteBpeModel& model) {
  std::string text = "byte-bpe\n";
  text += byte_level_tables::version();
  text += model.options.add_prefix_space ? "\nprefix space\n" : "\nno prefix space\n";
  for (const std::string& token : model.tokens) {
    text += std::to_string(token.size());  // a token may hold a line break
    text += ' ';
    text += token;
    text += '\n';
  }
  for (const auto& [left, right] : model.merges)
    text.append(left).append(" ").append(right) += '\n';
  return sha256_hex(text);
}

class ByteBpeTokenizer final : public Tokenizer {
 public:
  ByteBpeTokenizer(ByteBpeModel model, SpecialTokens special_tokens,
                   const std::array<std::uint32_t, 256>& byte_ids,
                   const std::vector<BytePairEncoder::Rule>& rules)
      : model_(std::move(model)),
        special_tokens_(special_tokens),
        bytes_(bytes_by_id(model_.tokens)),
        encoder_(byte_ids, rules, bytes_),
        reserved_ids_(unreachable(model_.tokens.size(), byte_ids, rules)),
        fingerprint_(fingerprint_of(model_)) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& ids,
              std::vector<std::uint8_t>* word_start) const override;
  void encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                         std::vector<std::uint8_t>& word_start,
                         std::vector<TextSpan>& spans) const override;
  std::string decode(const std::vector<std::uint32_t>& ids) const override;

  std::uint32_t vocab_size() const override {
    return static_cast<std::uint32_t>(model_.tokens.size());
  }
  const std::string& token(std::uint32_t id) const override {
    check_id(id);
    return model_.tokens[id];
  }
  const SpecialTokens& special_tokens() const override { return special_tokens_; }
  const std::vector<std::uint32_t>& reserved_ids() const override { return reserved_ids_; }
  std::string kind() const override { return kByteBpeKind; }
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<TokenizerFile> files() const override {
    return byte_bpe_files(model_, special_tokens_);
  }

 private:
  ByteBpeModel model_;
  SpecialTokens special_tokens_;
  std::vector<std::string> bytes_;  // of each token; its text where it is not written in bytes
  ByteLevelClasses classes_;
  BytePairEncoder encoder_;
  std::vector<std::uint32_t> reserved_ids_;
  std::string fingerprint_;
};

void ByteBpeTokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids,
                              std::vector<std::uint8_t>* word_start) const {
  std::string copy;
  BytePairEncoder::Scratch scratch;
  const bool prefix = model_.options.add_prefix_space;
  split_byte_level(classes_, text_to_split(text, prefix, copy), [&](std::string_view word) {
    const std::size_t before = ids.size();
    encoder_.encode(word, scratch, ids);
    if (word_start == nullptr) return;
    word_start->push_back(1);
    word_start->insert(word_start->end(), ids.size() - before - 1, 0);
  });
}

void ByteBpeTokenizer::encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                                         std::vector<std::uint8_t>& word_start,
                                         std::vector<TextSpan>& spans) const {
  const std::size_t first = ids.size();
  encode(text, ids, &word_start);
  std::string copy;
  // The tokens are the text, behind a space that it may not have.
  const std::size_t added =
      text_to_split(text, model_.options.add_prefix_space, copy).size() - text.size();
  std::size_t at = 0;
  for (std::size_t i = first; i < ids.size(); ++i) {
    const std::size_t begin = at;
    at += bytes_[ids[i]].size();
    spans.push_back({begin - std::min(begin, added), at - std::min(at, added)});
  }
}

std::string ByteBpeTokenizer::decode(const std::vector<std::uint32_t>& ids) const {
  std::string bytes;
  for (const std::uint32_t id : ids) {
    check_id(id);
    bytes += bytes_[id];
  }
  return is_valid_utf8(bytes) ? bytes : well_formed(bytes);
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_bpe(ByteBpeModel model, const std::string& where) {
  const ModelChecker checker(where);
  checker.check_size(model.tokens.size(), "tokens");
  checker.check_size(model.merges.size(), "merges");
  const Ids ids = checker.ids_of(model.tokens);
  const auto byte_ids = checker.byte_ids(ids);
  const auto rules = checker.rules(model, ids);
  const SpecialTokens special = special_ids(model.tokens, ids);
  for (const auto& rule : rules) {
    for (const auto id : {special.pad, special.unk, special.cls, special.sep, special.mask}) {
      if (rule.joined == id) {
        checker.refuse("a merge makes '" + model.tokens[id] + "', so that text could");
      }
    }
  }
  return std::make_unique<ByteBpeTokenizer>(std::move(model), special, byte_ids, rules);
}

}  // namespace tupelo

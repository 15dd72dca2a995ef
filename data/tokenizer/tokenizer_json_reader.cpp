#include <algorithm>
#include <optional>

#include "data/errors.h"
#include "data/tokenizer/byte_bpe_model.h"
#include "data/tokenizer/json_file.h"
#include "data/tokenizer/json_vocabulary.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/vocabulary_file.h"
#include "data/tokenizer/wordpiece_model.h"

namespace tupelo {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{32} << 20;
constexpr const char* kSupported =
    "WordPiece with BertNormalizer and BertPreTokenizer, and BPE with ByteLevel are supported";

// An object of the file. Whatever it holds must have been asked for, so that nothing is overlooked
// that would change ids.
class Part {
 public:
  // `name` is empty for the file itself.
  Part(const Json& json, const std::string& file, std::string name)
      : json_(json), file_(file), name_(std::move(name)) {
    if (!json_.is_object()) refuse("is not an object");
  }
  // The member `key`, an object.
  Part part(const char* key) const { return Part(member(key), file_, key); }

  bool is_null(const char* key) const { return member(key).is_null(); }
  const Json& member(const char* key) const {
    static const Json null;
    const auto found = json_.find(key);
    return found == json_.end() ? null : *found;
  }
  // Nothing when there is no such member, or it is null.
  std::string type() const {
    const Json& type = member("type");
    return type.is_string() ? type.get<std::string>() : std::string("null");
  }
  bool flag(const char* key) const {
    if (!member(key).is_boolean()) refuse_member(key, "true or false");
    return member(key).get<bool>();
  }
  // The member is missing, or one of `values`.
  void expect(const char* key, std::initializer_list<Json> values) const {
    if (!json_.contains(key)) return;
    if (std::find(values.begin(), values.end(), member(key)) != values.end()) return;
    std::string valid;
    for (const Json& value : values) valid.append(valid.empty() ? "" : " or ").append(value.dump());
    refuse_member(key, valid);
  }
  void allow_only(std::initializer_list<const char*> keys) const {
    for (const auto& item : json_.items()) {
      const std::string& key = item.key();
      const auto same = [&](const char* known) { return key == known; };
      if (std::none_of(keys.begin(), keys.end(), same)) {
        refuse(std::string("has the key '").append(key).append("', which is not known here"));
      }
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(file_ + ": " + name_ + (name_.empty() ? "" : " ") + what + "; " + kSupported);
  }

 private:
  [[noreturn]] void refuse_member(const char* key, const std::string& valid) const {
    const std::string value = member(key).dump(-1, ' ', true, Json::error_handler_t::replace);
    refuse(std::string("has '")
               .append(key)
               .append("' ")
               .append(value.substr(0, 60))
               .append(", but only ") +
           valid + " is supported");
  }

  const Json& json_;
  const std::string& file_;
  std::string name_;
};

// Steps that leave ids without special tokens as they are.
void check_bystanders(const Part& root) {
  root.expect("truncation", {nullptr});
  root.expect("padding", {nullptr});
  const auto check = [&](const char* key, std::initializer_list<const char*> types) {
    if (root.is_null(key)) return;
    const std::string type = root.part(key).type();
    for (const char* known : types) {
      if (type == known) return;
    }
    root.refuse(std::string("has the ").append(key).append(" '").append(type).append("'"));
  };
  check("post_processor",
        {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"});
  check("decoder", {"WordPiece", "ByteLevel"});
}

// Puts those behind the vocabulary that it lacks.
void add_tokens(const Part& root, const std::string& where, std::vector<std::string>& tokens) {
  const Json& list = root.member("added_tokens");
  if (list.is_null()) return;
  if (!list.is_array()) root.refuse("has 'added_tokens' that are no list");
  for (const Json& entry : list) {
    const Part added(entry, where, "an added token");
    const Json& id = added.member("id");
    const Json& content = added.member("content");
    if (!id.is_number_unsigned() || !content.is_string()) added.refuse("lacks 'id' or 'content'");
    const std::string name = content.get<std::string>();
    if (!added.flag("special")) {
      root.refuse(std::string("has the added token '")
                      .append(name)
                      .append("' that is not special, so that words with it would be cut"));
    }
    const auto number = id.get<std::uint64_t>();
    if (number == tokens.size()) tokens.push_back(name);
    if (number >= tokens.size() || tokens[number] != name) {
      root.refuse(std::string("has the added token '")
                      .append(name)
                      .append("' with an id that is neither its own nor the next: ") +
                  std::to_string(number));
    }
  }
}

void check_wordpiece_tokens(const std::vector<std::string>& tokens, const std::string& where) {
  for (const std::string& token : tokens) {
    if (!token.empty() && token.size() <= kMaxTokenBytes &&
        token.find_first_of(std::string_view(" \t\n\r\v\f\0", 7)) == token.npos) {
      continue;
    }
    throw CorpusError(where + ": the token '" + token.substr(0, 60) +
                      "' is empty, holds white space or is longer than " +
                      std::to_string(kMaxTokenBytes) + " bytes");
  }
}

std::unique_ptr<Tokenizer> wordpiece_from(const Part& root, const std::string& where) {
  const Part normalizer = root.part("normalizer");
  if (normalizer.type() != "BertNormalizer") {
    root.refuse("has WordPiece with the normalizer '" + normalizer.type() + "'");
  }
  normalizer.allow_only(
      {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  WordPieceOptions options{.lowercase = normalizer.flag("lowercase")};
  normalizer.expect("clean_text", {true});
  normalizer.expect("handle_chinese_chars", {true});
  normalizer.expect("strip_accents", {nullptr, options.lowercase});
  const Part pre_tokenizer = root.part("pre_tokenizer");
  if (pre_tokenizer.type() != "BertPreTokenizer") {
    root.refuse("has WordPiece with the pre_tokenizer '" + pre_tokenizer.type() + "'");
  }
  pre_tokenizer.allow_only({"type"});
  const Part model = root.part("model");
  model.allow_only(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  model.expect("unk_token", {kBertNames.unk});
  model.expect("continuing_subword_prefix", {"##"});
  model.expect("max_input_chars_per_word", {100});
  std::vector<std::string> tokens = tokens_by_id(model.member("vocab"), where);
  add_tokens(root, where, tokens);
  check_wordpiece_tokens(tokens, where);
  return make_wordpiece(std::move(tokens), options, where);
}

// "a b", or ["a", "b"].
std::vector<ByteBpeModel::Merge> merges_of(const Part& model) {
  const Json& list = model.member("merges");
  if (!list.is_array()) model.refuse("has no list 'merges'");
  std::vector<ByteBpeModel::Merge> merges;
  for (const Json& entry : list) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      merges.push_back({entry[0].get<std::string>(), entry[1].get<std::string>()});
      continue;
    }
    const std::string text = entry.is_string() ? entry.get<std::string>() : std::string();
    const std::size_t space = text.find(' ');
    if (space == text.npos) {
      model.refuse("has merge " + std::to_string(merges.size() + 1) + " that is not two tokens");
    }
    merges.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  return merges;
}

std::unique_ptr<Tokenizer> byte_bpe_from(const Part& root, const std::string& where) {
  if (!root.is_null("normalizer")) {
    root.refuse("has BPE with the normalizer '" + root.part("normalizer").type() + "'");
  }
  const Part pre_tokenizer = root.part("pre_tokenizer");
  if (pre_tokenizer.type() != "ByteLevel") {
    root.refuse("has BPE with the pre_tokenizer '" + pre_tokenizer.type() + "'");
  }
  pre_tokenizer.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  pre_tokenizer.expect("use_regex", {true});
  const Part model = root.part("model");
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  model.expect("dropout", {nullptr});
  model.expect("continuing_subword_prefix", {nullptr, ""});
  model.expect("end_of_word_suffix", {nullptr, ""});
  model.expect("byte_fallback", {false});
  model.expect("ignore_merges", {false});
  // unk_token and fuse_unk change nothing: every byte has a token.
  ByteBpeModel parts;
  parts.options.add_prefix_space = pre_tokenizer.flag("add_prefix_space");
  parts.tokens = tokens_by_id(model.member("vocab"), where);
  parts.merges = merges_of(model);
  add_tokens(root, where, parts.tokens);
  return make_byte_bpe(std::move(parts), where);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& file) {
  const Json json = read_json_file(file, kMaxFileBytes, "tokenizer");
  const std::string where = "tokenizer " + file.string();
  const Part root(json, where, "");
  root.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                   "pre_tokenizer", "post_processor", "decoder", "model"});
  check_bystanders(root);
  const std::string type = root.part("model").type();
  if (type == "WordPiece") return wordpiece_from(root, where);
  if (type == "BPE") return byte_bpe_from(root, where);
  root.refuse("has the model '" + type + "'");
}

}  // namespace tupelo

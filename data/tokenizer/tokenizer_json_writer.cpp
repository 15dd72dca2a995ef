#include <nlohmann/json.hpp>

#include "data/tokenizer/special_names.h"
#include "data/tokenizer/tokenizer_json.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;

Json added_token(const std::vector<std::string>& tokens, std::uint32_t id, bool takes_left_space) {
  return {{"id", id},
          {"content", tokens[id]},
          {"single_word", false},
          {"lstrip", takes_left_space},
          {"rstrip", false},
          {"normalized", false},
          {"special", true}};
}

// HF wants them by id. As in RoBERTa's own file, its mask takes the space before it.
Json added_tokens(const std::vector<std::string>& tokens, const SpecialTokens& special,
                  bool mask_takes_left_space) {
  std::vector<std::uint32_t> ids{special.pad, special.unk, special.cls, special.sep, special.mask};
  std::sort(ids.begin(), ids.end());
  Json list = Json::array();
  for (const std::uint32_t id : ids) {
    list.push_back(added_token(tokens, id, mask_takes_left_space && id == special.mask));
  }
  return list;
}

// Without the search for an equal key that inserting would cost for each.
Json vocabulary(const std::vector<std::string>& tokens) {
  Json::object_t object;
  object.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) object.push_back({tokens[id], id});
  return Json(std::move(object));
}

Json named(const std::vector<std::string>& tokens, std::uint32_t id) {
  return Json::array({tokens[id], id});
}

Json file_frame(Json added) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)}};
}

std::string text_of(const Json& json) { return json.dump(1) + "\n"; }

Json byte_level() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", true},
          {"trim_offsets", true},
          {"use_regex", true}};
}

Json names_of(const SpecialNames& names) {
  return {{"pad_token", names.pad},
          {"unk_token", names.unk},
          {"cls_token", names.cls},
          {"sep_token", names.sep},
          {"mask_token", names.mask}};
}

}  // namespace

std::vector<TokenizerFile> wordpiece_files(const std::vector<std::string>& tokens,
                                           const SpecialTokens& special,
                                           const WordPieceOptions& options) {
  std::string lines;
  for (const std::string& token : tokens) lines.append(token) += '\n';
  Json file = file_frame(added_tokens(tokens, special, false));
  file["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"handle_chinese_chars", true},
                        {"strip_accents", nullptr},
                        {"lowercase", options.lowercase}};
  file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  file["post_processor"] = {{"type", "BertProcessing"},
                            {"sep", named(tokens, special.sep)},
                            {"cls", named(tokens, special.cls)}};
  file["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  file["model"] = {{"type", "WordPiece"},
                   {"unk_token", kBertNames.unk},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 100},
                   {"vocab", vocabulary(tokens)}};
  // The keys behind the first are those of HF's BertTokenizer.
  const Json config = {{"kind", kWordPieceKind},
                       {"tokenizer_class", "BertTokenizer"},
                       {"do_lower_case", options.lowercase},
                       {"tokenize_chinese_chars", true},
                       {"strip_accents", nullptr}};
  return {{kTokenizerConfig, text_of(config)},
          {kVocabularyText, lines},
          {kTokenizerJson, text_of(file)}};
}

std::vector<TokenizerFile> byte_bpe_files(const ByteBpeModel& model, const SpecialTokens& special) {
  const std::vector<std::string>& tokens = model.tokens;
  Json file = file_frame(added_tokens(tokens, special, true));
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = byte_level();
  file["pre_tokenizer"]["add_prefix_space"] = model.options.add_prefix_space;
  file["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", named(tokens, special.sep)},
                            {"cls", named(tokens, special.cls)},
                            {"trim_offsets", true},
                            {"add_prefix_space", model.options.add_prefix_space}};
  file["decoder"] = byte_level();
  Json merges = Json::array();
  for (const auto& [left, right] : model.merges) {
    merges.push_back(std::string(left).append(" ").append(right));
  }
  file["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", ""},
                   {"end_of_word_suffix", ""},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false},
                   {"vocab", vocabulary(tokens)},
                   {"merges", std::move(merges)}};
  // The keys behind the first are those of HF's RobertaTokenizer.
  Json config = {{"kind", kByteBpeKind},
                 {"tokenizer_class", "RobertaTokenizer"},
                 {"add_prefix_space", model.options.add_prefix_space}};
  config.update(names_of(kRobertaNames));
  return {{kTokenizerConfig, text_of(config)}, {kTokenizerJson, text_of(file)}};
}

std::vector<TokenizerFile> sentencepiece_files(const std::string& model) {
  return {{kTokenizerConfig, text_of({{"kind", kSentencePieceKind}})},
          {kSentencePieceModel, model}};
}

}  // namespace tupelo

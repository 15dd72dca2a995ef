#include "data/stored_tokenizer.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "data/corpus_files.h"
#include "data/errors.h"

namespace tupelo {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxConfigBytes = 64 * 1024;
constexpr const char* kConfigFile = "tokenizer_config.json";

}  // namespace

void store_tokenizer(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) throw std::system_error(error, "cannot create " + folder.string());
  for (const TokenizerFile& file : tokenizer.files()) {
    write_corpus_file(folder / file.name, file.content);
  }
}

std::unique_ptr<Tokenizer> load_stored_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kConfigFile;
  const Json config = Json::parse(read_corpus_text(file, kMaxConfigBytes), nullptr, false);
  const Json kind = config.is_object() && config.contains("kind") ? config["kind"] : Json();
  if (kind == kByteBpeKind) return load_tokenizer_json(folder / "tokenizer.json");
  if (kind == kSentencePieceKind) return load_sentencepiece(folder / "sentencepiece.model");
  if (kind != kWordPieceKind) {
    throw CorpusError(file.string() +
                      ": key 'kind' is not one of \"wordpiece\", \"byte-bpe\", \"sentencepiece\"");
  }
  if (!config.contains("do_lower_case") || !config["do_lower_case"].is_boolean()) {
    throw CorpusError(file.string() + ": key 'do_lower_case' is not true or false");
  }
  return load_wordpiece(folder / "vocab.txt", {.lowercase = config["do_lower_case"]});
}

}  // namespace tupelo

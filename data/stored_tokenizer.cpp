#include "data/stored_tokenizer.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "data/corpus_files.h"
#include "data/errors.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxConfigBytes = 64 * 1024;
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kVocabularyFile = "vocab.txt";

}  // namespace

void store_wordpiece(const std::filesystem::path& folder, const std::string& vocabulary,
                     const WordPieceOptions& options) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) throw std::system_error(error, "cannot create " + folder.string());
  // The keys after the first are those of Hugging Face's BertTokenizer, which reads this folder as
  // well.
  const Json config = {{"kind", "wordpiece"},
                       {"tokenizer_class", "BertTokenizer"},
                       {"do_lower_case", options.lowercase},
                       {"tokenize_chinese_chars", true},
                       {"strip_accents", nullptr}};
  write_corpus_file(folder / kConfigFile, config.dump(1) + "\n");
  write_corpus_file(folder / kVocabularyFile, vocabulary);
}

std::unique_ptr<Tokenizer> load_stored_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kConfigFile;
  const Json config = Json::parse(read_corpus_text(file, kMaxConfigBytes), nullptr, false);
  if (!config.is_object() || !config.contains("kind") || config["kind"] != "wordpiece") {
    throw CorpusError(file.string() + ": key 'kind' is not \"wordpiece\"");
  }
  if (!config.contains("do_lower_case") || !config["do_lower_case"].is_boolean()) {
    throw CorpusError(file.string() + ": key 'do_lower_case' is not true or false");
  }
  return load_wordpiece(folder / kVocabularyFile, {.lowercase = config["do_lower_case"]});
}

}  // namespace tupelo

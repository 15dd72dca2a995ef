#include "data/tokenizer/load_tokenizer.h"

#include <stdexcept>

#include "data/tokenizer/json_file.h"
#include "data/tokenizer/tokenizer_json.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVocabularyJson = "vocab.json";
constexpr const char* kMergesText = "merges.txt";
constexpr const char* kFolderInCorpus = "tokenizer";
constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;  // some list all added tokens

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

std::unique_ptr<Tokenizer> load_vocabulary_text(const fs::path& file, WordPieceOptions options) {
  const fs::path config_file = file.parent_path() / kTokenizerConfig;
  if (is_file(config_file)) {
    const auto config = read_json_file(config_file, kMaxConfigBytes, "tokenizer configuration");
    if (config.is_object() && config.contains("do_lower_case") &&
        config["do_lower_case"].is_boolean()) {
      options.lowercase = config["do_lower_case"].get<bool>();
    }
  }
  return load_wordpiece(file, options);
}

std::unique_ptr<Tokenizer> load_folder(const fs::path& folder,
                                       const LoadTokenizerOptions& options) {
  if (is_file(folder / kTokenizerJson)) return load_tokenizer_json(folder / kTokenizerJson);
  if (is_file(folder / kVocabularyJson)) {
    return load_byte_bpe(folder / kVocabularyJson, folder / kMergesText, options.byte_bpe);
  }
  if (is_file(folder / kSentencePieceModel)) {
    return load_sentencepiece(folder / kSentencePieceModel);
  }
  if (is_file(folder / kVocabularyText)) {
    return load_vocabulary_text(folder / kVocabularyText, options.wordpiece);
  }
  if (fs::is_directory(folder / kFolderInCorpus)) {
    return load_folder(folder / kFolderInCorpus, options);
  }
  throw std::invalid_argument(
      std::string("no tokenizer in the folder ") + folder.string() +
      ": it must hold tokenizer.json, or vocab.json and merges.txt, or sentencepiece.model, or "
      "vocab.txt");
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path,
                                          const LoadTokenizerOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return load_folder(path, options);
  if (!fs::exists(path, ignored)) {
    throw std::invalid_argument(
        std::string("no tokenizer at ") + path.string() +
        ": name a folder with one, tokenizer.json, vocab.json beside merges.txt, a SentencePiece "
        ".model, or vocab.txt");
  }
  if (path.filename() == kVocabularyJson || path.filename() == kMergesText) {
    return load_byte_bpe(path.parent_path() / kVocabularyJson, path.parent_path() / kMergesText,
                         options.byte_bpe);
  }
  if (path.extension() == ".json") return load_tokenizer_json(path);
  if (path.extension() == ".model") return load_sentencepiece(path);
  return load_vocabulary_text(path, options.wordpiece);
}

}  // namespace tupelo

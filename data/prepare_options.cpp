#include "data/prepare_options.h"

#include <algorithm>
#include <stdexcept>

#include "data/input/glob.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostShardTokens = std::uint64_t{256} << 20;
constexpr int kMostThreads = 1024;
constexpr std::uint64_t kLeastUnitBytes = 256, kMostUnitBytes = std::uint64_t{1} << 30;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

void check_language(const std::string& language) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  require(!language.empty() && language.size() <= 32 &&
              std::all_of(language.begin(), language.end(), allowed),
          "language '" + language + "' is not a short tag such as zh or en-GB");
}

void check_segmenter(const PrepareOptions& options) {
  require(!options.pre_segmented || !options.segmenter_dictionary,
          "pre-segmented input needs no dictionary to find its words: give one of the two");
  require(options.user_dictionaries.empty() || options.segmenter_dictionary,
          "user dictionaries only add to a dictionary, but none was given");
}

void check_values(const PrepareOptions& options) {
  require(!options.inputs.empty(), "no input was given: name files or folders of text");
  require(!options.output.empty(), "no output was given: name the folder of the new corpus");
  require(options.vocab_file.has_value() != options.train_vocab_size.has_value(),
          "exactly one of a vocabulary file and a vocabulary size to train must be given");
  require(!options.text_key.empty(), "the JSON key of the text is empty");
  require(options.text_column.find_first_not_of('0') != std::string::npos &&
              options.text_column.find('\t') == std::string::npos,
          "text column '" + options.text_column + "' is neither a name nor a number from 1");
  require(options.held_out >= 0 && options.held_out < 1, "the held-out fraction " +
                                                             std::to_string(options.held_out) +
                                                             " is not at least 0 and less than 1");
  require(options.shard_tokens >= 1 && options.shard_tokens <= kMostShardTokens,
          "shard tokens " + std::to_string(options.shard_tokens) + " is not between 1 and " +
              std::to_string(kMostShardTokens));
  require(options.threads >= 1 && options.threads <= kMostThreads,
          "threads " + std::to_string(options.threads) + " is not between 1 and " +
              std::to_string(kMostThreads));
  require(options.unit_bytes >= kLeastUnitBytes && options.unit_bytes <= kMostUnitBytes,
          "units of " + std::to_string(options.unit_bytes) + " bytes are not between " +
              std::to_string(kLeastUnitBytes) + " and " + std::to_string(kMostUnitBytes));
  check_language(options.language);
  check_segmenter(options);
  check_cleaning_options(options.cleaning);
}

// An output inside an input would be read as text by the next run.
void check_place(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) return;
  const fs::path folder = fs::canonical(input);
  const fs::path place = fs::weakly_canonical(fs::absolute(output));
  const auto differ = std::mismatch(folder.begin(), folder.end(), place.begin(), place.end());
  require(differ.first != folder.end(), std::string("output ") + output.string() +
                                            " lies inside the input folder " + input.string());
}

void check_places(const PrepareOptions& options) {
  for (const fs::path& input : options.inputs) {
    check_place(options.output, input);
    if (!has_glob(input)) continue;
    for (const fs::path& found : expand_glob(input)) check_place(options.output, found);
  }
}

}  // namespace

void check_prepare_options(const PrepareOptions& options) {
  check_values(options);
  check_places(options);
}

}  // namespace tupelo

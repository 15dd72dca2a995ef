// Which tokens of a corpus begin a word.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/segmenter/segmenter.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// A text as a corpus takes it, and where its words end when more than the tokenizer says.
struct WordText {
  std::string text;
  std::optional<std::vector<std::size_t>> word_ends;
};

// Words are the tokenizer's own, or a dictionary's, or set apart by spaces in the input. Immutable
// after construction; any thread may call the members.
class WordRules {
 public:
  // No dictionary and not `presegmented`: the tokenizer's own. Throws as Segmenter does.
  WordRules(const std::optional<std::filesystem::path>& dictionary,
            const std::vector<std::filesystem::path>& user_dictionaries, bool presegmented);

  // "": the tokenizer's own words; "spaces"; "dictionary".
  std::string kind() const;
  // nullptr without a dictionary.
  const Segmenter* segmenter() const { return segmenter_.get(); }

  // Without the spaces that set words apart.
  std::string plain_text(std::string text) const;
  WordText words_of(std::string text) const;

  // Appends ids and word flags of words_of()'s result.
  static void encode(const Tokenizer& tokenizer, const WordText& words,
                     std::vector<std::uint32_t>& ids, std::vector<std::uint8_t>& word_start);

 private:
  std::unique_ptr<const Segmenter> segmenter_;
  bool presegmented_;
};

}  // namespace tupelo

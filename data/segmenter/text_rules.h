// Which tokens of a corpus begin a word or a sentence.
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

// A text as a corpus takes it, where its words end when more than the tokenizer says, and where its
// sentences end when it is asked for.
struct DividedText {
  std::string text;
  std::optional<std::vector<std::size_t>> word_ends, sentence_ends;
};

// Words are the tokenizer's own, or a dictionary's, or set apart by spaces in the input. Immutable
// after construction; any thread may call the members.
class TextRules {
 public:
  // No dictionary and not `presegmented`: the tokenizer's own words. `sentences`: those, too.
  // Throws as Segmenter does.
  TextRules(const std::optional<std::filesystem::path>& dictionary,
            const std::vector<std::filesystem::path>& user_dictionaries, bool presegmented,
            bool sentences = false);

  bool finds_sentences() const { return sentences_; }
  // "": the tokenizer's own words; "spaces"; "dictionary".
  std::string word_kind() const;
  // nullptr without a dictionary.
  const Segmenter* segmenter() const { return segmenter_.get(); }

  // Without the spaces that set words apart.
  std::string plain_text(std::string text) const;
  DividedText divide(std::string text) const;

  // Appends ids and word flags of divide()'s result, and its sentence flags if it has sentences.
  static void encode(const Tokenizer& tokenizer, const DividedText& words,
                     std::vector<std::uint32_t>& ids, std::vector<std::uint8_t>& word_start,
                     std::vector<std::uint8_t>& sentence_start);

 private:
  std::unique_ptr<const Segmenter> segmenter_;
  bool presegmented_, sentences_;
};

}  // namespace tupelo

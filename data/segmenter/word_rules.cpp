#include "data/segmenter/word_rules.h"

#include <span>
#include <utility>

#include "data/segmenter/presegmented_text.h"
#include "data/segmenter/word_alignment.h"

namespace tupelo {

WordRules::WordRules(const std::optional<std::filesystem::path>& dictionary,
                     const std::vector<std::filesystem::path>& user_dictionaries, bool presegmented)
    : presegmented_(presegmented) {
  if (dictionary) segmenter_ = std::make_unique<const Segmenter>(*dictionary, user_dictionaries);
}

std::string WordRules::kind() const {
  if (segmenter_) return "dictionary";
  return presegmented_ ? "spaces" : "";
}

std::string WordRules::plain_text(std::string text) const {
  if (!presegmented_) return text;
  std::vector<std::size_t> ignored;
  return join_presegmented(text, ignored);
}

WordText WordRules::words_of(std::string text) const {
  WordText words{std::move(text), std::nullopt};
  if (presegmented_) {
    words.text = join_presegmented(words.text, words.word_ends.emplace());
  } else if (segmenter_) {
    segmenter_->segment(words.text, words.word_ends.emplace());
  }
  return words;
}

void WordRules::encode(const Tokenizer& tokenizer, const WordText& words,
                       std::vector<std::uint32_t>& ids, std::vector<std::uint8_t>& word_start) {
  if (!words.word_ends) {
    tokenizer.encode(words.text, ids, &word_start);
    return;
  }
  const std::size_t before = word_start.size();
  std::vector<TextSpan> spans;
  tokenizer.encode_with_spans(words.text, ids, word_start, spans);
  align_word_starts(words.text, *words.word_ends, spans, std::span(word_start).subspan(before));
}

}  // namespace tupelo

#include "data/segmenter/text_rules.h"

#include <span>
#include <utility>

#include "data/segmenter/presegmented_text.h"
#include "data/segmenter/sentence_ends.h"
#include "data/segmenter/word_alignment.h"

namespace tupelo {

TextRules::TextRules(const std::optional<std::filesystem::path>& dictionary,
                     const std::vector<std::filesystem::path>& user_dictionaries, bool presegmented,
                     bool sentences)
    : presegmented_(presegmented), sentences_(sentences) {
  if (dictionary) segmenter_ = std::make_unique<const Segmenter>(*dictionary, user_dictionaries);
}

std::string TextRules::word_kind() const {
  if (segmenter_) return "dictionary";
  return presegmented_ ? "spaces" : "";
}

std::string TextRules::plain_text(std::string text) const {
  if (!presegmented_) return text;
  std::vector<std::size_t> ignored;
  return join_presegmented(text, ignored);
}

DividedText TextRules::divide(std::string text) const {
  DividedText divided{std::move(text), std::nullopt, std::nullopt};
  if (presegmented_) {
    divided.text = join_presegmented(divided.text, divided.word_ends.emplace());
  } else if (segmenter_) {
    segmenter_->segment(divided.text, divided.word_ends.emplace());
  }
  if (sentences_) find_sentences(divided.text, divided.sentence_ends.emplace());
  return divided;
}

void TextRules::encode(const Tokenizer& tokenizer, const DividedText& divided,
                       std::vector<std::uint32_t>& ids, std::vector<std::uint8_t>& word_start,
                       std::vector<std::uint8_t>& sentence_start) {
  if (!divided.word_ends && !divided.sentence_ends) {
    tokenizer.encode(divided.text, ids, &word_start);
    return;
  }
  const std::size_t before = word_start.size();
  std::vector<TextSpan> spans;
  tokenizer.encode_with_spans(divided.text, ids, word_start, spans);
  if (divided.word_ends) {
    align_word_starts(divided.text, *divided.word_ends, spans,
                      std::span(word_start).subspan(before));
  }
  if (divided.sentence_ends) {
    append_sentence_starts(divided.text, *divided.sentence_ends, spans, sentence_start);
  }
}

}  // namespace tupelo

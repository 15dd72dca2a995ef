#include "data/tokenizer/byte_level_splitter.h"

namespace tupelo {

ByteLevelClasses::ByteLevelClasses() : classes_(0x110000, CharacterClass::kSymbol) {
  for (const auto& range : byte_level_tables::class_ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) classes_[c] = range.character_class;
  }
}

std::string_view text_to_split(std::string_view text, bool add_prefix_space, std::string& copy) {
  if (!is_valid_utf8(text)) text = copy = well_formed(text);
  if (add_prefix_space && !text.empty() && text.front() != ' ') {
    text = copy = std::string(" ").append(text);
  }
  return text;
}

std::size_t contraction_bytes(const char* at, const char* end) {
  const std::string_view text(at, static_cast<std::size_t>(end - at));
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

}  // namespace tupelo

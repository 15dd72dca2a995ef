#include "data/tokenizer/character_table.h"

#include <algorithm>
#include <initializer_list>

namespace tupelo {
namespace {

using bert_tables::CharacterClass;

constexpr char32_t kCodePoints = 0x110000;
constexpr char32_t kFirstSyllable = 0xAC00;
constexpr char32_t kLastSyllable = 0xD7A3;

CharacterAction action_for(CharacterClass character_class) {
  switch (character_class) {
    case CharacterClass::kRemoved:
    case CharacterClass::kMark:
      return CharacterAction::kDrop;
    case CharacterClass::kSpace:
      return CharacterAction::kEndWord;
    case CharacterClass::kPunctuation:
    case CharacterClass::kCjk:
      return CharacterAction::kIsolate;
    case CharacterClass::kStarterMark:
      return CharacterAction::kFence;
    case CharacterClass::kOther:
      break;
  }
  return CharacterAction::kAppend;
}

}  // namespace

CharacterTable::CharacterTable(bool uncased,
                               const std::function<std::uint32_t(char32_t)>& isolated_payload)
    : entries_(kCodePoints), isolated_payload_(&isolated_payload) {
  set_classes(bert_tables::class_ranges());
  if (uncased) {
    set_classes(bert_tables::mark_ranges());
    for (const auto& range : bert_tables::combining_ranges()) {
      for (char32_t c = range.first; c <= range.last; ++c) {
        set(c, CharacterAction::kAppendInOrder, range.combining_class);
      }
    }
    for (char32_t c = kFirstSyllable; c <= kLastSyllable; ++c) {
      set(c, CharacterAction::kSplitHangul);
    }
    set_mappings();
  }
  isolated_payload_ = nullptr;
}

void CharacterTable::set(char32_t code_point, CharacterAction action, std::uint32_t payload) {
  entries_[code_point].packed = payload << 3 | static_cast<std::uint32_t>(action);
}

void CharacterTable::set_classes(std::span<const bert_tables::ClassRange> ranges) {
  for (const auto& range : ranges) {
    const CharacterAction action = action_for(range.character_class);
    for (char32_t c = range.first; c <= range.last; ++c) {
      set(c, action, action == CharacterAction::kIsolate ? (*isolated_payload_)(c) : 0);
    }
  }
}

void CharacterTable::set_mappings() {
  for (const auto& run : bert_tables::mapping_runs()) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      map(run.first + i * run.step, {run.target + i * run.target_step});
    }
  }
  for (const auto& pair : bert_tables::mapping_pairs()) map(pair.from, {pair.to});
  for (const auto& text : bert_tables::mapping_texts())
    map(text.from, {text.to[0], text.to[1], text.to[2]});
}

void CharacterTable::map(char32_t from, std::initializer_list<char32_t> to) {
  // Ideographs are isolated before they are decomposed, punctuation after: a letter whose
  // decomposition is punctuation (U+2260) is therefore isolated too.
  const char32_t first = *to.begin();
  if (entries_[from].action() == CharacterAction::kIsolate ||
      character_class(first) == CharacterClass::kPunctuation) {
    set(from, CharacterAction::kIsolate, (*isolated_payload_)(first));
    return;
  }
  MappedText text;
  for (const char32_t c : to) {
    if (c == 0) break;
    text.size = static_cast<std::uint8_t>(text.size + write_utf8(c, text.bytes + text.size));
    ++text.characters;
  }
  set(from, CharacterAction::kMap, static_cast<std::uint32_t>(mappings_.size()));
  mappings_.push_back(text);
}

CharacterClass character_class(char32_t code_point) {
  const auto ranges = bert_tables::class_ranges();
  const auto range = std::lower_bound(ranges.begin(), ranges.end(), code_point,
                                      [](const auto& r, char32_t c) { return r.last < c; });
  const bool inside = range != ranges.end() && range->first <= code_point;
  return inside ? range->character_class : CharacterClass::kOther;
}

}  // namespace tupelo

// One look-up per character: what to do with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/tokenizer/bert_tables.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {

enum class CharacterAction : std::uint32_t {
  kAppend,         // to the word, as it stands
  kDrop,           // nothing
  kEndWord,        // white space
  kIsolate,        // a word of its own; payload: what the builder of the table wanted to know
  kMap,            // append other text; payload: index for mapping()
  kSplitHangul,    // append the jamo of the syllable
  kAppendInOrder,  // append, in canonical order; payload: combining class, never 0
  kFence,          // nothing, but marks behind it do not move before it
};

struct CharacterEntry {
  std::uint32_t packed = 0;
  CharacterAction action() const { return static_cast<CharacterAction>(packed & 7); }
  std::uint32_t payload() const { return packed >> 3; }
};

struct MappedText {
  char bytes[3 * kMaxUtf8Bytes];
  std::uint8_t size = 0;
  std::uint8_t characters = 0;
};

// Immutable after construction. About 4.4 MB, of which a text touches only its own scripts' part.
class CharacterTable {
 public:
  static constexpr std::uint32_t kMaxPayload = (1u << 29) - 1;

  // `isolated_payload` is asked once for each isolated character, after normalisation.
  CharacterTable(bool uncased, const std::function<std::uint32_t(char32_t)>& isolated_payload);

  // `code_point` <= U+10FFFF.
  CharacterEntry operator[](char32_t code_point) const { return entries_[code_point]; }
  const MappedText& mapping(std::uint32_t payload) const { return mappings_[payload]; }

 private:
  void set(char32_t code_point, CharacterAction action, std::uint32_t payload = 0);
  void set_classes(std::span<const bert_tables::ClassRange> ranges);
  void set_mappings();
  void map(char32_t from, std::initializer_list<char32_t> to);

  std::vector<CharacterEntry> entries_;
  std::vector<MappedText> mappings_;
  const std::function<std::uint32_t(char32_t)>* isolated_payload_;  // during construction
};

// The class of a character, cased: by search, for those who ask seldom.
bert_tables::CharacterClass character_class(char32_t code_point);

}  // namespace tupelo

#include "data/tokenizer/word_splitter.h"

namespace tupelo {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// 0 for a starter.
std::uint32_t combining_class(const CharacterTable& table, char32_t code_point) {
  const CharacterEntry entry = table[code_point];
  return entry.action() == CharacterAction::kAppendInOrder ? entry.payload() : 0;
}

}  // namespace

void WordBuffer::append_in_order(const CharacterTable& table, const char* bytes, std::size_t size,
                                 std::uint32_t new_class) {
  std::size_t place = size_;
  while (place > fence_) {
    std::size_t previous = place - 1;
    while (is_continuation(bytes_[previous])) --previous;
    const char32_t code_point = read_utf8(bytes_ + previous, bytes_ + place).code_point;
    if (combining_class(table, code_point) <= new_class) break;
    place = previous;
  }
  ++characters_;
  if (too_long()) return;
  std::memmove(bytes_ + place + size, bytes_ + place, size_ - place);
  std::memcpy(bytes_ + place, bytes, size);
  size_ += size;
}

void append_hangul(WordBuffer& word, char32_t syllable) {
  constexpr char32_t kFirstSyllable = 0xAC00;
  constexpr char32_t kVowels = 21, kTrails = 28;
  const char32_t index = syllable - kFirstSyllable;
  word.append(0x1100 + index / (kVowels * kTrails));
  word.append(0x1161 + index / kTrails % kVowels);
  if (index % kTrails != 0) word.append(0x11A7 + index % kTrails);
}

}  // namespace tupelo

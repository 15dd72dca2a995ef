// Text to words, as BERT's normaliser and pre-tokenizer see them.
#pragma once

#include <cstring>
#include <string_view>

#include "data/tokenizer/character_table.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {

// A normalised word while it grows. Only words that can be cut into pieces are kept: past
// kMaxCharacters the bytes no longer matter, only that the word is too long.
class WordBuffer {
 public:
  static constexpr std::size_t kMaxCharacters = 100;

  bool empty() const { return characters_ == 0; }
  bool too_long() const { return characters_ > kMaxCharacters; }
  std::string_view view() const { return {bytes_, size_}; }

  void clear() {
    size_ = 0;
    characters_ = 0;
    fence_ = 0;
  }

  void append(const char* bytes, std::size_t size, std::size_t characters = 1) {
    characters_ += characters;
    if (too_long()) return;
    std::memcpy(bytes_ + size_, bytes, size);
    size_ += size;
  }

  void append(char32_t code_point) {
    char bytes[kMaxUtf8Bytes];
    append(bytes, write_utf8(code_point, bytes));
  }

  // Appends a combining mark, before those at the end of the word that have a higher class.
  void append_in_order(const CharacterTable& table, const char* bytes, std::size_t size,
                       std::uint32_t combining_class);

  // Marks appended later stay behind everything that is here now.
  void fence() { fence_ = size_; }

 private:
  std::size_t size_ = 0;
  std::size_t characters_ = 0;
  std::size_t fence_ = 0;
  char bytes_[kMaxCharacters * kMaxUtf8Bytes];
};

void append_hangul(WordBuffer& word, char32_t syllable);

// Calls, in text order, one of
//   sink.isolated(payload)     an ideograph or a punctuation mark
//   sink.word(bytes)           a word of at most kMaxCharacters characters, valid during the call
//   sink.long_word()           a longer one
// and, right before each of them, where there is such a member,
//   sink.source(begin, end)    the bytes of the text that it came from
template <class Sink>
void split_words(const CharacterTable& table, std::string_view text, Sink&& sink) {
  WordBuffer word;
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* word_begin = at;
  const auto tell_source = [&](const char* from, const char* to) {
    if constexpr (requires { sink.source(std::size_t{}, std::size_t{}); }) {
      sink.source(static_cast<std::size_t>(from - text.data()),
                  static_cast<std::size_t>(to - text.data()));
    }
  };
  const auto end_word = [&] {
    if (word.empty()) return;
    tell_source(word_begin, at);
    if (word.too_long()) {
      sink.long_word();
    } else {
      sink.word(word.view());
    }
    word.clear();
  };
  while (at != end) {
    const Utf8Character character = read_utf8(at, end);
    const CharacterEntry entry = table[character.code_point];
    switch (entry.action()) {
      case CharacterAction::kAppend:
        word.append(at, character.bytes);
        break;
      case CharacterAction::kDrop:
        if (word.empty()) word_begin = at + character.bytes;
        break;
      case CharacterAction::kEndWord:
        end_word();
        word_begin = at + character.bytes;
        break;
      case CharacterAction::kIsolate:
        end_word();
        word_begin = at + character.bytes;
        tell_source(at, word_begin);
        sink.isolated(entry.payload());
        break;
      case CharacterAction::kMap: {
        const MappedText& text_of = table.mapping(entry.payload());
        word.append(text_of.bytes, text_of.size, text_of.characters);
        break;
      }
      case CharacterAction::kSplitHangul:
        append_hangul(word, character.code_point);
        break;
      case CharacterAction::kAppendInOrder:
        word.append_in_order(table, at, character.bytes, entry.payload());
        break;
      case CharacterAction::kFence:
        if (word.empty()) word_begin = at + character.bytes;
        word.fence();
        break;
    }
    at += character.bytes;
  }
  end_word();
}

}  // namespace tupelo

#include "data/segmenter/word_alignment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/segmenter/presegmented_text.h"

namespace tupelo::word_alignment_test {
namespace {

using Flags = std::vector<std::uint8_t>;
using Parts = std::vector<std::string>;

std::vector<std::size_t> ends_of(const Parts& words) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (const std::string& word : words) ends.push_back(at += word.size());
  return ends;
}

// Tokens given by their text, in order; what stands between them belongs to none.
Flags align(const std::string& text, const Parts& words, const Parts& tokens, Flags flags) {
  std::vector<TextSpan> spans;
  std::size_t at = 0;
  for (const std::string& token : tokens) {
    at = text.find(token, at);
    spans.push_back({at, at + token.size()});
    at += token.size();
  }
  align_word_starts(text, ends_of(words), spans, flags);
  return flags;
}

TEST(WordAlignment, JoinsTheCharactersOfAWord) {
  EXPECT_EQ(
      align("研究生命的", {"研究", "生命", "的"}, {"研", "究", "生", "命", "的"}, {1, 1, 1, 1, 1}),
      (Flags{1, 0, 1, 0, 1}));
}

TEST(WordAlignment, KeepsTheTokenizersWordsOfOtherScripts) {
  // The segmenter takes "naïve" for three words.
  std::vector<TextSpan> spans{{0, 6}, {0, 6}, {7, 11}};
  Flags flags{1, 0, 1};
  align_word_starts("naïve идёт", ends_of({"na", "ï", "ve", " ", "и", "д", "ё", "т"}), spans,
                    flags);
  EXPECT_EQ(flags, (Flags{1, 0, 1}));
}

TEST(WordAlignment, JoinsPunctuationInsideAWordOfTheDictionary) {
  EXPECT_EQ(align("用 c++ 吧", {"用", " ", "c++", " ", "吧"}, {"用", "c", "+", "+", "吧"},
                  {1, 1, 1, 1, 1}),
            (Flags{1, 1, 0, 0, 1}));
}

TEST(WordAlignment, WhatReachesAcrossWordsStaysByItself) {
  // Words 甲乙 丙丁戊, tokens 甲 乙丙 丁 戊.
  EXPECT_EQ(align("甲乙丙丁戊", {"甲乙", "丙丁戊"}, {"甲", "乙丙", "丁", "戊"}, {1, 0, 0, 0}),
            (Flags{1, 1, 1, 0}));
}

TEST(WordAlignment, ByteLevelTokensOfOneCharacterStayTogether) {
  // One word of the pre-tokenizer: the first character in three tokens, the second in two, a token
  // that ends one character and begins another.
  const std::string text = "甲乙丙丁";
  const std::vector<TextSpan> spans{{0, 1}, {1, 2}, {2, 3}, {3, 5}, {5, 7}, {7, 9}, {9, 12}};
  Flags flags{1, 0, 0, 0, 0, 0, 0};
  align_word_starts(text, ends_of({"甲", "乙丙", "丁"}), spans, flags);
  EXPECT_EQ(flags, (Flags{1, 0, 0, 1, 0, 0, 1}));
  flags = {1, 0, 0, 0, 0, 0, 0};
  align_word_starts(text, ends_of({"甲乙", "丙丁"}), spans, flags);
  EXPECT_EQ(flags, (Flags{1, 0, 0, 1, 0, 0, 1}));
}

TEST(WordAlignment, ASpaceInsideATokenBelongsToTheWordBehindIt) {
  const std::string text = "the 世界 和 world";
  const std::vector<TextSpan> spans{{0, 3}, {3, 7}, {7, 10}, {10, 14}, {14, 17}, {17, 20}};
  Flags flags{1, 1, 0, 1, 1, 0};
  align_word_starts(text, ends_of({"the", " ", "世界", " ", "和", " ", "world"}), spans, flags);
  EXPECT_EQ(flags, (Flags{1, 1, 0, 1, 1, 0}));
}

struct Joined {
  std::string text;
  Parts words;
  bool operator==(const Joined&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Joined& joined) {
  for (const std::string& word : joined.words) out << "[" << word << "]";
  return out;
}

Joined join(const std::string& segmented) {
  std::vector<std::size_t> ends;
  Joined joined{join_presegmented(segmented, ends), {}};
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    joined.words.push_back(joined.text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, joined.text.size());
  return joined;
}

TEST(PresegmentedText, SpacesBetweenChineseWordsGo) {
  EXPECT_EQ(join("研究  生命 的 起源 。"),
            (Joined{"研究生命的起源。", {"研究", "生命", "的", "起源", "。"}}));
}

TEST(PresegmentedText, SpacesBetweenOtherWordsStay) {
  EXPECT_EQ(join("用 deep  learning 吧 , e.g. this"),
            (Joined{"用deep  learning吧, e.g. this",
                    {"用", "deep", "  ", "learning", "吧", ",", " ", "e.g.", " ", "this"}}));
}

TEST(PresegmentedText, LinesStandAlone) {
  EXPECT_EQ(
      join(" 中国 \n 人民 \n\na b \n"),
      (Joined{"中国\n人民\n\na b\n", {"中国", "\n", "人民", "\n", "\n", "a", " ", "b", "\n"}}));
  EXPECT_EQ(join("   "), (Joined{"", {}}));
}

}  // namespace
}  // namespace tupelo::word_alignment_test

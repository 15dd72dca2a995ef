#include "data/segmenter/sentence_ends.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tupelo::sentence_ends_test {
namespace {

using Parts = std::vector<std::string>;

Parts sentences_of(const std::string& text) {
  std::vector<std::size_t> ends;
  find_sentences(text, ends);
  Parts parts;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    EXPECT_GT(end, begin);
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return parts;
}

void expect_whole(const std::string& text) { EXPECT_EQ(sentences_of(text), Parts{text}); }

TEST(SentenceEnds, ChineseMarksEndThem) {
  EXPECT_EQ(sentences_of("春天来了。风吹过吗？是的！！山谷"),
            (Parts{"春天来了。", "风吹过吗？", "是的！！", "山谷"}));
  EXPECT_EQ(sentences_of("他走了……再见"), (Parts{"他走了……", "再见"}));
  expect_whole("等等…再说");
  expect_whole("春天；风，山谷：云、月");
}

TEST(SentenceEnds, WhatClosesGoesWithThem) {
  EXPECT_EQ(sentences_of("他说：“你好。”我走了。（完。）好"),
            (Parts{"他说：“你好。”", "我走了。", "（完。）", "好"}));
  expect_whole("“你好！”，他说");
}

TEST(SentenceEnds, EnglishMarksNeedASpaceAndNoSmallLetterBehindIt) {
  EXPECT_EQ(sentences_of("He left. She stayed! \"Why?\" 3 men (all old.) Then"),
            (Parts{"He left. ", "She stayed! ", "\"Why?\" ", "3 men (all old.) ", "Then"}));
  expect_whole("version 3.14 of foo.bar is e.g. this, i.e. That");
  expect_whole("\"Why?\" he asked");
  expect_whole("wait... what");
  EXPECT_EQ(sentences_of("wait... What"), (Parts{"wait... ", "What"}));
}

TEST(SentenceEnds, AbbreviationsAndInitialsDoNotEndThem) {
  expect_whole("Mr. Smith and J. R. Brown of the U.S. Army, cf. Fig. 3 of St. John");
  EXPECT_EQ(sentences_of("So did I. He left at noon. Jr"),
            (Parts{"So did I. ", "He left at noon. ", "Jr"}));
  EXPECT_EQ(sentences_of("Is this Mr.? Yes"), (Parts{"Is this Mr.? ", "Yes"}));
}

TEST(SentenceEnds, MixedText) {
  EXPECT_EQ(sentences_of("我用Python!很好?是。OK."),
            (Parts{"我用Python!", "很好?", "是。", "OK."}));
  expect_whole("我用Node.js写的v1.2版");
}

TEST(SentenceEnds, LineBreaks) {
  EXPECT_EQ(sentences_of("春天\n风\n"), (Parts{"春天\n", "风\n"}));
  EXPECT_EQ(sentences_of("the wind that\nblew over\nHills"),
            (Parts{"the wind that\nblew over\n", "Hills"}));
  EXPECT_EQ(sentences_of("a title\n \nand text"), (Parts{"a title\n \n", "and text"}));
  EXPECT_EQ(sentences_of("春天。\n\u3000风。 \n"), (Parts{"春天。\n\u3000", "风。 \n"}));
}

TEST(SentenceEnds, WhiteSpaceAloneIsNoSentenceBesideOthers) {
  EXPECT_EQ(sentences_of("\n 春天。"), Parts{"\n 春天。"});
  EXPECT_EQ(sentences_of(" \n"), Parts{" \n"});
  EXPECT_EQ(sentences_of(""), Parts{});
}

TEST(SentenceEnds, TokensBeginThem) {
  const std::string text = "甲乙。 Ab c.\nD";
  // As word pieces, without white space.
  std::vector<TextSpan> spans{{0, 3},   {3, 6},   {6, 9},   {10, 12},
                              {10, 12}, {13, 14}, {14, 15}, {16, 17}};
  std::vector<std::size_t> ends;
  find_sentences(text, ends);
  std::vector<std::uint8_t> starts;
  append_sentence_starts(text, ends, spans, starts);
  EXPECT_EQ(starts, (std::vector<std::uint8_t>{1, 0, 0, 1, 0, 0, 0, 1}));
  // As byte-level tokens: " A" begins with the space before it, "\n" is a token.
  spans = {{0, 9}, {9, 11}, {11, 12}, {12, 14}, {14, 15}, {15, 16}, {16, 17}};
  starts.clear();
  append_sentence_starts(text, ends, spans, starts);
  EXPECT_EQ(starts, (std::vector<std::uint8_t>{1, 1, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace tupelo::sentence_ends_test

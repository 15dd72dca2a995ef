#include "data/input/text_bytes.h"

#include <gtest/gtest.h>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/memory_bytes.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::text_bytes_test {
namespace {

std::string decoded(const std::string& bytes, TextEncoding encoding) {
  const auto text = open_text(std::make_unique<MemoryBytes>(bytes, nullptr), encoding, "f");
  return read_all(*text, SIZE_MAX, "f");
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// "中文abc𠀀" in GB 18030, the last character in four bytes (GB 18030-2005).
const std::string kGb18030 =
    "\xD6\xD0\xCE\xC4"
    "abc"
    "\x95\x32\x82\x36";
const std::string kUtf8 = "中文abc𠀀";

TEST(TextBytes, Utf8StaysAsItIsButForItsMark) {
  for (const TextEncoding encoding : {TextEncoding::kUtf8, TextEncoding::kAuto}) {
    EXPECT_EQ(decoded("\xEF\xBB\xBF" + kUtf8, encoding), kUtf8);
    EXPECT_EQ(decoded("stray \xFF byte", encoding), "stray \xFF byte");
    EXPECT_EQ(decoded("", encoding), "");
    EXPECT_EQ(decoded(repeated(kUtf8, 20'000), encoding), repeated(kUtf8, 20'000));
  }
}

TEST(TextBytes, Gb18030OnRequest) {
  EXPECT_EQ(decoded(kGb18030, TextEncoding::kGb18030), kUtf8);
  // No block border may cut a character.
  for (int shift = 0; shift < 4; ++shift) {
    const std::string start(static_cast<std::size_t>(shift), 'x');
    EXPECT_EQ(decoded(start + repeated(kGb18030, 30'000), TextEncoding::kGb18030),
              start + repeated(kUtf8, 30'000));
  }
}

TEST(TextBytes, AutomaticEncodingTellsThemApart) {
  EXPECT_EQ(decoded(kGb18030, TextEncoding::kAuto), kUtf8);
  EXPECT_EQ(decoded(repeated(kGb18030, 30'000), TextEncoding::kAuto), repeated(kUtf8, 30'000));
  EXPECT_EQ(decoded(kUtf8, TextEncoding::kAuto), kUtf8);
  EXPECT_EQ(decoded("only ASCII", TextEncoding::kAuto), "only ASCII");
  // A bad byte among good ones makes no other encoding.
  const std::string dirty = repeated(kUtf8, 100) + "\xFF";
  EXPECT_EQ(decoded(dirty, TextEncoding::kAuto), dirty);
}

TEST(TextBytes, AMarkOverrulesTheRequest) {
  const std::string little(
      "\xFF\xFE\x2D\x4E"
      "a\0\x40\xD8\0\xDC",
      10);
  const std::string big("\xFE\xFF\x4E\x2D\0a\xD8\x40\xDC\0", 10);
  const std::string wide("\xFF\xFE\0\0\x2D\x4E\0\0", 8);
  for (const TextEncoding encoding :
       {TextEncoding::kUtf8, TextEncoding::kGb18030, TextEncoding::kAuto}) {
    EXPECT_EQ(decoded(little, encoding), "中a𠀀");
    EXPECT_EQ(decoded(big, encoding), "中a𠀀");
    EXPECT_EQ(decoded(wide, encoding), "中");
    EXPECT_EQ(decoded("\xEF\xBB\xBF" + kUtf8, encoding), kUtf8);
  }
}

TEST(TextBytes, InvalidBytesOfOtherEncodingsCanBeCounted) {
  // A lead byte before ASCII, and one at the end.
  const std::string dirty = decoded(
      "\xD6\xD0\xFF"
      "a\xD6",
      TextEncoding::kGb18030);
  EXPECT_EQ(dirty,
            "中\xFF"
            "a\xFF");
  EXPECT_EQ(count_invalid_bytes(dirty), 2u);
  // A surrogate alone.
  const std::string alone(
      "\xFF\xFE\x40\xD8"
      "a\0",
      6);
  EXPECT_EQ(decoded(alone, TextEncoding::kUtf8),
            "\xFF\xFF"
            "a");
}

TEST(TextBytes, RefuseAnotherEncoding) {
  const auto complaint = [](const std::string& bytes, TextEncoding encoding) {
    return message_of<CorpusError>([&] { decoded(bytes, encoding); });
  };
  const std::string chinese = repeated("\xD6\xD0\xCE\xC4", 1000);
  EXPECT_EQ(complaint(chinese, TextEncoding::kUtf8),
            "f: is not text in UTF-8: 4000 of its first 4000 bytes are not UTF-8: choose its "
            "encoding (gb18030, auto), or convert it");
  EXPECT_NE(complaint(repeated("\xFF\x80\xFE", 1000), TextEncoding::kAuto).find("not UTF-8"),
            std::string::npos);
  EXPECT_NE(complaint(repeated("\xFF\xFF", 1000), TextEncoding::kGb18030)
                .find("f: is not text in GB18030"),
            std::string::npos);
}

}  // namespace
}  // namespace tupelo::text_bytes_test

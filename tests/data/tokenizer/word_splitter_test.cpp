#include "data/tokenizer/word_splitter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::word_splitter_test {
namespace {

// FNV-1a over words, one per line.
struct Digest {
  std::uint64_t value = 0xCBF29CE484222325;
  bool begun = false;

  void bytes(std::string_view text) {
    for (const char byte : text) {
      value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
    }
  }
  void word(std::string_view text) {
    if (begun) bytes("\n");
    begun = true;
    bytes(text);
  }
  void isolated(std::uint32_t code_point) { word(to_utf8(code_point)); }
  void long_word() { word("too long"); }
};

bool is_surrogate(char32_t c) { return c >= 0xD800 && c < 0xE000; }

std::vector<std::string> code_point_digests(bool uncased) {
  const CharacterTable table(uncased, [](char32_t c) { return static_cast<std::uint32_t>(c); });
  constexpr char32_t kBlock = 0x1000;
  std::vector<std::string> digests;
  for (char32_t block = 0; block < 0x110000; block += kBlock) {
    Digest digest;
    for (char32_t c = block; c < block + kBlock; ++c) {
      if (is_surrogate(c)) continue;
      const std::string character = to_utf8(c);
      std::string text(1, 'x');
      text.append(character).append("y ").append(character);
      split_words(table, text, digest);
      digest.word("");
    }
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(digest.value));
    digests.emplace_back(hex);
  }
  return digests;
}

TEST(WordSplitter, TreatsEveryCodePointAsHuggingFaceDoes) {
  for (const bool uncased : {true, false}) {
    const auto expected = testing::read_lines(
        testing::vector_file(uncased ? "code_points_uncased.txt" : "code_points_cased.txt"));
    const auto found = code_point_digests(uncased);
    ASSERT_EQ(expected.size(), 0x110u);
    for (std::size_t block = 0; block < found.size(); ++block) {
      EXPECT_EQ(found[block], expected[block])
          << (uncased ? "uncased" : "cased") << ", code points from " << std::hex << block * 0x1000;
    }
  }
}

TEST(Utf8, ReadsWhatItWrites) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    const std::string text = to_utf8(c);
    const Utf8Character read = read_utf8(text.data(), text.data() + text.size());
    ASSERT_EQ(read.code_point, is_surrogate(c) ? kReplacementCharacter : c);
    ASSERT_EQ(read.bytes, is_surrogate(c) ? 1 : text.size());
    ASSERT_EQ(is_valid_utf8(text), !is_surrogate(c));
  }
}

// The example of the Unicode standard, 3.9, table 3-11, and neighbours.
TEST(Utf8, ReplacesMaximalSubparts) {
  const auto lengths = [](std::string_view text) {
    std::vector<std::uint32_t> bytes;
    for (const char* at = text.data(); at != text.data() + text.size(); at += bytes.back()) {
      bytes.push_back(read_utf8(at, text.data() + text.size()).bytes);
    }
    return bytes;
  };
  using Lengths = std::vector<std::uint32_t>;
  EXPECT_EQ(lengths("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), (Lengths{2, 1, 3, 2, 1}));
  EXPECT_EQ(lengths("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace tupelo::word_splitter_test

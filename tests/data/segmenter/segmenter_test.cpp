#include "data/segmenter/segmenter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "data/errors.h"
#include "data/segmenter/word_frequencies.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::segmenter_test {
namespace {

using Words = std::vector<std::string>;

// 研究 + 生命 is likelier than 研究生 + 命; a 3-character word with a character left over.
constexpr const char* kDictionary =
    "研究 100 v\n研究生 20 n\n生命 80 n\n命 10 n\n起源 30 n\n的 500 uj\nc++ 5 nz\n生命起源论 0 n\n"
    "甲乙 8 x\n乙丙 8 x\n甲 4 x\n丙 4 x\n";

class SegmenterTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    write_bytes(folder_ / name, bytes);
    return folder_ / name;
  }
  Segmenter segmenter(const std::string& dictionary = kDictionary) const {
    return Segmenter(write("dict.txt", dictionary));
  }
  std::string refusal(const std::string& dictionary) const {
    return message_of<CorpusError>([&] { segmenter(dictionary); });
  }
  std::string user_refusal(const std::string& user) const {
    const auto dictionary = write("dict.txt", kDictionary);
    const auto file = write("user.txt", user);
    return message_of<CorpusError>([&] { Segmenter(dictionary, {file}); });
  }

  TemporaryFolder folder_;
};

Words cut(const Segmenter& segmenter, const std::string& text) {
  std::vector<std::size_t> ends;
  segmenter.segment(text, ends);
  Words words;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

TEST_F(SegmenterTest, TakesTheLikeliestWords) {
  EXPECT_EQ(cut(segmenter(), "研究生命的起源"), (Words{"研究", "生命", "的", "起源"}));
  EXPECT_EQ(cut(segmenter(), "研究生的命"), (Words{"研究生", "的", "命"}));
}

TEST_F(SegmenterTest, OfEqualPathsTheLongerFirstWordWins) {
  EXPECT_EQ(cut(segmenter(), "甲乙丙"), (Words{"甲乙", "丙"}));
}

TEST_F(SegmenterTest, UnknownCharactersStandAlone) {
  EXPECT_EQ(cut(segmenter(), "研究龙龍"), (Words{"研究", "龙", "龍"}));
  EXPECT_EQ(cut(segmenter(), "起"), (Words{"起"}));  // only the beginning of a word
}

TEST_F(SegmenterTest, LettersAndDigitsAreJoinedAndDictionaryWordsKept) {
  EXPECT_EQ(cut(segmenter(), "C++abc123的c++"), (Words{"C", "+", "+", "abc123", "的", "c++"}));
  EXPECT_EQ(cut(segmenter(), "x-1.5%"), (Words{"x", "-", "1", ".", "5", "%"}));
}

TEST_F(SegmenterTest, EverythingElseIsAWordPerCharacter) {
  EXPECT_EQ(cut(segmenter(), "研究， \r\n\n\ré😀"),
            (Words{"研究", "，", " ", "\r\n", "\n", "\r", "é", "😀"}));
  EXPECT_EQ(cut(segmenter(), ""), Words{});
}

TEST_F(SegmenterTest, InvalidBytesAreCharacters) {
  EXPECT_EQ(cut(segmenter(), "研究\xE7\xA0的\xFF"), (Words{"研究", "\xE7\xA0", "的", "\xFF"}));
}

TEST_F(SegmenterTest, AUserWordWithoutFrequencyIsKeptWhole) {
  const auto dictionary = write("dict.txt", kDictionary);
  const Segmenter with(dictionary, {write("user.txt", "\xEF\xBB\xBF研究生命 nz\n\r\n的起源\r\n")});
  EXPECT_EQ(cut(with, "研究生命的起源"), (Words{"研究生命", "的起源"}));
}

TEST_F(SegmenterTest, AUserWordWithoutFrequencyGetsTheLeastThatSuffices) {
  WordFrequencies words;
  words.add_dictionary(write("dict.txt", kDictionary));
  ASSERT_EQ(words.total(), 769u);
  words.add_user_dictionary(write("user.txt", "研究生命\n研究 200\n龙龍 5 x\n的\n"));
  // 100 * 80 / 769 = 10.4; the frequency of 研究 is replaced, but both count in the total.
  EXPECT_EQ(words.find("研究生命").frequency, 11u);
  EXPECT_EQ(words.find("研究").frequency, 200u);
  EXPECT_EQ(words.find("的").frequency, 500u);
  EXPECT_EQ(words.total(), 769u + 11 + 200 + 5 + 500);
  EXPECT_TRUE(words.find("龙").found);
  EXPECT_EQ(words.find("龙").frequency, 0u);
  EXPECT_FALSE(words.find("龍").found);
}

TEST_F(SegmenterTest, AUserWordOfFrequencyZeroIsForbidden) {
  const auto dictionary = write("dict.txt", kDictionary);
  const Segmenter with(dictionary, {write("user.txt", "生命 0\n")});
  EXPECT_EQ(cut(with, "生命的"), (Words{"生", "命", "的"}));
}

TEST_F(SegmenterTest, RemembersItsFiles) {
  const auto dictionary = write("dict.txt", kDictionary);
  const auto user = write("user.txt", "的起源\n");
  const Segmenter plain(dictionary), with(dictionary, {user});
  ASSERT_EQ(with.files().size(), 2u);
  EXPECT_EQ(with.files()[1].file, user);
  EXPECT_EQ(with.files()[0].sha256, plain.files()[0].sha256);
  EXPECT_EQ(with.files()[1].sha256.size(), 64u);
  EXPECT_NE(with.fingerprint(), plain.fingerprint());
  EXPECT_EQ(Segmenter(dictionary).fingerprint(), plain.fingerprint());
}

TEST_F(SegmenterTest, ServesManyThreads) {
  const Segmenter shared = segmenter();
  std::vector<std::thread> threads;
  std::vector<Words> results(4);
  for (Words& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) result = cut(shared, "研究生命的起源");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Words& result : results) EXPECT_EQ(result, (Words{"研究", "生命", "的", "起源"}));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(SegmenterTest, RefusesDamagedDictionariesWithFileAndLine) {
  const auto expect = [this](const std::string& dictionary, const std::string& line,
                             const std::string& what) {
    const std::string message = refusal(dictionary);
    EXPECT_TRUE(has(message, "dict.txt: ")) << message;
    EXPECT_TRUE(has(message, line) && has(message, what)) << message;
  };
  expect("", "dict.txt", "empty");
  expect("的 0 x\n", "dict.txt", "no word has a frequency above 0");
  expect("的 5\n\n", "line 2", "empty");
  expect("的 5\n命\n", "line 2", "no frequency");
  expect("的 5\n命 x\n", "line 2", "'x' is not a whole number");
  expect("命 -3\n", "line 1", "'-3' is not a whole number");
  expect("命 1e3\n", "line 1", "'1e3' is not a whole number");
  expect("命 99999999999999999999999 n\n", "line 1", "above");
  expect("命 5 n n\n", "line 1", "more than the fields");
  expect("命  5\n", "line 1", "empty field");
  expect(" 命 5\n", "line 1", "empty field");
  expect("命 5 \n", "line 1", "empty field");
  expect("命\t5\n", "line 1", "white space");
  expect("命 5\n\xFF 5\n", "line 2", "UTF-8");
  expect(std::string("命 5\na\0b 5\n", 13), "line 2", "NUL");
  expect(std::string(257, 'a') + " 5\n", "line 1", "longer than 256 bytes");
}

TEST_F(SegmenterTest, RefusesDamagedUserDictionariesWithFileAndLine) {
  const auto expect = [this](const std::string& user, const std::string& line,
                             const std::string& what) {
    const std::string message = user_refusal(user);
    EXPECT_TRUE(has(message, "user.txt: ")) << message;
    EXPECT_TRUE(has(message, line) && has(message, what)) << message;
  };
  expect("的\n命 3 Nz\n", "line 2", "not `word [frequency] [tag]`");
  expect("的 3 n 4\n", "line 1", "not `word [frequency] [tag]`");
  expect("的\n\n命 99999999999999999999999\n", "line 3", "above");
  expect("的 \n", "line 1", "empty field");
  expect("\xE7\xA0\n", "line 1", "UTF-8");
}

TEST_F(SegmenterTest, RefusesWhatIsNoFile) {
  EXPECT_THROW(Segmenter(folder_ / "none.txt"), CorpusError);
  EXPECT_THROW(Segmenter(folder_.path()), CorpusError);
}

}  // namespace
}  // namespace tupelo::segmenter_test

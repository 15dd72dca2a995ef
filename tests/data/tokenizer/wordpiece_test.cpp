#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "data/tokenizer/character_table.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/utf8.h"
#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::wordpiece_test {
namespace {

using testing::make_wordpiece;
using testing::read_lines;
using testing::vector_file;

using Ids = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

// The first id behind the special tokens of make_wordpiece.
constexpr std::uint32_t kFirst = 5;
constexpr std::uint32_t kUnknown = 1;

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::unique_ptr<Tokenizer> load_vectors(const std::string& casing) {
  return load_wordpiece(vector_file("vocab_" + casing + ".txt"),
                        {.lowercase = casing == "uncased"});
}

class Vectors : public ::testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = load_vectors(GetParam());
  const std::vector<std::string> lines_ = read_lines(vector_file("lines.txt"));
};

std::string answer(const Ids& ids, const Flags& word_start) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += word_start[i] == 1 ? ' ' : ',';
    text += std::to_string(ids[i]);
  }
  return text;
}

TEST_P(Vectors, EqualHuggingFace) {
  const auto expected = read_lines(vector_file("ids_" + GetParam() + ".txt"));
  ASSERT_GT(lines_.size(), 2500u);
  ASSERT_EQ(lines_.size(), expected.size());
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Ids ids;
    Flags word_start;
    tokenizer_->encode(lines_[i], ids, &word_start);
    ASSERT_EQ(ids.size(), word_start.size());
    ASSERT_EQ(answer(ids, word_start), expected[i]) << "line " << i + 1 << ": " << lines_[i];
  }
}

// A mark that keeps others from changing places leaves no trace in the ids: decoded, they may
// change.
bool has_ordered_mark(std::string_view text) {
  static const CharacterTable uncased(true, [](char32_t) { return 0u; });
  for (const char* at = text.data(); at != text.data() + text.size();) {
    const Utf8Character character = read_utf8(at, text.data() + text.size());
    if (uncased[character.code_point].action() == CharacterAction::kAppendInOrder) return true;
    at += character.bytes;
  }
  return false;
}

TEST_P(Vectors, SurviveDecoding) {
  std::size_t compared = 0;
  for (const std::string& line : lines_) {
    const Ids ids = encode(*tokenizer_, line);
    if (std::find(ids.begin(), ids.end(), tokenizer_->special_tokens().unk) != ids.end()) continue;
    if (has_ordered_mark(tokenizer_->decode(ids))) continue;
    ASSERT_EQ(encode(*tokenizer_, tokenizer_->decode(ids)), ids) << line;
    ++compared;
  }
  EXPECT_GT(compared, 2000u);
}

TEST_P(Vectors, AreTheSameFromManyThreads) {
  std::string all;
  for (const std::string& line : lines_) all += line + "\n";
  const Ids expected = encode(*tokenizer_, all);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) threads.emplace_back([&] { tokenizer_->encode(all, ids); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

INSTANTIATE_TEST_SUITE_P(WordPiece, Vectors, ::testing::Values("uncased", "cased"),
                         [](const auto& casing) { return casing.param; });

TEST(WordPiece, TakesTheLongestPieceFirst) {
  const auto tokenizer = make_wordpiece({"un", "##aff", "##able", "unaff", "##a", "##ble", "u"});
  EXPECT_EQ(encode(*tokenizer, "unaffable"), (Ids{kFirst + 3, kFirst + 2}));
  EXPECT_EQ(encode(*tokenizer, "unable UNA"), (Ids{kFirst, kFirst + 2, kFirst, kFirst + 4}));
  // Greedy does not look ahead: "unaff" + "##ab" fails although "un" + ... might be tried.
  EXPECT_EQ(encode(*tokenizer, "unaffab"), (Ids{kUnknown}));
}

TEST(WordPiece, AppendsIdsAndWordFlags) {
  const auto tokenizer = make_wordpiece({"中", "国", "ab", "##c", "!", "##d"});
  Ids ids{7};
  Flags word_start{9};
  tokenizer->encode("中国abc! abx", ids, &word_start);
  EXPECT_EQ(ids, (Ids{7, kFirst, kFirst + 1, kFirst + 2, kFirst + 3, kFirst + 4, kUnknown}));
  EXPECT_EQ(word_start, (Flags{9, 1, 1, 1, 0, 1, 1}));
}

TEST(WordPiece, TellsWhichBytesEachIdStandsFor) {
  const auto tokenizer = testing::make_wordpiece({"ab", "##c", "中", "!", "e"});
  std::vector<std::uint32_t> ids, expected;
  std::vector<std::uint8_t> flags, expected_flags;
  std::vector<TextSpan> spans;
  // A dropped NUL, a word in two pieces, a character, an unknown word, an accent that goes.
  const std::string text = std::string("\0 Abc", 5) + " 中!abx \x01" + "e\u0301\x01";
  tokenizer->encode_with_spans(text, ids, flags, spans);
  EXPECT_EQ(spans, (std::vector<TextSpan>{{2, 5}, {2, 5}, {6, 9}, {9, 10}, {10, 13}, {15, 19}}));
  tokenizer->encode(text, expected, &expected_flags);
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(flags, expected_flags);
}

TEST(WordPiece, TreatsSpecialTokenTextAsPlainText) {
  const auto tokenizer = make_wordpiece({"[", "]", "mask", "sep"});
  EXPECT_EQ(encode(*tokenizer, "[MASK][SEP]"),
            (Ids{kFirst, kFirst + 2, kFirst + 1, kFirst, kFirst + 3, kFirst + 1}));
}

TEST(WordPiece, LimitsWordsToHundredCharacters) {
  const auto tokenizer = make_wordpiece({"e", "##e"});
  EXPECT_EQ(encode(*tokenizer, std::string(100, 'e')).size(), 100u);
  EXPECT_EQ(encode(*tokenizer, std::string(101, 'e')), (Ids{kUnknown}));
  std::string accented;
  for (int i = 0; i < 100; ++i) accented += "é\u0301";
  EXPECT_EQ(encode(*tokenizer, accented).size(), 100u);
  EXPECT_EQ(encode(*tokenizer, accented + "E"), (Ids{kUnknown}));
}

TEST(WordPiece, DropsEachMaximalInvalidSubpart) {
  const auto tokenizer = make_wordpiece({"a", "##b", "b", "中"});
  const Ids joined{kFirst, kFirst + 1};
  for (const std::string invalid : {"\xFF", "\x80", "\xC0\x80", "\xE4\xB8", "\xE4", "\xF0\x9F\x98",
                                    "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xF4\x90\x80\x80",
                                    "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xEF\xBF\xBD", "\xC3"}) {
    EXPECT_EQ(encode(*tokenizer, "a" + invalid + "b"), joined) << invalid.size();
    EXPECT_EQ(encode(*tokenizer, "ab" + invalid), joined) << invalid.size();
  }
  // A sequence that breaks off takes nothing of the character behind it.
  EXPECT_EQ(encode(*tokenizer, "a\xE4\xB8中b"), (Ids{kFirst, kFirst + 3, kFirst + 2}));
  EXPECT_TRUE(encode(*tokenizer, "\xE4\xB8").empty());
  EXPECT_TRUE(encode(*tokenizer, "").empty());
}

TEST(WordPiece, OrdersMarksCanonically) {
  // U+1D165 (class 216) and U+1D16D (226) survive the stripping of accents.
  const auto tokenizer = make_wordpiece({"a\U0001D165\U0001D16D", "a\U0001D16D", "##\U0001D165"});
  EXPECT_EQ(encode(*tokenizer, "a\U0001D16D\U0001D165"), (Ids{kFirst}));
  EXPECT_EQ(encode(*tokenizer, "a\U0001D16D\u0301\U0001D165"), (Ids{kFirst}));
  // U+034F vanishes too, but nothing moves across it.
  EXPECT_EQ(encode(*tokenizer, "a\U0001D16D\u034F\U0001D165"), (Ids{kFirst + 1, kFirst + 2}));
}

TEST(WordPiece, EncodesOneMegabyteWithoutSpaces) {
  const auto tokenizer = make_wordpiece({"中", "a", "##a"});
  std::string chinese;
  while (chinese.size() < (1u << 20)) chinese += "中";
  EXPECT_EQ(encode(*tokenizer, chinese), Ids(chinese.size() / 3, kFirst));
  EXPECT_EQ(encode(*tokenizer, std::string(1 << 20, 'a')), (Ids{kUnknown}));
  std::string marks = "a";
  while (marks.size() < (1u << 20)) marks += "\u0301\U0001D16D\U0001D165";
  EXPECT_EQ(encode(*tokenizer, marks), (Ids{kUnknown}));
}

TEST(WordPiece, DecodesReadably) {
  const auto tokenizer = make_wordpiece({"中", "国", "，", "hel", "##lo", "world", "!", "##s"});
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "中国，Hello  worlds! 中")),
            "中国， hello worlds ! 中");
  EXPECT_EQ(tokenizer->decode({}), "");
  EXPECT_EQ(tokenizer->decode({2, kFirst, 4, 3}), "[CLS] 中 [MASK] [SEP]");
  EXPECT_THROW(tokenizer->decode({kFirst + 8}), std::out_of_range);
  EXPECT_THROW(tokenizer->token(kFirst + 8), std::out_of_range);
}

TEST(WordPiece, DescribesItself) {
  const auto tokenizer = make_wordpiece({"a", "[unused7]", "b", "[unused]x", "[unused0]"});
  EXPECT_EQ(tokenizer->kind(), "wordpiece");
  EXPECT_EQ(tokenizer->vocab_size(), 10u);
  EXPECT_EQ(tokenizer->token(5), "a");
  EXPECT_EQ(tokenizer->special_tokens().mask, 4u);
  EXPECT_EQ(tokenizer->reserved_ids(), (Ids{0, 1, 2, 3, 4, 6, 9}));
}

TEST(WordPiece, FingerprintsVocabularyAndFlags) {
  const auto uncased = make_wordpiece({"a", "b"});
  // sha256sum of "wordpiece\nbert-tables tokenizers-0.23.3\nlowercase\n[PAD]\n...\n[MASK]\na\nb\n"
  EXPECT_EQ(uncased->fingerprint(),
            "edebccd13b7cf27d056f46888a6e00ae077d7d3bac373276e39ffe25ac470008");
  EXPECT_EQ(make_wordpiece({"a\r", "b\r"})->fingerprint(), uncased->fingerprint());
  EXPECT_NE(make_wordpiece({"a", "b"}, {.lowercase = false})->fingerprint(),
            uncased->fingerprint());
  EXPECT_NE(make_wordpiece({"b", "a"})->fingerprint(), uncased->fingerprint());
}

}  // namespace
}  // namespace tupelo::wordpiece_test

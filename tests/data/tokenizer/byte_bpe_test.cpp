#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "data/errors.h"
#include "data/tokenizer/byte_level_splitter.h"
#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::byte_bpe_test {
namespace {

using testing::byte_bpe_files_of;
using testing::byte_bpe_tokens;
using testing::read_lines;
using testing::TemporaryFiles;
using testing::vector_file;

using Ids = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

constexpr std::uint32_t kFirstByte = 5;
constexpr std::uint32_t kFirstMerge = kFirstByte + 256;

std::uint32_t byte_id(char byte) { return kFirstByte + static_cast<unsigned char>(byte); }

std::unique_ptr<Tokenizer> load(const std::vector<TokenizerFile>& files,
                                ByteBpeOptions options = {}) {
  const TemporaryFiles folder(files);
  return load_byte_bpe(folder / "vocab.json", folder / "merges.txt", options);
}

std::unique_ptr<Tokenizer> make(const std::vector<std::string>& merges,
                                ByteBpeOptions options = {}) {
  return load(byte_bpe_files_of(byte_bpe_tokens(merges), merges), options);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<std::string> words(std::string_view text) {
  static const ByteLevelClasses classes;
  std::vector<std::string> found;
  split_byte_level(classes, text, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

using Words = std::vector<std::string>;

TEST(ByteLevelSplitter, RunsTakeTheSpaceBeforeThem) {
  EXPECT_EQ(words("Hello world 12 !?"), (Words{"Hello", " world", " 12", " !?"}));
  EXPECT_EQ(words("ab12中国。"), (Words{"ab", "12", "中国", "。"}));
  EXPECT_EQ(words(""), Words{});
}

TEST(ByteLevelSplitter, WhiteSpaceLeavesItsLastToTheNextWord) {
  EXPECT_EQ(words("a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(words("a\n\n b "), (Words{"a", "\n\n", " b", " "}));
  EXPECT_EQ(words("a\t\tb\t"), (Words{"a", "\t", "\t", "b", "\t"}));
  EXPECT_EQ(words("\u3000\u3000中"), (Words{"\u3000", "\u3000", "中"}));
  EXPECT_EQ(words("  "), (Words{"  "}));
}

TEST(ByteLevelSplitter, EnglishEndingsAreWords) {
  EXPECT_EQ(words("it's we'll 're 'S"), (Words{"it", "'s", " we", "'ll", " '", "re", " '", "S"}));
  EXPECT_EQ(words("'really''d"), (Words{"'re", "ally", "''", "d"}));
}

TEST(ByteBpe, JoinsByRankNotByLength) {
  const auto tokenizer = make({"b c", "a b", "ab c", "Ġ a"});
  EXPECT_EQ(encode(*tokenizer, "abc"), (Ids{byte_id('a'), kFirstMerge}));
  EXPECT_EQ(encode(*tokenizer, "abab"), (Ids{kFirstMerge + 1, kFirstMerge + 1}));
  EXPECT_EQ(encode(*tokenizer, " abc ad"),
            (Ids{kFirstMerge + 3, kFirstMerge, kFirstMerge + 3, byte_id('d')}));
}

TEST(ByteBpe, JoinsLeftmostFirst) {
  const auto tokenizer = make({"a a", "aa a"});
  EXPECT_EQ(encode(*tokenizer, "aaa"), (Ids{kFirstMerge + 1}));
  EXPECT_EQ(encode(*tokenizer, "aaaaa"), (Ids{kFirstMerge, kFirstMerge + 1}));
}

// The rule itself, as slowly as it reads.
Ids join_slowly(std::string_view word, const std::vector<std::string>& merges) {
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  const auto tokens = byte_bpe_tokens(merges);
  while (true) {
    std::size_t best = merges.size(), place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::find(merges.begin(), merges.end(), parts[i] + " " + parts[i + 1]);
      const auto rank = static_cast<std::size_t>(found - merges.begin());
      if (rank < best) {
        best = rank;
        place = i;
      }
    }
    if (best == merges.size()) break;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    ids.push_back(
        static_cast<std::uint32_t>(std::find(tokens.begin(), tokens.end(), part) - tokens.begin()));
  }
  return ids;
}

TEST(ByteBpe, LongWordsAreJoinedAsShortOnes) {
  const std::vector<std::string> merges{"a b",    "b a", "ab ab",    "c ab",
                                        "abab a", "b b", "abab abab"};
  const auto tokenizer = make(merges);
  std::uint32_t state = 1;
  for (std::size_t size = 1; size < 120; ++size) {
    std::string word;
    for (std::size_t i = 0; i < size; ++i) {
      state = state * 1664525 + 1013904223;
      word += "aabbc"[state >> 16 & 3];
    }
    ASSERT_EQ(encode(*tokenizer, word), join_slowly(word, merges)) << word;
  }
}

TEST(ByteBpe, TakesAMegabyteWithoutSpaceInItsStride) {
  const auto tokenizer = make({"a a", "aa aa", "aaaa aaaa"});
  EXPECT_EQ(encode(*tokenizer, std::string(1 << 20, 'a')), Ids(1 << 17, kFirstMerge + 2));
}

TEST(ByteBpe, FlagsTheFirstTokenOfEachWord) {
  const auto tokenizer = make({"Ġ b", "c d"});
  Ids ids{7};
  Flags starts{9};
  tokenizer->encode("ab bcd 'sx", ids, &starts);
  EXPECT_EQ(ids, (Ids{7, byte_id('a'), byte_id('b'), kFirstMerge, kFirstMerge + 1, byte_id(' '),
                      byte_id('\''), byte_id('s'), byte_id('x')}));
  EXPECT_EQ(starts, (Flags{9, 1, 0, 1, 0, 1, 0, 1, 0}));
}

TEST(ByteBpe, TellsWhichBytesATokenStandsFor) {
  const auto spans_of = [](const Tokenizer& tokenizer, const std::string& text) {
    Ids ids, plain;
    Flags starts, plain_starts;
    std::vector<TextSpan> spans;
    tokenizer.encode_with_spans(text, ids, starts, spans);
    tokenizer.encode(text, plain, &plain_starts);
    EXPECT_EQ(ids, plain);
    EXPECT_EQ(starts, plain_starts);
    return spans;
  };
  using Spans = std::vector<TextSpan>;
  EXPECT_EQ(spans_of(*make({"a b"}), "ab 中"), (Spans{{0, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}}));
  EXPECT_EQ(spans_of(*make({"a b"}, {.add_prefix_space = true}), "ab"), (Spans{{0, 0}, {0, 2}}));
  EXPECT_EQ(spans_of(*make({"Ġ a"}, {.add_prefix_space = true}), "ab"), (Spans{{0, 1}, {1, 2}}));
  EXPECT_EQ(spans_of(*make({"Ġ a"}), ""), Spans{});
}

TEST(ByteBpe, SetsASpaceBeforeTheTextWhenAsked) {
  const auto tokenizer = make({"Ġ a"}, {.add_prefix_space = true});
  EXPECT_EQ(encode(*tokenizer, "a"), (Ids{kFirstMerge}));
  EXPECT_EQ(encode(*tokenizer, " a"), (Ids{kFirstMerge}));
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
  EXPECT_NE(tokenizer->fingerprint(), make({"Ġ a"})->fingerprint());
}

TEST(ByteBpe, DecodesWhatItEncoded) {
  const auto tokenizer = make({"Ġ b", "ä ¸", "ä¸ Ń"});
  const std::string text = " b\t中国 \U0001f600\n";
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
  EXPECT_EQ(encode(*tokenizer, "中"), (Ids{kFirstMerge + 2}));
  EXPECT_EQ(tokenizer->decode({kFirstMerge + 1}), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->decode({0, kFirstMerge, 2}), "<s> b</s>");
  EXPECT_EQ(tokenizer->token(kFirstMerge), "Ġb");
  EXPECT_THROW(tokenizer->decode({kFirstMerge + 3}), std::out_of_range);
}

TEST(ByteBpe, ReplacesWhatIsNotUtf8) {
  const auto tokenizer = make({});
  EXPECT_EQ(encode(*tokenizer, "a\xFF"), encode(*tokenizer, "a\xEF\xBF\xBD"));
  EXPECT_EQ(encode(*tokenizer, "\xE4\xB8 "), encode(*tokenizer, "\xEF\xBF\xBD "));
}

TEST(ByteBpe, SpecialTextIsPlainText) {
  const auto tokenizer = make({});
  const Ids ids = encode(*tokenizer, "<mask></s>");
  EXPECT_EQ(ids.size(), 10u);
  EXPECT_GE(*std::min_element(ids.begin(), ids.end()), kFirstByte);
}

TEST(ByteBpe, ReservesWhatNoTextLeadsTo) {
  auto tokens = byte_bpe_tokens({"a b"});
  tokens.insert(tokens.end(), {"<|endoftext|>", "[unused0]"});
  const auto tokenizer = load(byte_bpe_files_of(tokens, {"a b"}));
  EXPECT_EQ(tokenizer->reserved_ids(), (Ids{0, 1, 2, 3, 4, kFirstMerge + 1, kFirstMerge + 2}));
  EXPECT_EQ(tokenizer->special_tokens().cls, 0u);
  EXPECT_EQ(tokenizer->special_tokens().pad, 1u);
  EXPECT_EQ(tokenizer->special_tokens().sep, 2u);
  EXPECT_EQ(tokenizer->special_tokens().unk, 3u);
  EXPECT_EQ(tokenizer->special_tokens().mask, 4u);
  EXPECT_EQ(tokenizer->kind(), "byte-bpe");
}

TEST(ByteBpe, PutsMissingSpecialTokensBehindTheVocabulary) {
  auto tokens = byte_bpe_tokens({});
  tokens.erase(tokens.begin(), tokens.begin() + 5);  // as GPT-2 has it
  tokens.push_back("<|endoftext|>");
  const auto tokenizer = load(byte_bpe_files_of(tokens, {}));
  EXPECT_EQ(tokenizer->vocab_size(), 262u);
  EXPECT_EQ(tokenizer->reserved_ids(), (Ids{256, 257, 258, 259, 260, 261}));
  EXPECT_EQ(tokenizer->token(tokenizer->special_tokens().cls), "<s>");
  EXPECT_EQ(tokenizer->special_tokens().mask, 261u);
}

class ByteBpeVectors : public ::testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ =
      load_byte_bpe(vector_file("byte_bpe/vocab.json"), vector_file("byte_bpe/merges.txt"),
                    {.add_prefix_space = GetParam() == "prefix"});
  const std::vector<std::string> lines_ = read_lines(vector_file("lines.txt"));
};

TEST_P(ByteBpeVectors, EqualHuggingFace) {
  const auto expected = read_lines(vector_file("byte_bpe/ids_" + GetParam() + ".txt"));
  ASSERT_GT(expected.size(), 900u);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Ids ids;
    Flags starts;
    tokenizer_->encode(lines_[3 * i], ids, &starts);
    ASSERT_EQ(ids.size(), starts.size());
    std::string answer;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (k > 0) answer += starts[k] == 1 ? ' ' : ',';
      answer += std::to_string(ids[k]);
    }
    ASSERT_EQ(answer, expected[i]) << lines_[3 * i];
  }
}

TEST_P(ByteBpeVectors, SurviveDecoding) {
  for (const std::string& line : lines_) {
    const std::string decoded = tokenizer_->decode(encode(*tokenizer_, line));
    const bool longer = GetParam() == "prefix" && !line.empty() && line.front() != ' ';
    ASSERT_EQ(decoded, (longer ? " " : "") + line);
  }
}

TEST_P(ByteBpeVectors, AreTheSameFromManyThreads) {
  std::string all;
  for (const std::string& line : lines_) all += line + "\n";
  const Ids expected = encode(*tokenizer_, all);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) threads.emplace_back([&] { tokenizer_->encode(all, ids); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

INSTANTIATE_TEST_SUITE_P(ByteBpe, ByteBpeVectors, ::testing::Values("plain", "prefix"),
                         [](const auto& option) { return option.param; });

// What is wrong with these files, without their names.
std::string complaint(const std::vector<TokenizerFile>& files) {
  try {
    load(files);
  } catch (const CorpusError& error) {
    const std::string what = error.what();
    return what.substr(what.rfind(": ") + 2);
  }
  return "nothing";
}

std::string complaint(const std::vector<std::string>& tokens,
                      const std::vector<std::string>& merges) {
  return complaint(byte_bpe_files_of(tokens, merges));
}

TEST(ByteBpeFiles, AreReadWithSuspicion) {
  const auto tokens = byte_bpe_tokens({"a b"});
  EXPECT_EQ(complaint(tokens, {"a b"}), "nothing");
  EXPECT_EQ(complaint(tokens, {"b c"}), "merge 1 names 'bc', which is not in the vocabulary");
  EXPECT_EQ(complaint(tokens, {"a b", "zz c"}),
            "merge 2 names 'zz', which is not in the vocabulary");
  EXPECT_EQ(complaint(tokens, {"a b", "a b"}), "merge 2 joins 'a' and 'b', as merge 1 did before");
  EXPECT_NE(complaint(tokens, {"a b c"}).find("line 2 is not two tokens"), std::string::npos);
  EXPECT_NE(complaint(tokens, {"ab"}).find("line 2 is not two tokens"), std::string::npos);
  auto lacking = tokens;
  lacking[kFirstByte] = "Ġx";
  EXPECT_EQ(complaint(lacking, {}),
            "the vocabulary lacks 'Ā', the token of byte 0; all 256 bytes must have one");
  auto with_text = tokens;
  with_text.push_back("中");
  with_text.push_back("中a");
  EXPECT_EQ(complaint(with_text, {"中 a"}), "merge 1 names '中', which is not written in bytes");
  auto special = tokens;
  special.push_back("<s");
  EXPECT_EQ(complaint(special, {"< s", "<s >"}), "a merge makes '<s>', so that text could");
  auto empty = tokens;
  empty.push_back("");
  EXPECT_EQ(complaint(empty, {}), "the token with id 262 is empty");
  auto huge = tokens;
  huge.push_back(std::string(9000, 'x'));
  EXPECT_EQ(complaint(huge, {}), "the token with id 262 is longer than 8192 bytes");
}

TEST(ByteBpeFiles, AreStrictJson) {
  const auto with = [](const std::string& json) {
    return complaint({{"vocab.json", json}, {"merges.txt", ""}});
  };
  EXPECT_EQ(with(R"({"a": 0, "a": 1})"), "the key 'a' occurs twice");
  EXPECT_EQ(with(R"({"a": 0)"), "not JSON, at byte 8");
  EXPECT_EQ(with(R"({"a": 0, "b": 2})"),
            "the token 'b' has the id 2, but ids must be 0 to 1, each once");
  EXPECT_EQ(with(R"({"a": 0, "b": 0})"),
            "the token 'b' has the id 0, but ids must be 0 to 1, each once");
  EXPECT_EQ(with(R"({"a": -1})"), "the token 'a' has the id -1, but ids must be 0 to 0, each once");
  EXPECT_EQ(with("[]"), "the vocabulary is not an object of tokens and their ids");
  EXPECT_EQ(with("\"\xFF\""), "not JSON, at byte 2");
  EXPECT_EQ(with(std::string(100'000, '[')), "nested deeper than 16");
  EXPECT_EQ(with(R"({"a": 1e999})"), "holds a number that is out of range");
  EXPECT_EQ(with(std::string(33 << 20, ' ')), "larger than 32 MiB, the most that is read");
}

TEST(ByteBpeFiles, MustBeThere) { EXPECT_THROW(load({}), std::system_error); }

}  // namespace
}  // namespace tupelo::byte_bpe_test

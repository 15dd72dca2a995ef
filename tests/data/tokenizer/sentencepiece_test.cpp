#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <map>

#include "data/errors.h"
#include "data/segmenter/word_alignment.h"
#include "data/tokenizer/load_tokenizer.h"
#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo {
namespace {

using testing::read_lines;
using testing::TemporaryFile;
using testing::TemporaryFiles;
using testing::vector_file;
using Ids = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

class Lines final : public ::sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  ::sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

std::string train(std::map<std::string, std::string> settings) {
  const auto all = read_lines(vector_file("lines.txt"));
  Lines lines({all.begin(), all.begin() + 1000});  // verse and a licence
  std::unordered_map<std::string, std::string> arguments{
      {"vocab_size", "3500"},         {"character_coverage", "0.98"}, {"minloglevel", "3"},
      {"num_threads", "1"},           {"hard_vocab_limit", "false"},  {"model_prefix", ""},
      {"max_sentence_length", "9999"}};
  for (const auto& [key, value] : settings) arguments[key] = value;
  std::string model;
  const auto status = ::sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return model;
}

std::unique_ptr<Tokenizer> load(const std::string& model) {
  const TemporaryFile file(model);
  return load_sentencepiece(file.path());
}

class SentencePieceModels : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string model_ = train({{"model_type", GetParam()}});
  const std::unique_ptr<Tokenizer> tokenizer_ = load(model_);
};

TEST_P(SentencePieceModels, GiveTheLibrarysIds) {
  ::sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.LoadFromSerializedProto(model_).ok());
  std::size_t tokens = 0;
  for (const std::string& line : read_lines(vector_file("lines.txt"))) {
    std::vector<int> expected;
    ASSERT_TRUE(processor.Encode(line, &expected).ok());
    Ids ids;
    Flags starts;
    tokenizer_->encode(line, ids, &starts);
    ASSERT_EQ(ids, Ids(expected.begin(), expected.end())) << line;
    ASSERT_EQ(starts.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool marked = processor.IdToPiece(expected[i]).starts_with("\u2581");
      ASSERT_EQ(starts[i], i == 0 || marked ? 1 : 0);
    }
    tokens += ids.size();
  }
  EXPECT_GT(tokens, 10'000u);
}

TEST_P(SentencePieceModels, TellWhichBytesTheirTokensStandFor) {
  std::size_t compared = 0;
  for (const std::string& line : read_lines(vector_file("lines.txt"))) {
    const std::string text = "\n" + line + "\n\n" + line;
    Ids expected, ids;
    Flags flags, starts;
    std::vector<TextSpan> spans;
    tokenizer_->encode(text, expected, &flags);
    tokenizer_->encode_with_spans(text, ids, starts, spans);
    ASSERT_EQ(ids, expected) << line;
    ASSERT_EQ(starts, flags) << line;
    ASSERT_EQ(spans.size(), ids.size());
    const bool ascii = std::all_of(line.begin(), line.end(), [](char c) { return c > 0; });
    for (std::size_t i = 0; i < spans.size(); ++i) {
      ASSERT_LT(spans[i].begin, spans[i].end) << line;
      ASSERT_LE(spans[i].end, text.size());
      if (i > 0) {
        ASSERT_LE(spans[i - 1].begin, spans[i].begin);
      }
      std::string piece = tokenizer_->token(ids[i]);
      if (piece.starts_with("\u2581")) piece.erase(0, 3);
      if (!ascii || piece.empty() || ids[i] == tokenizer_->special_tokens().unk) continue;
      const std::string bytes = text.substr(spans[i].begin, spans[i].end - spans[i].begin);
      ASSERT_EQ(bytes.substr(bytes.find_first_not_of(' ')), piece);
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000u);
}

TEST_P(SentencePieceModels, HaveTheWordsOfADictionaryWhereOneIsGiven) {
  const std::string text = "\u56fd\u7834\u5c71\u6cb3\u5728\u57ce\u6625\u8349\u6728\u6df1";
  const auto starts_with = [&](const std::vector<std::size_t>& word_ends, Ids& ids) {
    Flags starts;
    std::vector<TextSpan> spans;
    ids.clear();
    tokenizer_->encode_with_spans(text, ids, starts, spans);
    align_word_starts(text, word_ends, spans, starts);
    return starts;
  };
  Ids ids;
  Flags one_word(starts_with({text.size()}, ids));
  ASSERT_GT(ids.size(), 2u);
  EXPECT_EQ(std::count(one_word.begin(), one_word.end(), 1), 1);
  EXPECT_EQ(one_word.front(), 1);
  std::vector<std::size_t> characters;
  for (std::size_t end = 3; end <= text.size(); end += 3) characters.push_back(end);
  const Flags by_character = starts_with(characters, ids);
  EXPECT_GT(std::count(by_character.begin(), by_character.end(), 1), 1);
}

TEST_P(SentencePieceModels, KeepSpecialTextPlainAndReserveTheRest) {
  Ids ids;
  tokenizer_->encode("<s> </s> <pad> <mask>\n[MASK]", ids);
  const SpecialTokens& special = tokenizer_->special_tokens();
  for (const auto id : {special.cls, special.sep, special.pad, special.mask}) {
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0);
  }
  // This model has <unk> <s> </s>; <pad> and <mask> were put behind it.
  const std::uint32_t size = tokenizer_->vocab_size();
  EXPECT_EQ(special.unk, 0u);
  EXPECT_EQ(special.cls, 1u);
  EXPECT_EQ(special.sep, 2u);
  EXPECT_EQ(special.pad, size - 2);
  EXPECT_EQ(special.mask, size - 1);
  EXPECT_EQ(tokenizer_->reserved_ids(), (Ids{0, 1, 2, size - 2, size - 1}));
  EXPECT_EQ(tokenizer_->token(size - 1), "<mask>");
}

TEST_P(SentencePieceModels, DecodeWhatTheyEncoded) {
  Ids ids;
  tokenizer_->encode("You may reproduce the Work", ids);
  EXPECT_EQ(tokenizer_->decode(ids), "You may reproduce the Work");
  ids.insert(ids.begin(), tokenizer_->special_tokens().cls);
  ids.push_back(tokenizer_->special_tokens().mask);
  EXPECT_EQ(tokenizer_->decode(ids), "<s>You may reproduce the Work<mask>");
  EXPECT_THROW(tokenizer_->decode({tokenizer_->vocab_size()}), std::out_of_range);
}

TEST_P(SentencePieceModels, AreLoadedFromWhatTheyWrite) {
  const TemporaryFiles folder(tokenizer_->files());
  EXPECT_EQ(load_tokenizer(folder.path(), {})->fingerprint(), tokenizer_->fingerprint());
  EXPECT_EQ(load_tokenizer(folder / "sentencepiece.model", {})->kind(), "sentencepiece");
}

INSTANTIATE_TEST_SUITE_P(SentencePiece, SentencePieceModels, ::testing::Values("unigram", "bpe"),
                         [](const auto& type) { return type.param; });

TEST(SentencePiece, TakesTheModelsOwnSpecialTokens) {
  const auto tokenizer = load(
      train({{"model_type", "bpe"}, {"control_symbols", "[CLS],[SEP],[MASK]"}, {"pad_id", "3"}}));
  EXPECT_EQ(tokenizer->token(tokenizer->special_tokens().cls), "[CLS]");
  EXPECT_EQ(tokenizer->token(tokenizer->special_tokens().mask), "[MASK]");
  EXPECT_EQ(tokenizer->special_tokens().pad, 3u);
}

TEST(SentencePiece, RefusesSpecialTokensThatTextCanMake) {
  const std::string model = train({{"model_type", "bpe"}, {"user_defined_symbols", "<mask>"}});
  EXPECT_THROW(load(model), CorpusError);
}

TEST(SentencePiece, RefusesOtherFiles) {
  EXPECT_THROW(load(""), CorpusError);
  EXPECT_THROW(load("[PAD]\n[UNK]\n"), CorpusError);
  EXPECT_THROW(load_sentencepiece("/nowhere/a.model"), std::system_error);
}

}  // namespace
}  // namespace tupelo

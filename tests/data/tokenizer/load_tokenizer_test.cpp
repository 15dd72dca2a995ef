#include "data/tokenizer/load_tokenizer.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::load_tokenizer_test {
namespace {

namespace fs = std::filesystem;
using testing::byte_bpe_files_of;
using testing::byte_bpe_tokens;
using testing::kSpecialLines;
using testing::make_wordpiece;
using testing::TemporaryFiles;

std::vector<TokenizerFile> some_byte_bpe() {
  return byte_bpe_files_of(byte_bpe_tokens({"a b"}), {"a b"});
}

std::string fingerprint(const fs::path& path, const LoadTokenizerOptions& options = {}) {
  return load_tokenizer(path, options)->fingerprint();
}

TEST(LoadTokenizer, KnowsVocabTxt) {
  const auto expected = make_wordpiece({"a"}, {.lowercase = false});
  const LoadTokenizerOptions cased{.wordpiece = {.lowercase = false}, .byte_bpe = {}};
  const TemporaryFiles folder({{"vocab.txt", std::string(kSpecialLines) + "a\n"}});
  EXPECT_EQ(fingerprint(folder.path(), cased), expected->fingerprint());
  EXPECT_EQ(fingerprint(folder / "vocab.txt", cased), expected->fingerprint());
  EXPECT_NE(fingerprint(folder.path()), expected->fingerprint());
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(fingerprint(folder.path()), expected->fingerprint());
}

TEST(LoadTokenizer, KnowsVocabJsonWithMerges) {
  const TemporaryFiles folder(some_byte_bpe());
  const std::string expected =
      load_byte_bpe(folder / "vocab.json", folder / "merges.txt", {})->fingerprint();
  EXPECT_EQ(fingerprint(folder.path()), expected);
  EXPECT_EQ(fingerprint(folder / "vocab.json"), expected);
  EXPECT_EQ(fingerprint(folder / "merges.txt"), expected);
  const LoadTokenizerOptions prefix{.wordpiece = {}, .byte_bpe = {.add_prefix_space = true}};
  EXPECT_NE(fingerprint(folder.path(), prefix), expected);
}

TEST(LoadTokenizer, TokenizerJsonSaysAllItself) {
  const TemporaryFiles source(some_byte_bpe());
  const auto tokenizer =
      load_byte_bpe(source / "vocab.json", source / "merges.txt", {.add_prefix_space = true});
  const TemporaryFiles folder(tokenizer->files());
  EXPECT_EQ(fingerprint(folder.path()), tokenizer->fingerprint());
  fs::rename(folder / "tokenizer.json", folder / "mine.json");
  EXPECT_EQ(fingerprint(folder / "mine.json"), tokenizer->fingerprint());
}

TEST(LoadTokenizer, FindsTheOneInsideACorpus) {
  const TemporaryFiles corpus;
  fs::create_directory(corpus / "tokenizer");
  for (const auto& [name, content] : some_byte_bpe()) corpus.write("tokenizer/" + name, content);
  EXPECT_EQ(fingerprint(corpus.path()), fingerprint(corpus / "tokenizer"));
}

TEST(LoadTokenizer, WantsOne) {
  const TemporaryFiles folder;
  EXPECT_THROW(load_tokenizer(folder.path(), {}), std::invalid_argument);
  EXPECT_THROW(load_tokenizer(folder / "vocab.txt", {}), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::load_tokenizer_test

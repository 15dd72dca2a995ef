#include "data/tokenizer/vocabulary_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "data/errors.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::vocabulary_file_test {
namespace {

using testing::kSpecialLines;
using testing::TemporaryFile;

// The message of the CorpusError that loading `bytes` ends in, without the file name.
std::string complaint(const std::string& bytes) {
  const TemporaryFile file(bytes);
  try {
    load_wordpiece(file.path(), {});
  } catch (const CorpusError& error) {
    const std::string message = error.what();
    const std::string start = "vocabulary " + file.path().string() + ": ";
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(start.size());
  }
  return "loaded";
}

std::string with_specials(const std::string& rest) { return std::string(kSpecialLines) + rest; }

TEST(VocabularyFile, ReadsTokensInOrder) {
  const TemporaryFile file(with_specials("a\r\n##b\n中"));
  const auto tokens = read_vocabulary(file.path());
  ASSERT_EQ(tokens.size(), 8u);
  EXPECT_EQ(tokens[5], "a");
  EXPECT_EQ(tokens[6], "##b");
  EXPECT_EQ(tokens[7], "中");
}

TEST(VocabularyFile, NamesTheLineAtFault) {
  EXPECT_EQ(complaint(""), "empty, but it must hold one token per line");
  EXPECT_EQ(complaint(with_specials("a\n\nb\n")),
            "line 7: empty, but each line must hold one token");
  EXPECT_EQ(complaint(with_specials("a\nb\na\n")),
            "line 8: the token 'a' occurred on line 6 before");
  EXPECT_EQ(complaint(with_specials("a b\n")),
            "line 6: holds white space, but each line must hold one token alone");
  EXPECT_EQ(complaint(with_specials("a\n\xE4\xB8\n")), "line 7: is not valid UTF-8");
  EXPECT_EQ(complaint(with_specials("\xED\xA0\x80\n")), "line 6: is not valid UTF-8");
  EXPECT_EQ(complaint(with_specials(std::string("a\0b\n", 4))),
            "line 6: holds a NUL byte: not a text file?");
  EXPECT_EQ(complaint("\xEF\xBB\xBF" + with_specials("a\n")),
            "line 1: begins with a byte order mark: remove it");
  EXPECT_EQ(complaint(with_specials(std::string(1025, 'a') + "\n")),
            "line 6: longer than 1024 bytes");
}

TEST(VocabularyFile, NamesTheMissingSpecialToken) {
  EXPECT_EQ(complaint("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"),
            "none of its 5 tokens is [MASK]; [PAD], [UNK], [CLS], [SEP] and [MASK] must be there");
  EXPECT_EQ(complaint("[pad]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"),
            "none of its 5 tokens is [PAD]; [PAD], [UNK], [CLS], [SEP] and [MASK] must be there");
}

TEST(VocabularyFile, RefusesWhatIsTooLarge) {
  const std::string line(1000, 'x');
  std::string huge;
  while (huge.size() <= kMaxVocabularyBytes) huge += line + "\n";
  EXPECT_EQ(complaint(huge), "larger than 16 MiB, the most that is read");
  std::string many;
  for (std::size_t i = 0; i <= kMaxVocabularyTokens; ++i) many += std::to_string(i) + "\n";
  EXPECT_EQ(complaint(many), "line 1048577: more than 1048576 tokens");
}

TEST(VocabularyFile, ReportsWhatTheFileSystemRefuses) {
  const auto code_of = [](const std::filesystem::path& path) {
    try {
      load_wordpiece(path, {});
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.code().value();
    }
    return 0;
  };
  EXPECT_EQ(code_of("/nowhere/vocab.txt"), ENOENT);
  EXPECT_EQ(code_of(std::filesystem::temp_directory_path()), EISDIR);
}

TEST(VocabularyFile, AcceptsHostileButPossibleTokens) {
  // Tokens that no text produces, long shared beginnings, a bare "##", every byte that UTF-8
  // allows.
  std::string rest = "##\n###\n";
  for (int length = 1; length <= 300; ++length) rest += std::string(length, 'a') + "\n";
  for (int c = 0x80; c < 0x800; ++c) {
    rest +=
        std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))} + "\n";
  }
  const TemporaryFile file(with_specials(rest));
  const auto tokenizer = load_wordpiece(file.path(), {.lowercase = false});
  std::vector<std::uint32_t> ids;
  tokenizer->encode(std::string(100, 'a') + " ## \u00fc", ids);
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokenizer->token(ids[0]), std::string(100, 'a'));
  EXPECT_EQ(tokenizer->token(ids[1]), "[UNK]");
  EXPECT_EQ(tokenizer->token(ids[3]), "\u00fc");
}

}  // namespace
}  // namespace tupelo::vocabulary_file_test

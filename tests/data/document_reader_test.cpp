#include "data/document_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <stdexcept>
#include <system_error>

#include "data/content_digest.h"
#include "data/document_text.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::document_reader_test {
namespace {

namespace fs = std::filesystem;

class Documents : public testing::Test {
 protected:
  std::vector<RawDocument> read(TextFormat format, const std::string& bytes,
                                const std::string& name = "text.txt") {
    write_bytes(folder_ / name, bytes);
    const auto sources = list_text_sources({folder_ / name}, format);
    return read_all(sources);
  }
  static std::vector<RawDocument> read_all(const std::vector<TextSource>& sources) {
    DocumentReader reader(sources);
    std::vector<RawDocument> documents;
    RawDocument document;
    while (reader.next(document)) documents.push_back(document);
    std::uint64_t bytes = 0;
    for (const TextSource& source : sources) bytes += source.bytes;
    EXPECT_EQ(reader.bytes_read(), bytes);
    return documents;
  }
  static std::vector<std::string> texts_of(const std::vector<RawDocument>& documents) {
    std::vector<std::string> texts;
    for (const RawDocument& document : documents) texts.push_back(document.text);
    return texts;
  }
  std::vector<std::string> texts(TextFormat format, const std::string& bytes) {
    return texts_of(read(format, bytes));
  }

  TemporaryFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(Documents, BlankLinesEndThem) {
  EXPECT_EQ(texts(TextFormat::kBlankLine, "a\nb\n\nc\n"), (Texts{"a\nb", "c"}));
  EXPECT_EQ(texts(TextFormat::kBlankLine, "\n\n a \n \t\n\xE3\x80\x80\nb"), (Texts{" a ", "b"}));
  EXPECT_EQ(texts(TextFormat::kBlankLine, ""), Texts{});
  EXPECT_EQ(texts(TextFormat::kBlankLine, "\n \n"), Texts{});
}

TEST_F(Documents, ByteOrderMarkAndCarriageReturnsAreDropped) {
  EXPECT_EQ(texts(TextFormat::kBlankLine,
                  "\xEF\xBB\xBF"
                  "a\r\nb\r\n\r\nc\r"),
            (Texts{"a\nb", "c"}));
  EXPECT_EQ(texts(TextFormat::kBlankLine, "\xEF\xBB\xBF"), Texts{});
}

TEST_F(Documents, OnePerLine) {
  EXPECT_EQ(texts(TextFormat::kLinePerDocument, "a b\n\nc\r\n"), (Texts{"a b", "", "c"}));
}

TEST_F(Documents, JsonLinesKeepTheirLineNumbers) {
  const auto documents = read(TextFormat::kJsonLines, "{\"text\":1}\n\n{}\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].text, "{\"text\":1}");
  EXPECT_EQ(documents[1].line, 3u);
}

TEST_F(Documents, FilesNeverJoin) {
  fs::create_directories(folder_ / "in/sub");
  write_bytes(folder_ / "in/b.txt", "third");
  write_bytes(folder_ / "in/a.txt", "first\n\nsecond");
  write_bytes(folder_ / "in/sub/c.jsonl", "{}");
  const auto sources = list_text_sources({folder_ / "in", folder_ / "in/a.txt"}, TextFormat::kAuto);
  ASSERT_EQ(sources.size(), 4u);
  EXPECT_EQ(sources[2].format, TextFormat::kJsonLines);
  const auto documents = read_all(sources);
  EXPECT_EQ(texts_of(documents), (Texts{"first", "second", "third", "{}", "first", "second"}));
  EXPECT_EQ(documents[2].source, 1u);
  EXPECT_EQ(documents[4].source, 3u);
}

TEST_F(Documents, LongLinesAreCutBetweenWordsOrCharacters) {
  std::string words, chinese;
  while (words.size() < 3 * kMaxLineBytes) words += "abcdefg ";
  while (chinese.size() < 2 * kMaxLineBytes) chinese += "\xE4\xB8\xAD";
  const auto of_words = texts(TextFormat::kLinePerDocument, words);
  ASSERT_EQ(of_words.size(), 4u);
  std::string joined;
  for (const std::string& text : of_words) {
    EXPECT_LE(text.size(), kMaxLineBytes);
    joined += text;
  }
  EXPECT_EQ(joined, words);
  EXPECT_EQ(of_words[1].substr(0, 8), " abcdefg");

  const auto of_chinese = texts(TextFormat::kLinePerDocument, chinese + "\nend\n");
  ASSERT_EQ(of_chinese.size(), 4u);
  EXPECT_EQ(of_chinese[0].size() % 3, 0u);
  EXPECT_EQ(of_chinese[0] + of_chinese[1] + of_chinese[2], chinese);
  EXPECT_EQ(of_chinese[3], "end");
}

TEST_F(Documents, LongDocumentsGoOnAsNewOnes) {
  std::string bytes;
  const std::string line(1000, 'x');
  for (int i = 0; i < 40000; ++i) bytes += line + "\n";
  const auto documents = texts(TextFormat::kBlankLine, bytes);
  ASSERT_EQ(documents.size(), 3u);
  std::string joined;
  for (const std::string& text : documents) {
    EXPECT_LE(text.size(), kMaxDocumentBytes);
    joined += text + "\n";
  }
  EXPECT_EQ(joined, bytes);
}

TEST_F(Documents, AJsonLineMayBeLongButNotEndless) {
  const std::string document(kMaxDocumentBytes - 100, 'x');
  const auto documents =
      read(TextFormat::kJsonLines, "\n" + document + "\n" + document + document + "\n{}\n");
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[0].text.size(), document.size());
  EXPECT_EQ(documents[1].damage, "the line is longer than 16777216 bytes, the most");
  EXPECT_EQ(documents[1].line, 3u);
  EXPECT_EQ(documents[2].text, "{}");
  EXPECT_EQ(documents[2].line, 4u);
}

TEST_F(Documents, RefuseFilesThatAreNotText) {
  const auto complaint = [this](const std::string& bytes) {
    return message_of<CorpusError>([&] { read(TextFormat::kBlankLine, bytes, "odd.txt"); });
  };
  EXPECT_EQ(complaint("abc" + std::string(17, '\0')),
            (folder_ / "odd.txt").string() +
                ": is not text in UTF-8: 17 of its first 20 bytes are zero, so it is binary");
  EXPECT_NE(complaint("%PDF-1.4\n\xE2\xE3").find("it is a PDF"), std::string::npos);
  std::string gb18030;
  for (int i = 0; i < 1000; ++i) gb18030 += "\xD6\xD0\xCE\xC4";  // 中文
  EXPECT_NE(complaint(gb18030).find("choose its encoding (gb18030, auto)"), std::string::npos);
}

TEST_F(Documents, AFewStrayBytesAreNoReasonToRefuse) {
  EXPECT_EQ(texts(TextFormat::kBlankLine, "\xFF\xC0 a"), (Texts{"\xFF\xC0 a"}));
  const std::string zero("a\0b", 3);
  EXPECT_EQ(texts(TextFormat::kBlankLine, zero), Texts{zero});
}

TEST_F(Documents, NameInputsThatCannotBeRead) {
  const auto list = [](const fs::path& path) {
    return list_text_sources({path}, TextFormat::kAuto);
  };
  const std::string missing = message_of<std::system_error>([&] { list(folder_ / "missing.txt"); });
  EXPECT_NE(missing.find("missing.txt"), std::string::npos) << missing;
  EXPECT_NE(missing.find("No such file"), std::string::npos) << missing;
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THROW(list(folder_ / "fifo"), std::invalid_argument);
  fs::create_directory(folder_ / "empty");
  EXPECT_THROW(list(folder_ / "empty"), std::invalid_argument);
  // Opens, but a read at its beginning fails, for root as well.
  const std::vector<TextSource> memory = {{"/proc/self/mem", TextFormat::kBlankLine, 0}};
  const std::string refused = message_of<std::system_error>([&] { read_all(memory); });
  EXPECT_NE(refused.find("/proc/self/mem"), std::string::npos) << refused;
}

TEST(DocumentText, InvalidPartsBecomeReplacementCharacters) {
  const auto repaired = [](std::string text, std::uint64_t invalid) {
    EXPECT_EQ(count_invalid_bytes(text), invalid);
    EXPECT_EQ(replace_invalid_bytes(text), invalid);
    EXPECT_EQ(count_invalid_bytes(text), 0u);
    return text;
  };
  EXPECT_EQ(repaired("plain \xE4\xB8\xAD \xEF\xBF\xBD", 0), "plain \xE4\xB8\xAD \xEF\xBF\xBD");
  EXPECT_EQ(repaired("a\xFF"
                     "b",
                     1),
            "a\xEF\xBF\xBD"
            "b");
  // A truncated character is one part, an overlong one a part per byte.
  EXPECT_EQ(repaired("\xE4\xB8", 2), "\xEF\xBF\xBD");
  EXPECT_EQ(repaired("\xC0\x80", 2), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(repaired(std::string("a\0\0", 3), 2), "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(DocumentText, LinesWithInvalidBytesCanBeDropped) {
  std::string text("good\nb\xFF!\n\nalso good\nz\0ro", 24);
  std::uint64_t dropped = 0;
  EXPECT_EQ(drop_invalid_lines(text, dropped), 2u);
  EXPECT_EQ(text, "good\n\nalso good");
  EXPECT_EQ(dropped, 2u);
}

TEST(DocumentText, AKeyMayLieDeeper) {
  const auto text = [](const std::string& line, const std::string& key) {
    return text_of_json_line(line, key);
  };
  const std::string line =
      R"({"b": "no", "a": {"x": {"b": "no"}, "c": [{"b": "no"}], "b": "yes"}, "a.b": "dot"})";
  EXPECT_EQ(text(line, "a.b"), "yes");
  EXPECT_EQ(text(line, "a\\.b"), "dot");
  EXPECT_EQ(text(line, "a.x.b"), "no");
  EXPECT_EQ(message_of<CorpusError>([&] { text(line, "a.c.b"); }), "has no key 'a.c.b'");
  EXPECT_EQ(message_of<CorpusError>([&] { text(line, "a.x"); }), "key 'a.x' is not a string");
  EXPECT_EQ(message_of<CorpusError>([&] { text(R"({"a": 1, "b": "no"})", "a.b"); }),
            "has no key 'a.b'");
}

TEST(DocumentText, TakesOneStringOutOfAJsonLine) {
  const auto text = [](const std::string& line) { return text_of_json_line(line, "text"); };
  EXPECT_EQ(text(R"({"a": {"text": "no"}, "text": "yes\n\u4e2d", "b": [1, {"text": 2}]})"),
            "yes\n\xE4\xB8\xAD");
  EXPECT_EQ(text(R"({"text": ""})"), "");
  EXPECT_EQ(text(R"({"x": )" + std::string(200000, '[') + std::string(200000, ']') +
                 R"(, "text": "deep"})"),
            "deep");
}

TEST(DocumentText, SaysWhatIsWrongWithAJsonLine) {
  const auto complaint = [](const std::string& line) {
    return message_of<CorpusError>([&] { text_of_json_line(line, "text"); });
  };
  EXPECT_NE(complaint("{\"text\": \"a").find("is not JSON: column "), std::string::npos);
  EXPECT_NE(complaint("{\"text\": \"a\"} x").find("is not JSON"), std::string::npos);
  EXPECT_EQ(complaint("[{\"text\": \"a\"}]"), "is not a JSON object");
  EXPECT_EQ(complaint("\"text\""), "is not a JSON object");
  EXPECT_EQ(complaint("{\"Text\": \"a\"}"), "has no key 'text'");
  EXPECT_EQ(complaint("{\"a\": {\"text\": \"a\"}}"), "has no key 'text'");
  EXPECT_EQ(complaint("{\"text\": 5}"), "key 'text' is not a string");
  EXPECT_EQ(complaint("{\"text\": [\"a\"]}"), "key 'text' is not a string");
  EXPECT_EQ(complaint("{\"text\": null}"), "key 'text' is not a string");
}

// sha256sum of "abc" begins with ba7816bf8f01cfea (FIPS 180-2, appendix B.1).
TEST(DocumentText, HashIsTheBeginningOfTheSha256) {
  ContentDigest digest;
  EXPECT_EQ(document_hash("abc", digest), 0xba7816bf8f01cfeau);
  EXPECT_EQ(document_hash("abc", digest), 0xba7816bf8f01cfeau);
  EXPECT_EQ(sha256_hex_of("abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tupelo::document_reader_test

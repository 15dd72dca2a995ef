#include <gtest/gtest.h>

#include <random>

#include "data/document_batch.h"
#include "data/document_reader.h"
#include "data/errors.h"
#include "data/input/html_text.h"
#include "data/input/manual_text.h"
#include "data/input/message_catalogue.h"
#include "data/input/restructured_text.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::formats_test {
namespace {

std::string html(const std::string& page) { return text_of_html(page); }
std::string manual(const std::string& page) { return text_of_manual(page); }
std::string rst(const std::string& file) { return text_of_restructured(file); }

TEST(HtmlText, BlocksEndLines) {
  EXPECT_EQ(html("<html><head><title>The\n title</title><style>p {}</style></head><body>"
                 "<nav>Home</nav><h1>Head</h1><p>One <b>bold</b> word,\n and <br>another</p>"
                 "<ul><li>a<li>b</ul><table><tr><td>1<td>2<tr><td>3</table>"
                 "<script>if (a < b) { x(); }</script><p>End</body></html>"),
            "The title\nHead\nOne bold word, and\nanother\na\nb\n1 2\n3\nEnd");
}

TEST(HtmlText, EntitiesAndReferencesAreCharacters) {
  EXPECT_EQ(html("<p>a &lt;b&gt; &amp;&nbsp;&#20013;&#x6587; &eacute; &unknown;"),
            "a <b> & 中文 é &unknown;");
}

TEST(HtmlText, ALineBreakInsideChineseIsNoSpace) {
  EXPECT_EQ(html("<p>春天的风，\n  吹过“山岗”。\nspring\n风 和 雨</p>"),
            "春天的风，吹过“山岗”。 spring 风 和 雨");
}

TEST(HtmlText, PreformattedTextKeepsItsLines) {
  EXPECT_EQ(html("<pre>  a\n    b\n\nc</pre>d"), "  a\n    b\nc\nd");
}

TEST(HtmlText, PronunciationsAreLeftOut) {
  EXPECT_EQ(html("<p><ruby>中<rp>(</rp><rt>zhōng</rt><rp>)</rp></ruby>国"), "中国");
}

TEST(HtmlText, IsUtf8WhateverThePageSays) {
  EXPECT_EQ(html("<meta charset=\"gb2312\"><p>中文"), "中文");
  EXPECT_EQ(html("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><html><body>é"), "é");
}

TEST(HtmlText, ReadsBrokenAndHostilePages) {
  EXPECT_EQ(html("<p>a</b></div></p><b>c"), "a\nc");
  EXPECT_EQ(html(""), "");
  EXPECT_EQ(html("<"), "<");
  EXPECT_EQ(html("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><p>a&e;b").find("root"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<div>";
  EXPECT_EQ(message_of<CorpusError>([&] { html(deep); }), "has elements nested deeper than 2000");
}

TEST(ManualText, HeadingsAndParagraphsAreLines) {
  EXPECT_EQ(
      manual(".\\\" comment\n.de XX\nhidden\n..\n.TH LS 1 2020 x\n.SH NAME\nls \\- list\n"
             "files\n.SH \"LONG NAME\"\nOne\n.B bold word\nand\n.BR ls (1).\n.PP\nTwo \\fIit"
             "\\fR \\(em \\[u4E2D]\\N'65'.\n.TP\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\nEverything.\n"),
      "NAME\nls - list files\nLONG NAME\nOne bold word and ls(1).\nTwo it — 中A.\n"
      "-a, --all Everything.");
}

TEST(ManualText, UnfilledTextKeepsItsLines) {
  EXPECT_EQ(manual(".SH EXAMPLE\n.nf\n  one\n    two\n.fi\nthree\nfour\n"),
            "EXAMPLE\n  one\n    two\nthree four");
}

TEST(ManualText, OnlyTheTerminalsBranchIsRead) {
  EXPECT_EQ(manual(".SH A\n.if n yes\n.if t no\n.ie t no\n.el yes2\n.if t \\{\\\nno\n.B no\n.\\}\n"
                   ".if n \\{\\\nyes3\n.\\}\nend\n"),
            "A\nyes yes2 yes3 end");
}

TEST(ManualText, TablesAndChineseAndMdoc) {
  EXPECT_EQ(manual(".SH 名称\n列出\n目录\n.TS\nl l.\na\tb\n_\nc\tT{\nlong\ntext\nT}\n.TE\nend\n"),
            "名称\n列出目录\na b\nc long text\nend");
  EXPECT_EQ(manual(".Dd May 1\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd does it\n.Sh OPTIONS\n"
                   ".Bl -tag -width 3\n.It Fl v Ar level\nSee\n.Xr y 8 .\n.Nm\nis verbose.\n.El\n"),
            "NAME\nx - does it\nOPTIONS\n-v level See y(8). x is verbose.");
}

TEST(ManualText, EscapesTakeCharactersNotBytes) {
  EXPECT_EQ(manual(".SH \\f中文\\中\\(中文\\h中x中\\s文!\n"), "文中!");
}

TEST(ManualText, SaysWhatIsNoManualPage) {
  EXPECT_EQ(manual(".so man1/other.1\n"), "");
  EXPECT_EQ(message_of<CorpusError>([] { manual("Jan 1 kernel: started\n"); }),
            "is no manual page: it has none of .TH, .Dd, .SH, .Sh and .so");
}

TEST(RestructuredText, KeepsWhatIsWrittenForReaders) {
  EXPECT_EQ(
      rst("=====\nTitle\n=====\n\n.. SPDX: comment\n   more of it\n\n:Author: Some `body`\n\n"
          "A paragraph with ``code``, *stress*,\n**more** and `a link <http://x>`_ or "
          ":ref:`that one <x>`.\n\n- first\n- second\n  goes on\n\n1. numbered\n\nCode::\n\n"
          "    int x;\n\n    int y;\n\nAfter name_ and foo_bar. [1]_\n\n.. note::\n   Take "
          "care.\n\n.. code-block:: c\n   :caption: x\n\n   int z;\n\n.. _target:\n\n"
          "Last\n----\n"),
      "Title\nAuthor: Some body\nA paragraph with code, stress, more and a link or that one.\n"
      "first\nsecond goes on\n1. numbered\nCode:\nAfter name and foo_bar.\nTake care.\nLast");
}

TEST(RestructuredText, TablesAndDoctestsAndChinese) {
  EXPECT_EQ(rst("+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+\n\n== ==\ne  f\n== ==\n\n"
                ">>> 1 + 1\n2\n\n这是一个\n段落。\n\n| line\n| block\n"),
            "a b\nc d\ne f\n这是一个段落。\nline\nblock");
}

TEST(RestructuredText, MarkupWithoutEndStays) {
  EXPECT_EQ(rst("a * b and `c and **d and |e and [f and :g: 2 ** 3"),
            "a * b and `c and **d and |e and [f and :g: 2 ** 3");
}

TEST(Formats, HostileTextTakesLinearTime) {
  for (const std::string piece :
       {"*", "`", "**", "``", "|", "[", ":", "_", ":a", "[a", "\\", "'"}) {
    std::string text;
    while (text.size() < 500'000) text += piece;
    rst(text);
    manual(".SH A\n" + text + "\n" + "." + text + "\n.B " + text);
  }
  std::string conditions = ".SH A\n";
  while (conditions.size() < 500'000) conditions += ".if n ";
  manual(conditions);
  for (const std::string piece :
       {".TS\n", "T{", "T}", "\\{", ".if t \\{\n", "\\f[", "\\h'", "\""}) {
    std::string text = ".SH A\n.TS\nl.\n";
    while (text.size() < 500'000) text += piece;
    manual(text);
  }
}

TEST(Formats, AnyBytesAreReadWithoutHarm) {
  std::mt19937_64 random(7);
  const std::string alphabet = "\n\n..'\\\\\"{}[]()*`_:|+-=<>/&;#abTHSfnt ";
  for (int i = 0; i < 20'000; ++i) {
    std::string text = random() % 2 == 0 ? ".SH A\n" : "";
    for (std::uint64_t length = random() % 80; length > 0; --length) {
      text += alphabet[random() % alphabet.size()];
    }
    html(text);
    rst(text);
    try {
      manual(text);
    } catch (const CorpusError&) {
    }
  }
}

// A catalogue as msgfmt lays it out: header, two tables, strings.
std::string catalogue(const std::vector<std::pair<std::string, std::string>>& entries,
                      bool big_endian = false) {
  std::string bytes, strings;
  const auto number = [&](std::uint64_t value) {
    for (int i = 0; i < 4; ++i) {
      bytes += static_cast<char>(value >> (8 * (big_endian ? 3 - i : i)) & 0xFF);
    }
  };
  const std::size_t tables = 28 + 16 * entries.size();
  for (const std::uint64_t value :
       {std::uint64_t{0x950412DE}, std::uint64_t{0}, std::uint64_t{entries.size()},
        std::uint64_t{28}, std::uint64_t{28 + 8 * entries.size()}, std::uint64_t{0},
        std::uint64_t{tables}}) {
    number(value);
  }
  const auto table = [&](bool translations) {
    for (const auto& entry : entries) {
      const std::string& text = translations ? entry.second : entry.first;
      number(text.size());
      number(tables + strings.size());
      strings += text + std::string(1, '\0');
    }
  };
  table(false);
  table(true);
  return bytes + strings;
}

std::vector<std::string> translations(const std::string& bytes) {
  MessageCatalogue messages(bytes, "f");
  std::vector<std::string> all;
  std::string translation;
  while (messages.next(translation)) all.push_back(translation);
  return all;
}

const std::vector<std::pair<std::string, std::string>> kEntries = {
    {"", "Content-Type: text/plain; charset=UTF-8\nX: y\n"},
    {std::string("ctx\4open"), "打开"},
    {std::string("one file\0many files", 19), std::string("一个文件\0许多文件\0一个文件", 38)},
    {"untranslated", ""}};

TEST(MessageCatalogue, GivesTranslations) {
  const std::vector<std::string> expected = {"打开", "一个文件\n许多文件"};
  EXPECT_EQ(translations(catalogue(kEntries)), expected);
  EXPECT_EQ(translations(catalogue(kEntries, true)), expected);
  EXPECT_EQ(translations(catalogue({})), std::vector<std::string>{});
}

TEST(MessageCatalogue, DecodesItsCharset) {
  EXPECT_EQ(translations(catalogue(
                {{"", "Content-Type: text/plain; charset=gb2312\n"}, {"a", "\xD6\xD0\xCE\xC4"}})),
            std::vector<std::string>{"中文"});
  EXPECT_EQ(message_of<CorpusError>([] {
              translations(catalogue({{"", "charset=NONE-SUCH\n"}, {"a", "b"}}));
            }),
            "f: is in the encoding 'NONE-SUCH', which is not known");
}

TEST(MessageCatalogue, RefusesWhatIsNone) {
  const auto complaint = [](const std::string& bytes) {
    return message_of<CorpusError>([&] { translations(bytes); });
  };
  const std::string good = catalogue(kEntries);
  EXPECT_NE(complaint("").find("shorter than its header"), std::string::npos);
  EXPECT_NE(complaint(std::string(28, 'x')).find("magic number"), std::string::npos);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(complaint(good.substr(0, size)).find("f: is no gettext catalogue: it "),
              std::string::npos);
  }
  // All strings are one: as much text as entries times file would be a trap.
  std::string trap = catalogue({{"", ""}, {"a", std::string(200, 'x')}, {"b", "y"}, {"c", "z"}});
  for (const std::size_t entry : {2u, 3u}) {
    for (std::size_t i = 0; i < 8; ++i) trap[28 + 32 + 8 * entry + i] = trap[28 + 32 + 8 + i];
  }
  EXPECT_NE(complaint(trap).find("overlap"), std::string::npos);
}

TEST(MessageCatalogue, AnyChangedByteIsReadOrRefused) {
  const std::string good = catalogue(kEntries);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      try {
        translations(bytes);
      } catch (const CorpusError&) {
      }
    }
  }
}

class FormatFiles : public testing::Test {
 protected:
  std::vector<std::string> texts(const std::string& name, const std::string& bytes,
                                 const ReadOptions& options = {}) {
    write_bytes(folder_ / name, bytes);
    const auto sources = list_text_sources({folder_ / name}, TextFormat::kAuto);
    DocumentReader reader(sources, options);
    const TextExtractor extractor(sources, {.damaged_input = options.damaged_input});
    std::vector<std::string> all;
    RawDocument document;
    counts_ = {};
    while (reader.next(document)) {
      const auto text = extractor.text_of(std::move(document), counts_);
      if (text) all.push_back(*text);
    }
    damaged_files_ = reader.damaged_files();
    return all;
  }

  TemporaryFolder folder_;
  TextCounts counts_;
  std::vector<DamagedFile> damaged_files_;
};

using Texts = std::vector<std::string>;

TEST_F(FormatFiles, ReachTheirReaders) {
  EXPECT_EQ(texts("a.html", "<p>a<p>b"), (Texts{"a\nb"}));
  EXPECT_EQ(texts("a.rst", "*a*\n"), (Texts{"a"}));
  EXPECT_EQ(texts("a.1", ".SH A\nb\n"), (Texts{"A\nb"}));
  EXPECT_EQ(texts("a.mo", catalogue(kEntries)), (Texts{"打开", "一个文件\n许多文件"}));
  EXPECT_EQ(texts("a.html", ""), Texts{});
}

TEST_F(FormatFiles, ATableHasNamedOrNumberedColumns) {
  const std::string table = "id\ttext\tlabel\n1\t春天\tx\n\n2\ta b\ty\r\n3\t\tz\n";
  EXPECT_EQ(texts("a.tsv", table), (Texts{"春天", "a b", ""}));
  EXPECT_EQ(texts("a.tsv", table, {.text_column = "label"}), (Texts{"x", "y", "z"}));
  EXPECT_EQ(texts("a.tsv", "1\t春天\n2\ta b\n", {.text_column = "2"}), (Texts{"春天", "a b"}));
  EXPECT_EQ(texts("a.tsv", ""), Texts{});
  const std::string file = (folder_ / "a.tsv").string();
  EXPECT_EQ(message_of<CorpusError>([&] { texts("a.tsv", table, {.text_column = "body"}); }),
            file +
                ":1: has no column 'body' in its first line; a number stands for a column of a "
                "file without names");
  EXPECT_EQ(message_of<CorpusError>([&] { texts("a.tsv", table + "4\n"); }),
            file + ":6: has no column 2 ('text')");
}

TEST_F(FormatFiles, DamagedRecordsCanBeSkipped) {
  const ReadOptions skip = {.damaged_input = DamagedInput::kSkip};
  EXPECT_EQ(texts("a.jsonl", "{\"text\": \"a\"}\nno\n{\"text\": 1}\n{\"text\": \"b\"}\n", skip),
            (Texts{"a", "b"}));
  EXPECT_EQ(counts_.damaged_records, 2u);
  ASSERT_EQ(counts_.damage.size(), 2u);
  EXPECT_EQ(counts_.damage[1].place, (TextPlace{0, 0, 3}));
  EXPECT_EQ(counts_.damage[1].reason, "key 'text' is not a string");
  EXPECT_EQ(texts("a.tsv", "id\ttext\n1\n2\tb\n", skip), (Texts{"b"}));
  EXPECT_EQ(counts_.damaged_records, 1u);
  EXPECT_EQ(texts("a.1", "no manual\n", skip), Texts{});
  EXPECT_EQ(counts_.damaged_records, 1u);
}

TEST_F(FormatFiles, DamagedFilesCanBeSkipped) {
  const ReadOptions skip = {.damaged_input = DamagedInput::kSkip};
  EXPECT_EQ(texts("a.mo", "none", skip), Texts{});
  ASSERT_EQ(damaged_files_.size(), 1u);
  EXPECT_EQ(damaged_files_[0].reason,
            (folder_ / "a.mo").string() +
                ": is no gettext catalogue: it is shorter than its header of 28 bytes");
  EXPECT_EQ(texts("a.txt.gz", "no gzip", skip), Texts{});
  EXPECT_EQ(damaged_files_.size(), 1u);
  EXPECT_EQ(texts("a.txt", std::string(5000, '\0'), skip), Texts{});
  EXPECT_EQ(damaged_files_.size(), 1u);
}

}  // namespace
}  // namespace tupelo::formats_test

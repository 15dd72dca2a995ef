// The input in pieces: however it is divided, the documents are the same.
#include "data/text_group.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "data/document_reader.h"
#include "data/errors.h"
#include "data/input/divisible_file.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::text_group_test {
namespace {

class TextGroups : public testing::Test {
 protected:
  TextSource source(const std::string& name, TextFormat format, const std::string& bytes) {
    write_bytes(folder_ / name, bytes);
    return {folder_ / name, format, bytes.size(), file_state(folder_ / name)};
  }

  // "source file:line text" of every document.
  static std::vector<std::string> documents(const std::vector<TextSource>& sources,
                                            const std::vector<TextGroup>& groups,
                                            const ReadOptions& options = {}) {
    std::vector<std::string> all;
    for (const TextGroup& group : groups) {
      DocumentReader reader(sources, options, group);
      RawDocument document;
      while (reader.next(document)) {
        all.push_back(text_place(document.place(), sources) + " " + document.text +
                      document.damage);
      }
    }
    return all;
  }

  // Divides into pieces of many sizes; returns how many there were at most.
  static std::size_t expect_same(const std::vector<TextSource>& sources,
                                 const ReadOptions& options = {}) {
    const auto whole = documents(sources, {{0, sources.size()}}, options);
    EXPECT_FALSE(whole.empty());
    std::size_t most = 0;
    for (const std::uint64_t bytes : {16u, 17u, 23u, 40u, 64u, 100u, 333u, 1000u, 100000u}) {
      const auto groups = divide_into_groups(sources, options, bytes);
      EXPECT_EQ(documents(sources, groups, options), whole) << bytes << " bytes";
      std::uint64_t sum = 0;
      for (const TextGroup& group : groups) sum += group.bytes;
      std::uint64_t all = 0;
      for (const TextSource& source : sources) all += source.bytes;
      EXPECT_EQ(sum, all);
      most = std::max(most, groups.size());
    }
    return most;
  }

  TemporaryFolder folder_;
};

// Lines, blank lines of all kinds, carriage returns, Chinese.
std::string made_up_lines(std::uint64_t seed, int lines) {
  const std::vector<std::string> kinds = {
      "",      " ",        "\t",      "\r",    "\xE3\x80\x80",
      "river", "春天的风", "light\r", "a b c", "石头\t\xE3\x80\x80"};
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) text += kinds[random() % kinds.size()] + "\n";
  return text + "end";
}

TEST_F(TextGroups, TextIsDividedBetweenDocuments) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string text = made_up_lines(seed, 120);
    EXPECT_GT(expect_same({source("a.txt", TextFormat::kBlankLine, text)}), 8u);
    EXPECT_GT(expect_same({source("b.txt", TextFormat::kLinePerDocument, text)}), 20u);
    EXPECT_GT(expect_same({source("c.txt", TextFormat::kBlankLine, "\xEF\xBB\xBF" + text)}), 8u);
  }
}

TEST_F(TextGroups, RecordsAreDividedBetweenLines) {
  std::string json, table = "id\ttext\tx\n";
  for (int i = 0; i < 60; ++i) {
    if (i % 7 != 0)
      json.append("{\"text\": \"").append(static_cast<std::size_t>(i), 'x').append("\"}\r");
    json += '\n';
    table += std::to_string(i);
    if (i % 9 != 0) table.append("\ttext of ").append(std::to_string(i)).append("\ty");
    table += '\n';
  }
  EXPECT_GT(expect_same({source("a.jsonl", TextFormat::kJsonLines, json)}), 20u);
  EXPECT_GT(expect_same({source("a.tsv", TextFormat::kTabSeparated, table)}), 20u);
  EXPECT_GT(expect_same({source("a.tsv", TextFormat::kTabSeparated, table)}, {.text_column = "1"}),
            20u);
}

TEST_F(TextGroups, LongLinesStayInOnePiece) {
  const std::string text = "first\n\n" + std::string(3 * kMaxLineBytes, 'x') + " " +
                           std::string(200'000, ' ') + "\n\nlast\n";
  const std::vector<TextSource> sources = {source("a.txt", TextFormat::kBlankLine, text)};
  const auto whole = documents(sources, {{0, 1}});
  for (const std::uint64_t bytes : {1000u, 65536u, 1u << 20}) {
    EXPECT_EQ(documents(sources, divide_into_groups(sources, {}, bytes)), whole);
  }
}

TEST_F(TextGroups, SmallFilesGoTogether) {
  std::vector<TextSource> sources;
  for (int i = 0; i < 10; ++i) {
    sources.push_back(source(std::to_string(i) + ".txt", TextFormat::kBlankLine,
                             "document " + std::to_string(i) + "\n"));
  }
  const auto groups = divide_into_groups(sources, {}, 30);
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].sources, 3u);
  EXPECT_EQ(groups[3].first_source, 9u);
  EXPECT_EQ(groups[3].sources, 1u);
  expect_same(sources);
}

TEST_F(TextGroups, WhatCannotBeDividedStaysWhole) {
  const std::string text = made_up_lines(3, 200);
  std::string wide = "\xFF\xFE";
  for (const char c : std::string("a\n\nb\n\n")) wide += std::string{c, '\0'};
  const std::vector<TextSource> sources = {
      source("page.html", TextFormat::kHtml, "<p>" + text),
      source("wide.txt", TextFormat::kBlankLine, wide),
      source("gb.txt", TextFormat::kBlankLine, "\xD6\xD0\xCE\xC4\n\n\xD6\xD0\n")};
  EXPECT_FALSE(is_divisible(sources[0], {}));
  EXPECT_FALSE(is_divisible(sources[1], {}));
  EXPECT_FALSE(is_divisible(sources[2], {.encoding = TextEncoding::kGb18030}));
  EXPECT_TRUE(is_divisible(source("a.txt", TextFormat::kBlankLine, text), {}));
  expect_same({sources[1]});
}

TEST_F(TextGroups, AFileThatChangedIsRefused) {
  const std::vector<TextSource> sources = {
      source("a.txt", TextFormat::kBlankLine, made_up_lines(1, 300))};
  const auto groups = divide_into_groups(sources, {}, 500);
  ASSERT_GT(groups.size(), 2u);
  write_bytes(folder_ / "a.txt", made_up_lines(2, 301));
  EXPECT_NE(message_of<FileChanged>([&] { documents(sources, {groups[1]}); }).find("was changed"),
            std::string::npos);
}

}  // namespace
}  // namespace tupelo::text_group_test

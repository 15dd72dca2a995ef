// Cleaning on the way from files to a corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "data/corpus.h"
#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::cleaned_corpus_test {
namespace {

namespace fs = std::filesystem;

class CleanedCorpus : public testing::Test {
 protected:
  CleanedCorpus() { fs::create_directory(folder_ / "in"); }

  PrepareOptions options(const std::string& output = "corpus") const {
    PrepareOptions options;
    options.inputs = {folder_ / "in"};
    options.output = folder_ / output;
    options.train_vocab_size = 300;
    options.min_count = 1;
    options.held_out = 0;
    options.cleaning.enabled = true;
    options.force = true;
    return options;
  }
  void put(const std::string& name, const std::string& bytes) {
    write_bytes(folder_ / "in" / name, bytes);
  }
  static const RuleReport& rule(const PrepareReport& report, const std::string& name) {
    for (const RuleReport& one : report.cleaning.rules) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no rule " << name;
    return report.cleaning.rules.front();
  }
  // A paragraph of sentences that no other has.
  static std::string paragraph(std::uint64_t seed, int sentences) {
    std::mt19937_64 random(seed);
    std::string text;
    for (int i = 0; i < sentences; ++i) {
      for (int word = 0; word < 12; ++word) {
        text += std::string("abcdefghijklmnop").substr(random() % 10, 2 + random() % 5) + " ";
      }
      text += std::to_string(random() % 100'000) + ".\n";
    }
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(CleanedCorpus, DropsEqualDocumentsAndLines) {
  const std::string one = paragraph(1, 3), two = paragraph(2, 3), three = paragraph(3, 2);
  const std::string line_of_one = one.substr(0, one.find('\n') + 1);
  put("a.txt", one + "\n" + two + "\n" + one);
  put("b.txt", two + "\n" + line_of_one + three);
  const PrepareReport report = prepare_corpus(options());
  EXPECT_EQ(report.documents, 3u);
  EXPECT_EQ(rule(report, "duplicate-documents").documents, 2u);
  EXPECT_EQ(rule(report, "duplicate-documents").bytes, one.size() + two.size() - 2);
  EXPECT_EQ(rule(report, "duplicate-lines").lines, 1u);
  EXPECT_EQ(rule(report, "duplicate-lines").bytes, line_of_one.size());
  ASSERT_EQ(rule(report, "duplicate-lines").examples.size(), 1u);
  EXPECT_EQ(rule(report, "duplicate-lines").examples[0].place, (TextPlace{1, 0, 5}));
  EXPECT_EQ(report.cleaning.documents_before, 5u);
  EXPECT_EQ(report.cleaning.documents_after, 3u);
  EXPECT_EQ(report.cleaning.bytes_after, one.size() + two.size() + three.size() - 3);

  PrepareOptions plain = options("plain");
  plain.cleaning.enabled = false;
  fs::remove(folder_ / "in/b.txt");
  put("a.txt", one + "\n" + two + "\n" + three);
  prepare_corpus(plain);
  std::vector<std::string> shards;
  for (const std::string name : {"corpus", "plain"}) {
    const ShardedCorpus corpus(folder_ / name, Split::kTrain);
    std::string ids;
    for (std::size_t d = 0; d < corpus.documents(); ++d) {
      ids += std::to_string(corpus.document_offsets()[d + 1]) + " ";
    }
    shards.push_back(ids);
  }
  EXPECT_EQ(shards[0], shards[1]);
  EXPECT_FALSE(fs::exists(folder_ / "plain/report.json"));
}

TEST_F(CleanedCorpus, NoNearDuplicateOfAHeldOutDocumentIsTrainedOn) {
  std::string text;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string original = paragraph(i, 10);
    std::string near = original;
    near.insert(near.size() / 2, 1, 'X');
    text.append(original).append("\n").append(near).append("\n");
  }
  put("a.txt", text);
  PrepareOptions chosen = options();
  chosen.held_out = 0.3;
  chosen.cleaning.duplicate_line_characters = 0;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_GE(rule(report, "near-duplicates").documents, 198u);
  EXPECT_LE(rule(report, "near-duplicates").documents, 200u);
  EXPECT_EQ(report.documents + rule(report, "near-duplicates").documents, 400u);
  EXPECT_GT(report.held_out_documents, 30u);
}

TEST_F(CleanedCorpus, SameBytesForAnyThreadsAndMemory) {
  std::string text;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    text += paragraph(i % 17'000, 3) + (i % 3 == 0 ? "***\n" : "") + "\n";
  }
  put("a.txt", text);
  put("b.txt", text.substr(0, text.size() / 3));
  const auto bytes_with = [&](int threads, std::uint64_t memory) {
    PrepareOptions chosen = options();
    chosen.threads = threads;
    chosen.cleaning.sort_bytes = memory;
    prepare_corpus(chosen);
    return tree_of(chosen.output);
  };
  const auto expected = bytes_with(1, std::uint64_t{256} << 20);
  EXPECT_EQ(bytes_with(3, std::uint64_t{1} << 20), expected);
  for (const auto& [name, bytes] : expected) {
    EXPECT_EQ(name.find("scratch"), std::string::npos) << name;
  }
}

TEST_F(CleanedCorpus, WritesReportsThatReadWell) {
  put("a.txt", "<script>alert(1)</script> & \"text\" that is long enough\n\n------------\n\n" +
                   paragraph(1, 2));
  const PrepareReport report = prepare_corpus(options());
  const auto json = nlohmann::json::parse(read_bytes(folder_ / "corpus/report.json"));
  EXPECT_EQ(json["before"]["documents"], 3);
  EXPECT_EQ(json["after"]["documents"], 2);
  EXPECT_EQ(json["rules"].size(), report.cleaning.rules.size());
  EXPECT_EQ(json["rules"][2]["name"], "symbol-lines");
  EXPECT_EQ(json["rules"][2]["lines"], 1);
  EXPECT_EQ(json["rules"][2]["examples"][0]["text"], "------------");
  const std::string page = read_bytes(folder_ / "corpus/report.html");
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;text&quot;"),
            std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
}

TEST_F(CleanedCorpus, ADocumentOfDroppedLinesIsGone) {
  put("a.txt", "***\n---\n\nok\n\n" + paragraph(1, 2));
  const PrepareReport report = prepare_corpus(options());
  EXPECT_EQ(report.documents, 1u);
  EXPECT_EQ(report.empty_documents, 0u);
  EXPECT_EQ(report.sources[0].documents, 1u);
}

}  // namespace
}  // namespace tupelo::cleaned_corpus_test

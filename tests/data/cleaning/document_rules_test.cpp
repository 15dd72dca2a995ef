#include <gtest/gtest.h>

#include <stdexcept>

#include "data/cleaning/characters.h"
#include "data/cleaning/cleaner.h"
#include "data/cleaning/html_leftovers.h"
#include "data/cleaning/repetition.h"

namespace tupelo::document_rules_test {
namespace {

// All rules off but what `change` switches on.
CleaningOptions only(const std::function<void(CleaningOptions&)>& change) {
  CleaningOptions options;
  options.control_characters = options.html = options.symbol_lines = false;
  options.min_line_characters = options.min_document_characters = 0;
  options.most_repeated_lines = options.most_repeated_grams = options.most_foreign = 1;
  options.duplicate_documents = options.near_duplicate_documents = false;
  options.duplicate_line_characters = 0;
  change(options);
  return options;
}

struct Cleaned {
  std::string text;
  RuleReport rule;
};

Cleaned cleaned(const std::string& text, const CleaningOptions& options,
                const std::string& language = "zh") {
  const Cleaner cleaner(options, language);
  CleaningReport report = cleaner.empty_report();
  Cleaned result{text, {}};
  cleaner.clean(result.text, {.source = 2, .line = 7}, report);
  result.rule = report.rules.front();
  EXPECT_EQ(report.rules.size(), 4u);  // it, and three for duplicates
  return result;
}

TEST(CleaningRules, ControlCharactersAreTakenOut) {
  const Cleaned result = cleaned(
      "a\x01"
      "b\tc\nd\xEF\xBB\xBF\xE2\x80\x8B\xC2\xAD\xEE\x80\x80\xEF\xBF\xBD"
      "e\n👩‍👧\n",
      only([](auto& o) { o.control_characters = true; }));
  EXPECT_EQ(result.text, "ab\tc\nde\n👩‍👧\n");
  EXPECT_EQ(result.rule.name, "control-characters");
  EXPECT_EQ(result.rule.lines, 2u);
  EXPECT_EQ(result.rule.bytes, 15u);
  EXPECT_EQ(result.rule.documents, 0u);
  ASSERT_EQ(result.rule.examples.size(), 2u);
  EXPECT_EQ(result.rule.examples[0].place, (TextPlace{2, 0, 7}));
  EXPECT_EQ(result.rule.examples[0].text,
            "a\x01"
            "b\tc");
}

TEST(CleaningRules, HtmlLeftoversAreTakenOut) {
  EXPECT_EQ(without_html("<p class=\"x\">春天<br/>的<b>风</b></p><!-- no -->&nbsp;&lt;&#20013;"
                         "&#x4E2D;&amp;&unknown;"),
            " 春天 的风  <中中&&unknown;");
  EXPECT_EQ(without_html("a < b && c > d, vector<int> x<y> <3 <em <"),
            "a < b && c > d, vector<int> x<y> <3 <em <");
  EXPECT_EQ(without_html("&#0;&#xD800;&#99999999;& ;&;"), "&#0;&#xD800;&#99999999;& ;&;");
  const Cleaned result = cleaned("one<br>\ntwo", only([](auto& o) { o.html = true; }));
  EXPECT_EQ(result.text, "one \ntwo");
  EXPECT_EQ(result.rule.lines, 1u);
  EXPECT_EQ(result.rule.bytes, 3u);
}

TEST(CleaningRules, SymbolLinesAreDropped) {
  const Cleaned result =
      cleaned("风\n------\n。。。！\n\n😀😀\n1\n", only([](auto& o) { o.symbol_lines = true; }));
  EXPECT_EQ(result.text, "风\n\n1\n");
  EXPECT_EQ(result.rule.lines, 3u);
  EXPECT_EQ(cleaned("***", only([](auto& o) { o.symbol_lines = true; })).text, "");
}

TEST(CleaningRules, ShortLinesAreDropped) {
  const auto five = only([](auto& o) { o.min_line_characters = 5; });
  const Cleaned result = cleaned("春天的风吹\n春 天 的 风\nabcd \nabcde", five);
  EXPECT_EQ(result.text, "春天的风吹\nabcde");
  EXPECT_EQ(result.rule.lines, 2u);
  EXPECT_EQ(result.rule.bytes, 16u + 6u);
}

TEST(CleaningRules, DocumentsOfTheWrongLengthAreDropped) {
  const auto length = only([](auto& o) {
    o.min_document_characters = 3;
    o.max_document_characters = 5;
  });
  EXPECT_EQ(cleaned("ab ", length).text, "");
  EXPECT_EQ(cleaned("a b c", length).text, "a b c");
  EXPECT_EQ(cleaned("中文中文中文", length).rule.documents, 1u);
  EXPECT_EQ(cleaned("中文中文中文", length).rule.bytes, 18u);
}

TEST(CleaningRules, ChineseAndLanguageAreSharesOfLetters) {
  const auto chinese = only([](auto& o) { o.min_chinese = 0.5; });
  EXPECT_EQ(cleaned("中文ab 123 !!!", chinese).rule.documents, 0u);
  EXPECT_EQ(cleaned("中文abc", chinese).rule.documents, 1u);
  const auto language = only([](auto& o) { o.most_foreign = 0.5; });
  EXPECT_EQ(cleaned("中文 and English", language).rule.documents, 0u);
  EXPECT_EQ(cleaned("Это не по-китайски", language).rule.documents, 1u);
  EXPECT_EQ(cleaned("これはにほんごです", language).rule.documents, 1u);
  EXPECT_EQ(cleaned("これはにほんごです", language, "ja").rule.documents, 0u);
  EXPECT_EQ(cleaned("Это не по-английски", language, "en-GB").rule.documents, 1u);
  EXPECT_EQ(cleaned("中文", language, "en").rule.documents, 1u);
  EXPECT_EQ(cleaned("Это", language, "unknown").rule.documents, 0u);
}

TEST(CleaningRules, RepetitionIsAShareOfTheDocument) {
  EXPECT_DOUBLE_EQ(repeated_share_of_lines("aa\nbb\naa\naa"), 0.5);
  EXPECT_DOUBLE_EQ(repeated_share_of_lines("aa\naa\naa"), 0);
  EXPECT_EQ(
      cleaned("aa\nbb\naa\naa", only([](auto& o) { o.most_repeated_lines = 0.49; })).rule.documents,
      1u);
  EXPECT_EQ(
      cleaned("aa\nbb\naa\naa", only([](auto& o) { o.most_repeated_lines = 0.5; })).rule.documents,
      0u);
  std::string same, different;
  for (int i = 0; i < 100; ++i) {
    same += "买它买它买";
    different += std::to_string(i * 7919);
  }
  EXPECT_GT(repeated_share_of_grams(same), 0.95);
  EXPECT_LT(repeated_share_of_grams(different), 0.2);
  EXPECT_EQ(repeated_share_of_grams("买它买它"), 0);
}

TEST(CleaningRules, OffMeansUntouched) {
  const Cleaner cleaner(only([](auto&) {}), "zh");
  CleaningReport report = cleaner.empty_report();
  std::string text = "<b>\x01***\na\na\na\na\na";
  const std::string before = text;
  cleaner.clean(text, {}, report);
  EXPECT_EQ(text, before);
  EXPECT_FALSE(cleaner.looks_for_duplicates());
}

TEST(CleaningRules, ReportsAddUpAndKeepThreeExamples) {
  RuleReport sum;
  for (std::uint64_t i = 0; i < 5; ++i) {
    RuleReport one{
        .name = "n", .what = "w", .documents = 1, .lines = 2, .bytes = 3, .examples = {}};
    one.examples.push_back({{.line = i}, "x"});
    sum.add(one);
  }
  EXPECT_EQ(sum.documents, 5u);
  EXPECT_EQ(sum.lines, 10u);
  EXPECT_EQ(sum.bytes, 15u);
  ASSERT_EQ(sum.examples.size(), 3u);
  EXPECT_EQ(sum.examples[2].place.line, 2u);
}

TEST(CleaningOptions, AreChecked) {
  const auto refused = [](const std::function<void(CleaningOptions&)>& change) {
    CleaningOptions options;
    change(options);
    EXPECT_THROW(check_cleaning_options(options), std::invalid_argument);
  };
  EXPECT_NO_THROW(check_cleaning_options({}));
  refused([](auto& o) { o.most_repeated_lines = 1.1; });
  refused([](auto& o) { o.min_chinese = -0.1; });
  refused([](auto& o) { o.most_foreign = 2; });
  refused([](auto& o) { o.max_document_characters = 5; });
  refused([](auto& o) { o.sort_bytes = 1000; });
}

}  // namespace
}  // namespace tupelo::document_rules_test

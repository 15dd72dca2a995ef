#include "model/position/resizable_table.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"

namespace tupelo::resizable_table_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kOld = 9;
constexpr std::int64_t kNew = 14;

LengthExtension by(TableExtension tables) {
  LengthExtension extension;
  extension.tables = tables;
  return extension;
}

Tensor table_of(std::int64_t rows) {
  torch::manual_seed(4);
  return torch::randn({rows, 3});
}

const ResizableTable kPositions{"pos.weight", ResizableTable::Rows::kPositions, 2};
const ResizableTable kDistances{"rel.weight", ResizableTable::Rows::kDistances, 0};

TEST(ResizableTable, ExactExtensionsLeaveOldRowsBitForBit) {
  const Tensor table = table_of(8);
  for (const TableExtension tables : {TableExtension::kHierarchical, TableExtension::kCopy}) {
    const Tensor longer = resized_table(table, kPositions, 20, by(tables));
    EXPECT_EQ(longer.size(0), 20);
    EXPECT_TRUE(longer.narrow(0, 0, 8).equal(table));
    EXPECT_TRUE(
        longer.narrow(0, 8, 12).equal(extended_table(table, 2, 20, by(tables)).narrow(0, 8, 12)));
  }
  for (const TableExtension tables : {TableExtension::kAlign, TableExtension::kScale}) {
    const Tensor longer = resized_table(table, kPositions, 20, by(tables));
    EXPECT_TRUE(longer.equal(extended_table(table, 2, 20, by(tables))));
    EXPECT_TRUE(longer.narrow(0, 0, 2).equal(table.narrow(0, 0, 2)));
    EXPECT_FALSE(longer.narrow(0, 0, 8).equal(table));
  }
}

TEST(ResizableTable, FewerPositionsAreTheFirstOnes) {
  const Tensor table = table_of(8);
  const Tensor shorter = resized_table(table, kPositions, 5, by(TableExtension::kError));
  EXPECT_TRUE(shorter.equal(table.narrow(0, 0, 5)));
  EXPECT_NE(shorter.data_ptr(), table.data_ptr());
  EXPECT_THROW(resized_table(table, kPositions, 2, by(TableExtension::kError)),
               std::invalid_argument);
  EXPECT_THROW(resized_table(table, kPositions, 9, by(TableExtension::kError)),
               std::invalid_argument);
}

TEST(ResizableTable, DistancesStayAroundTheMiddle) {
  for (const std::int64_t rows : {7, 8}) {
    const Tensor table = table_of(rows);
    const Tensor longer = resized_table(table, kDistances, rows + 6, by(TableExtension::kError));
    for (std::int64_t row = 0; row < rows + 6; ++row) {
      const std::int64_t old = std::min(std::max<std::int64_t>(row - 3, 0), rows - 1);
      EXPECT_TRUE(longer[row].equal(table[old])) << row;
    }
    EXPECT_TRUE(resized_table(longer, kDistances, rows, by(TableExtension::kError)).equal(table));
  }
}

// What a kind makes of another number of positions, with and without its pinned options.
template <typename Encoding>
std::map<std::string, std::vector<std::int64_t>> shapes(const Encoding& encoding) {
  std::map<std::string, std::vector<std::int64_t>> result;
  for (const auto& parameter : encoding.named_parameters()) {
    result[parameter.key()] = parameter.value().sizes().vec();
  }
  return result;
}

template <typename Encoding>
void expect_only_listed_tables_change(const std::string& name, const Encoding& before,
                                      const Encoding& after) {
  std::set<std::string> listed;
  for (const ResizableTable& table : before.resizable_tables()) listed.insert(table.parameter);
  const auto old_shapes = shapes(before), new_shapes = shapes(after);
  ASSERT_EQ(old_shapes.size(), new_shapes.size()) << name;
  for (const auto& [parameter, sizes] : old_shapes) {
    ASSERT_TRUE(new_shapes.count(parameter)) << name << " " << parameter;
    const bool differ = new_shapes.at(parameter) != sizes;
    EXPECT_TRUE(!differ || listed.count(parameter)) << name << " " << parameter;
    if (listed.count(parameter) && before.resizable_tables().size() == 1) {
      EXPECT_TRUE(differ) << name << " " << parameter;
    }
  }
}

PositionContext context_of(std::int64_t positions) {
  PositionContext context;
  context.heads = 2;
  context.head_width = 4;
  context.max_positions = positions;
  return context;
}

PositionOptions with(PositionOptions options, const PositionOptions& more) {
  for (const auto& option : more) options.push_back(option);
  return options;
}

const std::vector<std::pair<std::string, PositionOptions>>& attention_encodings() {
  static const std::vector<std::pair<std::string, PositionOptions>> encodings = [] {
    std::vector<std::pair<std::string, PositionOptions>> all = {
        {"tupe-a", {{"theta", "paper"}}},
        {"tupe-r", {{"theta", "none"}}},
        {"tupe-full", {{"rel", "t5"}, {"cls_untie", "true"}}},
        {"tupe-full", {{"pp", "both"}}},
        {"rope", {{"scaling", "yarn"}, {"factor", "2"}}}};
    for (const PositionEncodingKind& kind : position_encoding_kinds())
      all.push_back({kind.name, {}});
    return all;
  }();
  return encodings;
}

TEST(ResizableTable, EveryEncodingListsWhatFollowsTheNumberOfPositions) {
  for (const auto& [name, options] : attention_encodings()) {
    const auto before = make_position_encoding(name, context_of(kOld), options);
    const auto after =
        make_position_encoding(name, context_of(kNew), with(options, before->pinned_options()));
    expect_only_listed_tables_change(name, *before, *after);
  }
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    for (const char* options : {"", "(trainable=true)"}) {
      if (*options != '\0' && kind.name != "sinusoidal") continue;
      const InputContext old_context{20, 8, kOld, 1, {}};
      const auto before = InputPosition::parse(kind.name + options).make(old_context);
      if (kind.name == "learned-hier") {
        EXPECT_TRUE(before->resizable_tables().empty());
        EXPECT_EQ(before->pinned_options(), (PositionOptions{{"base", "3"}}));
        continue;
      }
      const InputContext longer{20, 8, kNew, 1, {}};
      const auto after = InputPosition::parse(kind.name + options).make(longer);
      expect_only_listed_tables_change(kind.name, *before, *after);
    }
  }
}

void expect_equal_terms(const std::string& name, const AttentionTerms& left,
                        const AttentionTerms& right) {
  EXPECT_EQ(left.scale, right.scale) << name;
  const auto first = left.tensors(), second = right.tensors();
  ASSERT_EQ(first.size(), second.size()) << name;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(first[i].equal(second[i])) << name << " tensor " << i;
  }
}

// With the old rows as they were, an encoding for more positions is the same encoding.
TEST(ResizableTable, OldLengthsAreUntouched) {
  const torch::NoGradGuard no_gradients;
  for (const auto& [name, options] : attention_encodings()) {
    const auto before = make_position_encoding(name, context_of(kOld), options);
    at::Generator generator = at::detail::createCPUGenerator(5);
    before->initialize(0.3, generator);
    const auto after =
        make_position_encoding(name, context_of(kNew), with(options, before->pinned_options()));
    std::map<std::string, ResizableTable> tables;
    for (const ResizableTable& table : before->resizable_tables()) tables[table.parameter] = table;
    auto parameters = after->named_parameters();
    for (const auto& parameter : before->named_parameters()) {
      Tensor& other = parameters[parameter.key()];
      other.copy_(other.sizes() == parameter.value().sizes()
                      ? parameter.value()
                      : resized_table(parameter.value(), tables.at(parameter.key()), other.size(0),
                                      by(TableExtension::kHierarchical)));
    }
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{6}, kOld}) {
      expect_equal_terms(name, before->terms(tokens), after->terms(tokens));
    }
    EXPECT_NO_THROW(after->terms(kNew)) << name;
  }
}

}  // namespace
}  // namespace tupelo::resizable_table_test

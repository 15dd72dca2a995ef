// Sequences longer than tables were trained for.
#include "model/position/length_extension.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"
#include "model/position/sinusoidal.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"

namespace tupelo::length_extension_test {
namespace {

using torch::Tensor;

LengthExtension by(TableExtension tables) {
  LengthExtension extension;
  extension.tables = tables;
  return extension;
}

const std::vector<TableExtension> kExtending = {TableExtension::kAlign, TableExtension::kScale,
                                                TableExtension::kHierarchical,
                                                TableExtension::kCopy};

Tensor table_of(std::int64_t rows) {
  torch::manual_seed(3);
  return torch::randn({rows, 3}, torch::kFloat64);
}

TEST(LengthExtension, NamesOfExtensions) {
  EXPECT_EQ(table_extension_names(),
            (std::vector<std::string>{"error", "align", "scale", "hier", "copy"}));
  EXPECT_EQ(parse_table_extension("error"), TableExtension::kError);
  EXPECT_EQ(parse_table_extension("align"), TableExtension::kAlign);
  EXPECT_EQ(parse_table_extension("scale"), TableExtension::kScale);
  EXPECT_EQ(parse_table_extension("hier"), TableExtension::kHierarchical);
  EXPECT_EQ(parse_table_extension("copy"), TableExtension::kCopy);
  try {
    parse_table_extension("hierr");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("did you mean 'hier'"), std::string::npos) << what;
    EXPECT_NE(what.find("valid: error, align, scale, hier, copy"), std::string::npos) << what;
  }
}

TEST(LengthExtension, LengthsThatTablesReach) {
  EXPECT_EQ(extended_length(7, by(TableExtension::kError)), 7);
  EXPECT_EQ(extended_length(7, by(TableExtension::kHierarchical)), 49);
  for (const TableExtension any :
       {TableExtension::kAlign, TableExtension::kScale, TableExtension::kCopy}) {
    EXPECT_EQ(extended_length(7, by(any)), kAnyLength);
    EXPECT_EQ(extended_length(0, by(any)), 0);
  }
}

TEST(LengthExtension, ShorterTablesAreViews) {
  const Tensor table = table_of(8);
  for (const TableExtension tables : kExtending) {
    for (const std::int64_t rows : {1, 5, 8}) {
      const Tensor part = extended_table(table, 2, rows, by(tables));
      EXPECT_EQ(part.data_ptr(), table.data_ptr());
      EXPECT_EQ(part.size(0), rows);
    }
  }
  EXPECT_EQ(extended_table(table, 2, 8, by(TableExtension::kError)).data_ptr(), table.data_ptr());
}

TEST(LengthExtension, AlignKeepsBothEndsAndIsLinearBetween) {
  const Tensor table = table_of(7);  // 2 kept, 5 stretched to 9: every other row is an old one
  const Tensor longer = extended_table(table, 2, 11, by(TableExtension::kAlign));
  EXPECT_TRUE(longer.narrow(0, 0, 2).equal(table.narrow(0, 0, 2)));
  for (std::int64_t row = 0; row < 9; ++row) {
    const Tensor expected =
        row % 2 == 0 ? table[2 + row / 2] : (table[2 + row / 2] + table[3 + row / 2]) / 2;
    EXPECT_TRUE(near(longer[2 + row], expected, 1e-14)) << row;
  }
}

TEST(LengthExtension, ScaleSamplesAtTheOldRateAndEndsInTheLastRow) {
  const Tensor table = table_of(6);  // 1 kept, 5 to 10: row k is at k / 2
  const Tensor longer = extended_table(table, 1, 11, by(TableExtension::kScale));
  for (std::int64_t row = 0; row < 10; ++row) {
    const Tensor last = table[5];
    const Tensor expected =
        row == 9
            ? last
            : (row % 2 == 0 ? table[1 + row / 2] : (table[1 + row / 2] + table[2 + row / 2]) / 2);
    EXPECT_TRUE(near(longer[1 + row], expected, 1e-14)) << row;
  }
}

TEST(LengthExtension, HierarchicalCombinesPairsOfRowsButNotThoseKept) {
  const Tensor table = table_of(5);  // 2 kept, base 3
  LengthExtension extension = by(TableExtension::kHierarchical);
  extension.hierarchical_alpha = 0.3;
  const Tensor longer = extended_table(table, 2, 11, extension);
  const auto unit = [&](std::int64_t row) { return (table[2 + row] - 0.3 * table[2]) / 0.7; };
  for (std::int64_t row = 0; row < 9; ++row) {
    const Tensor expected = 0.3 * unit(row / 3) + 0.7 * unit(row % 3);
    EXPECT_TRUE(near(longer[2 + row], expected, 1e-14)) << row;
  }
  EXPECT_TRUE(near(longer.narrow(0, 0, 5), table, 1e-14));
  EXPECT_THROW(extended_table(table, 2, 12, extension), std::invalid_argument);
  for (const double alpha : {0.0, 0.5, 1.0, -1.0}) {
    extension.hierarchical_alpha = alpha;
    EXPECT_THROW(extended_table(table, 2, 11, extension), std::invalid_argument) << alpha;
  }
}

TEST(LengthExtension, CopyRepeatsAllButTheRowsKept) {
  const Tensor table = table_of(5);
  const Tensor longer = extended_table(table, 2, 10, by(TableExtension::kCopy));
  for (std::int64_t row = 0; row < 8; ++row) {
    EXPECT_TRUE(longer[2 + row].equal(table[2 + row % 3])) << row;
  }
}

TEST(LengthExtension, ATableThatIsNotExtendedRefuses) {
  try {
    extended_table(table_of(5), 2, 6, by(TableExtension::kError));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("4 positions are more than the 3"), std::string::npos) << what;
  }
}

TEST(LengthExtension, OneRowStretchesToEqualOnes) {
  const Tensor table = table_of(3);
  for (const TableExtension tables :
       {TableExtension::kAlign, TableExtension::kScale, TableExtension::kCopy}) {
    const Tensor longer = extended_table(table, 2, 6, by(tables));
    EXPECT_TRUE(longer.narrow(0, 2, 4).equal(table.narrow(0, 2, 1).expand({4, 3})));
  }
}

TEST(LengthExtension, GradientsEqualFiniteDifferences) {
  for (const TableExtension tables : kExtending) {
    const Tensor table = table_of(6).requires_grad_();
    const Tensor weights = torch::randn({14, 3}, torch::kFloat64);
    const auto loss = [&] {
      return (extended_table(table, 1, 14, by(tables)).square() * weights).sum();
    };
    loss().backward();
    torch::NoGradGuard no_grad;
    const Tensor direction = torch::randn_like(table);
    const auto loss_at = [&](double step) {
      table.add_(direction, step);
      const double value = loss().item<double>();
      table.sub_(direction, step);
      return value;
    };
    const double measured = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
    EXPECT_NEAR(measured, (table.grad() * direction).sum().item<double>(), 1e-7);
  }
}

TEST(LengthExtension, HalfPrecisionIsInterpolatedInFloat32) {
  const Tensor table = table_of(6).to(torch::kBFloat16);
  for (const TableExtension tables : kExtending) {
    const Tensor longer = extended_table(table, 1, 14, by(tables));
    EXPECT_EQ(longer.scalar_type(), torch::kBFloat16);
    const Tensor wide = extended_table(table.to(torch::kFloat32), 1, 14, by(tables));
    EXPECT_TRUE(longer.equal(wide.to(torch::kBFloat16)));
  }
}

constexpr std::int64_t kHeads = 2, kWidth = 4, kTrained = 5;

std::shared_ptr<PositionEncoding> encoding_of(const std::string& name,
                                              const PositionOptions& options,
                                              TableExtension tables) {
  PositionContext context;
  context.heads = kHeads;
  context.head_width = kWidth;
  context.max_positions = kTrained;
  context.extension = by(tables);
  const auto encoding = make_position_encoding(name, context, options);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(torch::kFloat64);
  torch::manual_seed(7);
  perturb(*encoding, 0.2);
  return encoding;
}

std::shared_ptr<InputEncoding> input_of(const std::string& text, TableExtension tables) {
  InputContext context;
  context.vocab_size = 11;
  context.hidden_size = 6;
  context.max_positions = kTrained;
  context.pad_id = 1;
  context.extension = by(tables);
  const auto encoding = InputPosition::parse(text).make(context);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(torch::kFloat64);
  return encoding;
}

// [T,H]: what the encoding adds.
Tensor added(InputEncoding& encoding, std::int64_t tokens) {
  const Tensor ids = torch::full({1, tokens}, 7, torch::kInt64);
  return encoding.forward(torch::zeros({1, tokens, 6}, torch::kFloat64),
                          {ids, TokenLayout::rows(ids, {})})[0];
}

TEST(ExtendedInput, ShortSequencesDoNotChangeByABit) {
  for (const std::string text : {"learned", "sinusoidal(trainable=true)", "learned-hier"}) {
    const auto strict = input_of(text, TableExtension::kError);
    for (const TableExtension tables : kExtending) {
      const auto encoding = input_of(text, tables);
      for (std::int64_t tokens = 1; tokens <= kTrained; ++tokens) {
        EXPECT_TRUE(added(*encoding, tokens).equal(added(*strict, tokens))) << text;
      }
    }
  }
}

TEST(ExtendedInput, LearnedVectorsKeepThePaddingRows) {
  for (const TableExtension tables : kExtending) {
    const auto encoding = input_of("learned", tables);
    const Tensor weight = encoding->parameters().front();
    const Tensor expected = extended_table(weight, 2, 2 + 12, by(tables));
    EXPECT_TRUE(added(*encoding, 12).equal(expected.narrow(0, 2, 12)));
    EXPECT_EQ(encoding->longest(), tables == TableExtension::kHierarchical ? 25 : kAnyLength);
    // Padding in a long sequence still has the padding's row, here of zeros.
    const Tensor ids = torch::tensor({{7, 7, 7, 7, 7, 7, 7, 1}}, torch::kInt64);
    const Tensor result = encoding->forward(torch::zeros({1, 8, 6}, torch::kFloat64),
                                            {ids, TokenLayout::rows(ids, ids.ne(1))});
    EXPECT_EQ(result[0][7].abs().max().item<double>(), 0.0);
    result.sum().backward();
    EXPECT_EQ(weight.grad().narrow(0, 0, 2).abs().max().item<double>(), 0.0);
    EXPECT_GT(weight.grad()[2].abs().max().item<double>(), 0.1);
  }
}

TEST(ExtendedInput, PackedRowsAreAsLongAsTheirLongestDocument) {
  const auto encoding = input_of("learned", TableExtension::kError);
  const Tensor ids = torch::full({1, 9}, 7, torch::kInt64);
  const Tensor documents = torch::tensor({{0, 0, 0, 0, 0, 1, 1, 1, 1}}, torch::kInt64);
  const Tensor nothing = torch::zeros({1, 9, 6}, torch::kFloat64);
  const Tensor result = encoding->forward(nothing, {ids, TokenLayout::packed(documents)})[0];
  EXPECT_TRUE(result.narrow(0, 0, 5).equal(added(*encoding, 5)));
  EXPECT_TRUE(result.narrow(0, 5, 4).equal(added(*encoding, 4)));
}

TEST(ExtendedInput, TrainedSinusoidsAreATableFixedOnesGoOn) {
  const auto trained = input_of("sinusoidal(trainable=true)", TableExtension::kAlign);
  EXPECT_TRUE(
      added(*trained, 12)
          .equal(extended_table(trained->parameters().front(), 0, 12, by(TableExtension::kAlign))));
  const auto fixed = input_of("sinusoidal", TableExtension::kError);
  EXPECT_EQ(fixed->longest(), kAnyLength);
  EXPECT_TRUE(added(*fixed, 12)
                  .equal(sinusoidal_table(torch::arange(12, torch::kInt64), 6,
                                          SinusoidLayout::kInterleaved)));
  EXPECT_THROW(added(*input_of("sinusoidal(trainable=true)", TableExtension::kError), 6),
               std::invalid_argument);
}

struct Row {
  std::string name;
  PositionOptions options;
  std::int64_t kept;           // rows of the table in front of those extended
  std::int64_t rows_in_front;  // rows that no token has
};

std::vector<Row> attention_rows() {
  return {{"tupe-a", {}, 2, 1},
          {"tupe-a", {{"fold", "concat"}}, 2, 1},
          {"tupe-a", {{"theta", "paper"}}, 1, 0},
          {"tupe-a", {{"theta", "none"}}, 0, 0},
          {"tupe-r", {}, 2, 1},
          {"tupe-r", {{"theta", "paper"}}, 1, 0},
          {"tupe-r", {{"theta", "none"}}, 0, 0},
          {"tupe-full", {{"pos_dim", "6"}}, 0, 0},
          {"tupe-full", {{"pos_dim", "6"}, {"pp", "both"}, {"cls_untie", "true"}}, 1, 0},
          {"tupe-full", {{"pos_dim", "6"}, {"rel", "t5"}}, 0, 0}};
}

bool equal_terms(const AttentionTerms& left, const AttentionTerms& right) {
  const auto lefts = left.tensors(), rights = right.tensors();
  bool equal = lefts.size() == rights.size();
  for (std::size_t i = 0; equal && i < lefts.size(); ++i) equal = lefts[i].equal(rights[i]);
  return equal;
}

TEST(ExtendedAttention, ShortSequencesDoNotChangeByABit) {
  for (const Row& row : attention_rows()) {
    const auto strict = encoding_of(row.name, row.options, TableExtension::kError);
    for (const TableExtension tables : kExtending) {
      const auto encoding = encoding_of(row.name, row.options, tables);
      for (std::int64_t tokens = 1; tokens <= kTrained; ++tokens) {
        EXPECT_TRUE(equal_terms(encoding->terms(tokens), strict->terms(tokens))) << row.name;
      }
    }
  }
}

// A longer sequence sees what a model trained with the extended table would.
TEST(ExtendedAttention, LongSequencesSeeTheExtendedTable) {
  constexpr std::int64_t kTokens = 8;
  for (const Row& row : attention_rows()) {
    for (const TableExtension tables : kExtending) {
      const auto encoding = encoding_of(row.name, row.options, tables);
      PositionContext context;
      context.heads = kHeads;
      context.head_width = kWidth;
      context.max_positions = kTokens;
      const bool relative_table = row.name == "tupe-full" && row.options.back().second != "t5";
      const auto longer = make_position_encoding(row.name, context, row.options);
      longer->to(torch::kFloat64);
      torch::NoGradGuard no_grad;
      const auto values = encoding->named_parameters();
      for (auto& parameter : longer->named_parameters()) {
        Tensor value = values[parameter.key()];
        if (parameter.key() == "pos.weight") {
          value = extended_table(value, row.kept, kTokens + row.rows_in_front, by(tables));
        } else if (relative_table && parameter.key() == "rel_pos_bias.weight") {
          // Re-centred: farther distances have the end rows.
          const std::int64_t more = kTokens - kTrained;
          value = torch::cat({value.narrow(0, 0, 1).expand({more, kHeads}), value,
                              value.narrow(0, 2 * kTrained - 2, 1).expand({more, kHeads})});
        }
        parameter.value().copy_(value);
      }
      EXPECT_TRUE(equal_terms(encoding->terms(kTokens), longer->terms(kTokens))) << row.name;
    }
  }
}

TEST(ExtendedAttention, LongestSequences) {
  for (const Row& row : attention_rows()) {
    EXPECT_EQ(encoding_of(row.name, row.options, TableExtension::kError)->longest(), kTrained);
    for (const TableExtension any :
         {TableExtension::kAlign, TableExtension::kScale, TableExtension::kCopy}) {
      EXPECT_EQ(encoding_of(row.name, row.options, any)->longest(), kAnyLength) << row.name;
    }
    const auto squared = encoding_of(row.name, row.options, TableExtension::kHierarchical);
    const std::int64_t cls = row.kept - row.rows_in_front, others = kTrained - cls;
    EXPECT_EQ(squared->longest(), cls + others * others) << row.name;
    EXPECT_TRUE(squared->terms(squared->longest()).tensors().front().isfinite().all().item<bool>());
    EXPECT_THROW(squared->terms(squared->longest() + 1), std::invalid_argument);
  }
}

}  // namespace
}  // namespace tupelo::length_extension_test

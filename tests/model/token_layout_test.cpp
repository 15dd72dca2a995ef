#include "model/token_layout.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

namespace tupelo::token_layout_test {
namespace {

using torch::Tensor;

// Three documents and padding between and behind them in row 0, one in row 1.
Tensor documents() {
  return torch::tensor({{0, 0, 1, -1, 2, 2, 2, 2}, {3, 3, 3, 3, 3, -1, -1, -1}}, torch::kInt64);
}

TEST(TokenLayout, RowsAreOneBatchAsItIs) {
  const Tensor ids = torch::zeros({2, 5}, torch::kInt64);
  const Tensor mask = torch::tensor({{1, 1, 1, 1, 1}, {1, 1, 0, 0, 0}}, torch::kBool);
  const TokenLayout layout = TokenLayout::rows(ids, mask);
  EXPECT_EQ(layout.longest(), 5);
  EXPECT_FALSE(layout.positions().defined());
  EXPECT_TRUE(layout.real().equal(mask));
  const Tensor input = torch::randn({2, 5, 3});
  int calls = 0;
  const Tensor result = layout.over_sequences(
      {input}, [&](const std::vector<Tensor>& inputs, const SequenceBatch& sequences) {
        ++calls;
        EXPECT_TRUE(inputs[0].is_same(input));
        EXPECT_TRUE(sequences.admissible.equal(mask));
        EXPECT_FALSE(sequences.tokens.defined());
        return inputs[0] * 2;
      });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(result.equal(input * 2));
}

TEST(TokenLayout, PositionsRestartWithEachDocument) {
  const TokenLayout layout = TokenLayout::packed(documents());
  EXPECT_EQ(layout.longest(), 5);
  EXPECT_TRUE(layout.real().equal(documents().ge(0)));
  const Tensor expected =
      torch::tensor({{0, 1, 0, 0, 0, 1, 2, 3}, {0, 1, 2, 3, 4, 0, 0, 0}}, torch::kInt64);
  EXPECT_TRUE(layout.positions().equal(expected));
}

TEST(TokenLayout, EqualNumbersInDifferentRowsAreDifferentDocuments) {
  const TokenLayout layout = TokenLayout::packed(torch::tensor({{7, 7}, {7, 7}}, torch::kInt64));
  EXPECT_EQ(layout.longest(), 2);
}

TEST(TokenLayout, SequencesComeWholeAndGoBackToTheirPlaces) {
  const TokenLayout layout = TokenLayout::packed(documents());
  const Tensor numbers = documents().unsqueeze(-1).to(torch::kFloat64);
  const Tensor input = torch::randn({2, 8, 3}, torch::kFloat64).requires_grad_();
  std::int64_t slots = 0;
  const Tensor result = layout.over_sequences(
      {input, numbers}, [&](const std::vector<Tensor>& inputs, const SequenceBatch& sequences) {
        slots += inputs[0].size(0) * inputs[0].size(1);
        // All real tokens of a sequence are of one document.
        Tensor number = inputs[1].squeeze(-1);
        if (sequences.admissible.defined()) {
          number = number.where(sequences.admissible, number.narrow(1, 0, 1));
        }
        EXPECT_TRUE(number.equal(number.narrow(1, 0, 1).expand_as(number)));
        EXPECT_EQ(inputs[0].size(1), sequences.longest);
        return inputs[0] * 3;
      });
  const Tensor real = documents().ge(0).unsqueeze(-1);
  EXPECT_TRUE(result.equal(input * 3 * real));
  result.sum().backward();
  EXPECT_TRUE(input.grad().equal(torch::full_like(input, 3.0) * real));
  EXPECT_EQ(slots, 2 + 1 + 4 + 5);  // lengths 2, 1, 4, 5 share no power of two: no padding at all
}

TEST(TokenLayout, PaddingIsLessThanHalfOfABatch) {
  // Documents of every length from 1 to 20 in one row.
  std::vector<std::int64_t> numbers;
  for (std::int64_t length = 1; length <= 20; ++length) {
    numbers.insert(numbers.end(), static_cast<std::size_t>(length), length);
  }
  const TokenLayout layout =
      TokenLayout::packed(torch::tensor(numbers, torch::kInt64).unsqueeze(0));
  std::int64_t slots = 0, batches = 0;
  layout.over_sequences({torch::zeros({1, 210, 1})}, [&](const auto& inputs, const auto&) {
    slots += inputs[0].numel();
    ++batches;
    return inputs[0];
  });
  EXPECT_LT(slots, 2 * 210);
  EXPECT_LE(batches, 6);
}

TEST(TokenLayout, ComplexHiddenStatesComeAsTwoHalves) {
  const TokenLayout layout = TokenLayout::packed(documents());
  const Tensor real = torch::randn({2, 8, 3}), imaginary = torch::randn({2, 8, 3});
  const Tensor result =
      layout.over_sequences({at::cat({real, imaginary}, 0)},
                            [&](const std::vector<Tensor>& inputs, const SequenceBatch& sequences) {
                              EXPECT_EQ(inputs[0].size(0), 2 * sequences.tokens.size(0));
                              const auto halves = inputs[0].chunk(2, 0);
                              return at::cat({-halves[1], halves[0]}, 0);  // times i
                            });
  const Tensor visible = documents().ge(0).unsqueeze(-1);
  EXPECT_TRUE(result.equal(at::cat({-imaginary * visible, real * visible}, 0)));
}

TEST(TokenLayout, RefusesABatchWithoutDocuments) {
  EXPECT_THROW(TokenLayout::packed(torch::full({1, 4}, -1, torch::kInt64)), c10::Error);
}

}  // namespace
}  // namespace tupelo::token_layout_test

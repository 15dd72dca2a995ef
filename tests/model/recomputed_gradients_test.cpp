// Gradients of every policy are the bits of no recompute, whatever the model and the batch are.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "model/position/input_encoding.h"
#include "model/roberta.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::recomputed_gradients_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 3, kTokens = 12, kLayers = 4;

enum class Rows { kFull, kPadded, kPacked };

// Documents that share rows, two of one length class and padding at a row's end.
Tensor packed_documents() {
  Tensor documents = at::full({kRows, kTokens}, -1, at::kLong);
  const std::vector<std::vector<std::int64_t>> lengths = {{5, 4, 3}, {12}, {6, 1, 4}};
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    std::int64_t first = 0;
    for (std::size_t number = 0; number < lengths[row].size(); ++number) {
      documents[static_cast<std::int64_t>(row)]
          .narrow(0, first, lengths[row][number])
          .fill_(static_cast<std::int64_t>(number));
      first += lengths[row][number];
    }
  }
  return documents;
}

struct MicroBatch {
  TinyBatch batch{kRows, kTokens};
  TokenLayout layout = TokenLayout::rows(batch.input_ids, {});
};

std::vector<MicroBatch> micro_batches(Rows rows) {
  torch::manual_seed(5);
  std::vector<MicroBatch> batches(2);
  for (MicroBatch& one : batches) {
    if (rows == Rows::kPadded) {
      one.batch.pad(3);
      one.layout = TokenLayout::rows(one.batch.input_ids, one.batch.attention_mask);
    } else if (rows == Rows::kPacked) {
      one.layout = TokenLayout::packed(packed_documents());
    }
  }
  return batches;
}

// One step of two micro-batches: losses and gradients.
std::map<std::string, Tensor> step(const ModelOptions& options, const std::string& policy,
                                   const std::vector<MicroBatch>& batches) {
  ModelOptions own = options;
  own.recompute = policy;
  const auto model = tiny_model(own, torch::kFloat32);
  torch::manual_seed(23);
  perturb(*model, 0.1);
  model->train();
  std::map<std::string, Tensor> result;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    torch::manual_seed(static_cast<std::int64_t>(100 + i));
    const MaskedLmOutput output =
        model->masked_lm_loss(batches[i].batch.input_ids, batches[i].layout,
                              batches[i].batch.masked_positions, batches[i].batch.labels);
    result["loss " + std::to_string(i)] = output.loss_sum.detach();
    output.loss_sum.backward();
  }
  const auto gradients = gradients_of(*model);
  result.insert(gradients.begin(), gradients.end());
  return result;
}

struct Model {
  std::string input_position, position, mask_decoder = "none";
};

std::vector<Model> models() {
  std::vector<Model> all = {
      {"none", "0+2:tupe-r,1+3:shaw"},
      {"none", "all:tupe-full(share=layer)"},
      {"none", "0-1:none,2-3:deberta"},
      {"none", "all:tupe-r", "emd"},
      {"none", "all:deberta-v2", "emd(steps=3)"},
      {"learned", "all:none", "emd(steps=1)"},
      {"complex-order(form=hermitian)", "all:none"},
      {"complex-order(form=modulus)", "all:none"},
  };
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    all.push_back({"none", "all:" + kind.name});
  }
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    all.push_back({kind.name, "all:none"});
  }
  return all;
}

class RecomputedGradients : public testing::TestWithParam<Rows> {};

TEST_P(RecomputedGradients, AreTheBitsOfKeptActivations) {
  const std::vector<MicroBatch> batches = micro_batches(GetParam());
  for (const Model& model : models()) {
    ModelOptions options = tiny_options("all:none", kLayers);
    options.input_position = model.input_position;
    options.position = model.position;
    options.mask_decoder = model.mask_decoder;
    options.dropout = options.attention_dropout = 0.1;
    const auto kept = step(options, "none", batches);
    for (const std::string policy :
         {"full", "attention", "ffn", "every-2", "0:attention,1+3:ffn,2:full"}) {
      const auto again = step(options, policy, batches);
      ASSERT_EQ(again.size(), kept.size());
      for (const auto& [name, tensor] : kept) {
        EXPECT_TRUE(again.at(name).equal(tensor))
            << model.input_position << " " << model.position << " " << model.mask_decoder << " "
            << policy << " " << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, RecomputedGradients,
                         testing::Values(Rows::kFull, Rows::kPadded, Rows::kPacked));

TEST(RecomputedGradients, DependOnTheDropoutOfTheForwardPass) {
  ModelOptions options = tiny_options("all:tupe-r", kLayers);
  options.dropout = options.attention_dropout = 0.1;
  const std::vector<MicroBatch> batches = micro_batches(Rows::kFull);
  const auto with = step(options, "full", batches);
  options.dropout = options.attention_dropout = 0.0;
  const auto without = step(options, "full", batches);
  EXPECT_FALSE(with.at("loss 0").equal(without.at("loss 0")));
}

}  // namespace
}  // namespace tupelo::recomputed_gradients_test

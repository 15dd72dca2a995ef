#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "model/attention.h"
#include "tests/model/refvec_case.h"

namespace tupelo::refvec_logn_test {
namespace {

using torch::Tensor;

class RefvecLogn : public testing::TestWithParam<torch::ScalarType> {};

// q k^T / sqrt(D) times the factor, which real keys are counted for.
AttentionTerms terms_with(LengthTemperature temperature, const Refvec& vectors) {
  AttentionTerms terms = plain_attention_terms(vectors.integer("head_dim"));
  terms.temperature = temperature;
  terms.temperature_length = vectors.integer("train_len");
  return terms;
}

TEST_P(RefvecLogn, ScoresFactorsAndGradients) {
  RefvecCase tested("logn", GetParam());
  const Tensor mask = tested.key_mask();
  const Tensor &query = tested.input("q"), &key = tested.input("k"), &value = tested.input("v");
  const std::pair<std::string, LengthTemperature> kinds[] = {
      {"plain", LengthTemperature::kPlain},
      {"clip16", LengthTemperature::kAtLeast16},
      {"max1", LengthTemperature::kAtLeastOne}};
  for (const auto& [name, temperature] : kinds) {
    const AttentionTerms terms = terms_with(temperature, tested.vectors);
    // With queries and keys of one unit feature, every product is scale times the factor.
    const Tensor unit =
        torch::zeros_like(query).index_fill(-1, torch::zeros({1}, torch::kInt64), 1.0);
    const Tensor factors = attention_scores(unit, unit, terms, mask) / terms.scale;
    tested.compare("factor." + name, factors.select(1, 0).select(1, 0).select(1, 0));
    if (temperature == LengthTemperature::kAtLeastOne) continue;  // the file has no more of it
    tested.compare(name + ".scores", attention_scores(query, key, terms, mask));
    tested.compare_rows(name + ".attn", attention(query, key, value, terms, mask, 0.0));
  }
  tested.backward();
  tested.finish();
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecLogn, testing::Values(torch::kFloat64, torch::kFloat32),
                         [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_logn_test

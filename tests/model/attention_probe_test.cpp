#include "model/attention_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/attention_entropy.h"
#include "tests/model/tiny_model.h"

namespace tupelo::attention_probe_test {
namespace {

using torch::Tensor;

constexpr double kTight = 1e-10;

double difference(const Tensor& a, const Tensor& b) {
  const Tensor gap = (a - b).abs();
  EXPECT_TRUE(at::isfinite(gap).all().item<bool>());
  return gap.numel() == 0 ? 0.0 : gap.max().item<double>();
}

const Tensor& part(const ScoreParts& parts, ScorePath path) {
  return parts[static_cast<std::size_t>(path)];
}

Tensor sum_of(const ScoreParts& parts) { return at::stack(at::TensorList(parts)).sum(0); }

// Calls `look` for every attention of a forward pass.
class Looker : public AttentionObserver {
 public:
  using Look = std::function<void(std::int64_t layer, const AttentionCall& call)>;
  explicit Looker(Look look) : look_(std::move(look)) {}
  void enter_layer(std::int64_t layer) override { layer_ = layer; }
  void attend(const AttentionCall& call) override { look_(layer_, call); }

 private:
  Look look_;
  std::int64_t layer_ = -1;
};

void look_at(RobertaForMaskedLm& model, const TinyBatch& batch, AttentionObserver& observer) {
  const torch::NoGradGuard no_gradients;
  model.eval();
  model.observe(&observer);
  batch.loss(model);
  model.observe(nullptr);
}

TinyBatch padded_batch() {
  torch::manual_seed(5);
  TinyBatch batch(3, 9);
  batch.pad(4);
  return batch;
}

// Trained values are not those of the start, where temperatures are 1 and biases may be 0.
void stir(PositionEncoding& encoding) {
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(11);
  for (Tensor& parameter : encoding.parameters()) {
    parameter.add_(torch::randn_like(parameter) * 0.3);
  }
}

class EveryPlan : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPlan, PartsAddUpToTheScores) {
  for (const char* logn : {"off", "plain"}) {
    ModelOptions options = tiny_options("all:" + GetParam());
    options.logn = logn;
    options.input_position = "learned";
    const auto model = tiny_model(options);
    for (const auto& encoding : model->encodings()) {
      stir(*encoding);
    }
    int calls = 0;
    Looker looker([&](std::int64_t, const AttentionCall& call) {
      const PositionPicture picture = model->encodings()[0]->picture(call.query.size(2));
      const Tensor scores =
          attention_scores(call.query, call.key, call.terms, call.admissible_keys);
      for (std::int64_t row = 0; row < call.query.size(0); ++row) {
        const AttentionSample sample(call, row);
        const Tensor wanted = sample.between_real(scores[row]);
        const Tensor sum = sum_of(split_scores(sample, call.terms, picture));
        const Tensor visible = wanted.isfinite();
        EXPECT_TRUE(sum.isfinite().eq(visible).all().item<bool>());
        EXPECT_LT(difference(sum.masked_select(visible), wanted.masked_select(visible)), kTight);
      }
      ++calls;
    });
    look_at(*model, padded_batch(), looker);
    EXPECT_EQ(calls, 2);
  }
}

std::vector<std::string> every_plan() {
  std::vector<std::string> plans = {
      "tupe-a(fold=concat)",  "tupe-a(theta=paper)",           "tupe-r(theta=paper)",
      "alibi(form=split)",    "alibi(form=learned)",           "rope(layout=half)",
      "xlnet(fold=relative)", "tupe-full(fold=add,pos_dim=6)", "tupe-full(fold=concat,pos_dim=6)"};
  for (const char* pp : {"relative", "dot", "both", "none"}) {
    for (const char* fold : {"add", "concat"}) {
      plans.push_back(std::string("tupe-full(pos_dim=6,temperature=per-head,temperature_cc=true,") +
                      "cls_untie=true,pp=" + pp + ",fold=" + fold + ")");
    }
  }
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    plans.push_back(kind.name);
  }
  return plans;
}

INSTANTIATE_TEST_SUITE_P(AttentionProbe, EveryPlan, ::testing::ValuesIn(every_plan()));

// Each part by its definition, for terms that have everything that can be there together.
TEST(AttentionProbe, PartsOfTermsByHand) {
  torch::manual_seed(3);
  const auto options = torch::TensorOptions(torch::kDouble);
  const auto some = [&](at::IntArrayRef sizes) { return torch::randn(sizes, options); };
  constexpr std::int64_t kHeads = 2, kTokens = 4, kWidth = 3, kReach = 2;
  const Tensor query = some({1, kHeads, kTokens, kWidth}), key = some({1, kHeads, kTokens, kWidth});
  AttentionTerms terms = plain_attention_terms(kWidth);
  terms.bias = some({kHeads, kTokens, kTokens});
  terms.query_gain = some({kHeads, 1, 1});
  terms.query_offset = some({kHeads, kTokens, kWidth});
  terms.key_offset = some({kHeads, kTokens, kWidth});
  terms.query_extra_gain = some({kHeads, 1, 1});
  terms.query_extra = some({kHeads, kTokens, kWidth});
  terms.key_extra = some({kHeads, kTokens, kWidth});
  terms.relative_query_offset = some({kHeads, 1, kWidth});
  terms.relative_key = some({kHeads, 2 * kReach + 1, kWidth});
  terms.relative_query = some({kHeads, 2 * kReach + 1, kWidth});

  ScoreParts wanted;
  wanted.fill(torch::zeros({kHeads, kTokens, kTokens}, options));
  for (Tensor& tensor : wanted) {
    tensor = tensor.clone();
  }
  const auto add = [&](ScorePath path, std::int64_t h, std::int64_t i, std::int64_t j,
                       const Tensor& left, const Tensor& right) {
    wanted[static_cast<std::size_t>(path)][h][i][j] += terms.scale * left.dot(right);
  };
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t i = 0; i < kTokens; ++i) {
      for (std::int64_t j = 0; j < kTokens; ++j) {
        const std::int64_t r = std::min(std::max(j - i, -kReach), kReach) + kReach;
        const Tensor q = query[0][h][i], k = key[0][h][j];
        const Tensor gained = q * terms.query_gain[h][0][0];
        add(ScorePath::kContentContent, h, i, j, gained, k);
        add(ScorePath::kContentPosition, h, i, j, gained, terms.key_offset[h][j]);
        add(ScorePath::kContentPosition, h, i, j, q * terms.query_extra_gain[h][0][0],
            terms.key_extra[h][j]);
        add(ScorePath::kContentPosition, h, i, j, q, terms.relative_key[h][r]);
        add(ScorePath::kPositionContent, h, i, j, terms.query_offset[h][i], k);
        add(ScorePath::kPositionContent, h, i, j, terms.relative_query[h][r], k);
        add(ScorePath::kPositionPosition, h, i, j, terms.query_offset[h][i],
            terms.key_offset[h][j]);
        add(ScorePath::kPositionPosition, h, i, j, terms.query_extra[h][i], terms.key_extra[h][j]);
        add(ScorePath::kPositionPosition, h, i, j, terms.relative_query_offset[h][0],
            terms.relative_key[h][r]);
      }
    }
  }
  wanted[static_cast<std::size_t>(ScorePath::kDistanceBias)] = terms.bias;

  const AttentionCall call{query, key, key, terms, Tensor()};
  const ScoreParts parts = split_scores(AttentionSample(call, 0), terms, {});
  for (std::size_t path = 0; path < kScorePaths; ++path) {
    EXPECT_LT(difference(parts[path], wanted[path]), kTight) << kScorePathNames[path];
    EXPECT_GT(wanted[path].abs().max().item<double>(), 0.1);
  }
}

// However the four products reach attention, the parts are theirs.
TEST(AttentionProbe, FoldingDoesNotChangeTheParts) {
  for (const char* pp : {"relative", "dot", "both"}) {
    std::vector<ScoreParts> found;
    for (const char* fold : {"add", "concat"}) {
      ModelOptions options = tiny_options(std::string("all:tupe-full(pos_dim=6,temperature=") +
                                              "per-head,pp=" + pp + ",fold=" + fold + ")",
                                          1);
      const auto model = tiny_model(options);
      PositionEncoding& encoding = *model->encodings()[0];
      stir(encoding);
      Looker looker([&](std::int64_t, const AttentionCall& call) {
        const AttentionSample sample(call, 2);
        found.push_back(split_scores(sample, call.terms, encoding.picture(call.query.size(2))));
      });
      look_at(*model, padded_batch(), looker);
    }
    ASSERT_EQ(found.size(), 2u);
    for (std::size_t path = 0; path < kScorePaths; ++path) {
      EXPECT_LT(difference(found[0][path], found[1][path]), kTight) << pp << kScorePathNames[path];
    }
    const bool dot = std::string(pp) != "relative", relative = std::string(pp) != "dot";
    const auto largest = [&](ScorePath path) {
      return part(found[0], path).abs().max().item<double>();
    };
    EXPECT_EQ(largest(ScorePath::kPositionPosition) > 1e-3, dot) << pp;
    EXPECT_EQ(largest(ScorePath::kDistanceBias) > 1e-3, relative) << pp;
    EXPECT_GT(largest(ScorePath::kContentPosition), 1e-3);
    EXPECT_GT(largest(ScorePath::kPositionContent), 1e-3);
  }
}

TEST(AttentionProbe, BothPartsOfTupeRelative) {
  const auto model = tiny_model(tiny_options("all:tupe-r", 1));
  PositionEncoding& encoding = *model->encodings()[0];
  stir(encoding);
  Looker looker([&](std::int64_t, const AttentionCall& call) {
    const PositionPicture picture = encoding.picture(9);
    const ScoreParts parts = split_scores(AttentionSample(call, 0), call.terms, picture);
    EXPECT_LT(difference(part(parts, ScorePath::kPositionPosition), picture.correlation), kTight);
    const Tensor& bias = part(parts, ScorePath::kDistanceBias);
    for (std::int64_t i = 1; i < 9; ++i) {
      for (std::int64_t j = 1; j < 9; ++j) {
        EXPECT_LT(
            difference(bias.select(1, i).select(1, j), picture.distance_bias.select(1, j - i + 8)),
            kTight);
      }
    }
    EXPECT_EQ(part(parts, ScorePath::kContentPosition).abs().max().item<double>(), 0.0);
    EXPECT_EQ(part(parts, ScorePath::kPositionContent).abs().max().item<double>(), 0.0);
  });
  look_at(*model, padded_batch(), looker);
}

TEST(AttentionProbe, StatisticsOverRealPairsOfAllSequences) {
  const auto model = tiny_model(tiny_options("0:none,1:t5"));
  stir(*model->encodings()[0]);
  const TinyBatch batch = padded_batch();
  std::vector<std::vector<Tensor>> seen(2);  // by layer: [5,N,n*n]
  std::vector<std::vector<Tensor>> entropies(2), relative(2);
  Looker looker([&](std::int64_t layer, const AttentionCall& call) {
    const auto place = static_cast<std::size_t>(layer);
    const PositionPicture picture =
        layer == 0 ? PositionPicture() : model->encodings()[0]->picture(9);
    for (std::int64_t row = 0; row < 3; ++row) {
      const AttentionSample sample(call, row);
      EXPECT_EQ(sample.tokens(), row == 0 ? 9 : 5);
      const ScoreParts parts = split_scores(sample, call.terms, picture);
      seen[place].push_back(at::stack(at::TensorList(parts)).flatten(2));
      const Tensor p = at::softmax(sum_of(parts), -1);
      entropies[place].push_back((p * p.log()).sum(-1).neg());  // [N,n]
      relative[place].push_back(entropies[place].back() /
                                std::log(static_cast<double>(sample.tokens())));
    }
  });
  look_at(*model, batch, looker);
  AttentionProbe probe(*model);
  look_at(*model, batch, probe);
  look_at(*model, batch, probe);  // twice the same batch: the same figures
  const std::vector<LayerProbe> layers = probe.layers();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].group, -1);
  EXPECT_EQ(layers[1].group, 0);
  EXPECT_EQ(probe.longest_sequence(), 9);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const Tensor all = at::cat(seen[layer], 2);  // [5,N,pairs]
    for (std::size_t path = 0; path < kScorePaths; ++path) {
      const PathStatistics& found = layers[layer].paths[path];
      ASSERT_EQ(found.mean.size(), 3u);
      for (std::size_t head = 0; head < 3; ++head) {
        const Tensor values = all[static_cast<std::int64_t>(path)][static_cast<std::int64_t>(head)];
        EXPECT_NEAR(found.mean[head], values.mean().item<double>(), kTight);
        EXPECT_NEAR(found.variance[head], values.var(/*unbiased=*/false).item<double>(), kTight);
        EXPECT_NEAR(found.largest[head], values.abs().max().item<double>(), kTight);
      }
    }
    const Tensor entropy = at::cat(entropies[layer], 1).mean(1);
    const Tensor share = at::cat(relative[layer], 1).mean(1);
    for (std::size_t head = 0; head < 3; ++head) {
      const auto h = static_cast<std::int64_t>(head);
      EXPECT_NEAR(layers[layer].entropy[head], entropy[h].item<double>(), kTight);
      EXPECT_NEAR(layers[layer].relative_entropy[head], share[h].item<double>(), kTight);
    }
  }
  EXPECT_EQ(layers[0].paths[4].largest, std::vector<double>(3, 0.0));
  EXPECT_GT(layers[1].paths[4].largest[0], 0.1);
}

TEST(AttentionProbe, KeysThatABiasForbidsAreNoPairs) {
  const auto model = tiny_model(tiny_options("all:alibi(form=split)", 1));
  AttentionProbe probe(*model);
  look_at(*model, padded_batch(), probe);
  const LayerProbe layer = probe.layers()[0];
  for (const PathStatistics& path : layer.paths) {
    for (const double value : path.largest) EXPECT_TRUE(std::isfinite(value));
    for (const double value : path.variance) EXPECT_TRUE(std::isfinite(value));
  }
  for (const double value : layer.entropy) EXPECT_TRUE(std::isfinite(value));
}

TEST(AttentionEntropy, OfUniformAttentionIsTheLogarithmOfTheLength) {
  const Tensor zero = torch::zeros({2, 3, 8, 4});
  const AttentionTerms terms = plain_attention_terms(4);
  Tensor admissible = torch::ones({2, 8}, torch::kBool);
  admissible.narrow(0, 1, 1).narrow(1, 2, 6).fill_(false);
  AttentionEntropy entropy;
  entropy.attend({zero, zero, zero, terms, admissible});
  const AttentionEntropy::Mean mean = AttentionEntropy::mean(entropy.sums());
  // Eight queries with eight keys each, two with two.
  EXPECT_NEAR(mean.nats, (8 * std::log(8.0) + 2 * std::log(2.0)) / 10, 1e-6);
  EXPECT_NEAR(mean.relative, 1.0, 1e-6);
}

TEST(AttentionEntropy, OfAttentionToOneKeyIsZero) {
  Tensor query = torch::zeros({1, 1, 4, 4}), key = torch::zeros({1, 1, 4, 4});
  query.fill_(100.0);
  key[0][0][2].fill_(100.0);
  const AttentionTerms terms = plain_attention_terms(4);
  AttentionEntropy entropy;
  entropy.attend({query, key, key, terms, Tensor()});
  EXPECT_EQ(AttentionEntropy::mean(entropy.sums()).nats, 0.0);
}

TEST(AttentionEntropy, NeitherQueriesWithoutKeysNorSequencesOfOneToken) {
  const Tensor zero = torch::zeros({2, 1, 3, 4});
  AttentionTerms terms = plain_attention_terms(4);
  terms.bias = torch::zeros({1, 3, 3});
  terms.bias[0][1].fill_(-std::numeric_limits<float>::infinity());  // query 1 sees nothing
  terms.bias_blocks = true;
  Tensor admissible = torch::ones({2, 3}, torch::kBool);
  admissible.narrow(0, 1, 1).narrow(1, 1, 2).fill_(false);
  AttentionEntropy entropy;
  entropy.attend({zero, zero, zero, terms, admissible});
  const AttentionEntropy::Mean mean = AttentionEntropy::mean(entropy.sums());
  EXPECT_NEAR(mean.nats, 2 * std::log(3.0) / 3, 1e-6);  // two queries of three keys, one of one
  EXPECT_NEAR(mean.relative, 1.0, 1e-6);
}

TEST(ProbeGroups, RangesByDirection) {
  const auto model = tiny_model(tiny_options("0:t5,1:tupe-a"));
  const torch::NoGradGuard no_gradients;
  Tensor table = model->encodings()[0]->named_parameters()["relative_attention_bias.weight"];
  table.fill_(0.0);
  table[1].fill_(-2.0);   // one to the left
  table[3].fill_(0.5);    // three to the left
  table[18].fill_(4.0);   // two to the right
  table[25].fill_(99.0);  // farther than four tokens reach
  const std::vector<GroupProbe> groups = probe_groups(*model, 4);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].encoding, "t5");
  EXPECT_EQ(groups[0].layers, std::vector<std::int64_t>{0});
  EXPECT_EQ(groups[0].to_left.least, -2.0);
  EXPECT_EQ(groups[0].to_left.most, 0.5);
  EXPECT_EQ(groups[0].to_right.least, 0.0);
  EXPECT_EQ(groups[0].to_right.most, 4.0);
  EXPECT_TRUE(std::isnan(groups[1].to_left.least));
  EXPECT_TRUE(groups[1].picture.correlation.defined());
}

TEST(PositionGradients, NormsByOwner) {
  ModelOptions options = tiny_options("0:tupe-r,1:t5");
  options.input_position = "learned";
  const auto model = tiny_model(options);
  padded_batch().loss(*model).backward();
  const auto norms = position_gradient_norms(*model);
  ASSERT_EQ(norms.size(), 4u);
  std::map<std::string, double> squares;
  double all = 0.0;
  for (const auto& parameter : model->named_parameters()) {
    const std::string& name = parameter.key();
    const double square = parameter.value().grad().square().sum().item<double>();
    if (name.find("roberta.position.0.") == 0) squares["0"] += square;
    if (name.find("roberta.position.1.") == 0) squares["1"] += square;
    if (name == "roberta.embeddings.position_embeddings.weight") squares["input"] += square;
  }
  for (const auto& [owner, square] : squares) {
    EXPECT_GT(square, 0.0);
    EXPECT_NEAR(norms.at(owner), std::sqrt(square), kTight) << owner;
    all += square;
  }
  EXPECT_NEAR(norms.at("all"), std::sqrt(all), kTight);
  EXPECT_TRUE(position_gradient_norms(*tiny_model(tiny_options("all:rope"))).empty());
}

}  // namespace
}  // namespace tupelo::attention_probe_test

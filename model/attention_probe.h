// What attention scores are made of, gathered while a model computes: contents and positions
// meeting each other, layer by layer and head by head.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/attention_sample.h"
#include "model/roberta.h"

namespace tupelo {

// The parts of a score: content or position of the query with content or position of the key, and
// the bias of the distance.
enum class ScorePath {
  kContentContent,    // cc
  kContentPosition,   // cp
  kPositionContent,   // pc
  kPositionPosition,  // pp
  kDistanceBias       // bias
};
inline constexpr std::size_t kScorePaths = 5;
inline constexpr std::array<const char*, kScorePaths> kScorePathNames = {"cc", "cp", "pc", "pp",
                                                                         "bias"};

// [N,n,n] float64 each, in the order of ScorePath; their sum is attention_scores(). The picture
// tells how what does not depend on the input divides into correlation and bias; without one, the
// terms' bias is the bias. Scores that are the modulus of something count as cc.
using ScoreParts = std::array<torch::Tensor, kScorePaths>;
ScoreParts split_scores(const AttentionSample& sample, const AttentionTerms& terms,
                        const PositionPicture& picture);

// One number per head.
struct PathStatistics {
  std::vector<double> mean, variance, largest;  // the last of absolute values
};

struct LayerProbe {
  std::int64_t group = -1;  // -1: without encoding
  std::array<PathStatistics, kScorePaths> paths;
  std::vector<double> entropy;           // of attention, nats, one number per head
  std::vector<double> relative_entropy;  // to ln n; over sequences with n > 1
};

// Over pairs of real tokens that may see each other, and over real queries that see some key.
class AttentionProbe : public AttentionObserver {
 public:
  // The model outlives the probe and keeps its parameters while it is observed.
  explicit AttentionProbe(const RobertaForMaskedLm& model);

  void enter_layer(std::int64_t layer) override { layer_ = layer; }
  void attend(const AttentionCall& call) override;

  // One entry per layer; NaN in those that were never seen.
  std::vector<LayerProbe> layers() const;
  // Tokens of the longest sequence seen, which covers distances up to one less in both directions.
  std::int64_t longest_sequence() const { return longest_; }

 private:
  struct Sums {
    torch::Tensor sum, squares, largest;                // [5,N] float64
    torch::Tensor pairs;                                // [N]
    torch::Tensor entropy, queries, relative, choices;  // [N]
  };
  const PositionPicture& picture(std::int64_t group, std::int64_t tokens);
  void add_entropy(const AttentionSample& sample, const torch::Tensor& scores, Sums& sums) const;

  const RobertaForMaskedLm& model_;
  std::int64_t layer_ = 0;
  std::int64_t longest_ = 0;
  std::vector<Sums> sums_;
  std::map<std::pair<std::int64_t, std::int64_t>, PositionPicture> pictures_;
};

// Values of a bias of the distance on one side; no values: both NaN.
struct BiasRange {
  double least = 0, most = 0;
};

struct GroupProbe {
  std::string encoding;  // as in a plan
  std::vector<std::int64_t> layers;
  PositionPicture picture;      // for sequences of `tokens` tokens
  BiasRange to_left, to_right;  // of picture.distance_bias: keys before, keys after the query
};
// One entry per group of the plan.
std::vector<GroupProbe> probe_groups(const RobertaForMaskedLm& model, std::int64_t tokens);

// Euclidean norms of the gradients of position parameters as they stand: of each group ("0", "1",
// ...), of "input", of "mask_decoder" and of "all", where there are such parameters.
std::map<std::string, double> position_gradient_norms(const RobertaForMaskedLm& model);

}  // namespace tupelo

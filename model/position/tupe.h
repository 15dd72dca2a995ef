// What TUPE-A and TUPE-R have in common: positions correlate with positions through projections of
// their own, and [CLS] is untied from both sides. Formulas: docs/positions.md.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/layers.h"
#include "model/position/content_rotation.h"
#include "model/position/option_reader.h"
#include "model/position/position_encoding.h"

namespace tupelo {

// "theta": where the two values come from that replace [CLS]'s row and column.
enum class TupeTheta {
  kOfficial,  // the released code: table rows 0 and 1; token t uses row t + 1, the relative bias is
              // added after the reset, with buckets of its own for [CLS]
  kPaper,     // two extra vectors `theta`; token t uses row t, the relative bias is reset as well
  kNone       // [CLS] is a token like the others
};

class Tupe : public PositionEncoding {
 public:
  void initialize(double standard_deviation, const at::Generator& generator) override;
  std::vector<std::string> undecayed_parameters() const override;
  // An extension leaves the rows of [CLS] alone. With hier the base row is that of the first token
  // after it, which reaches 1 + (N - 1)^2 tokens.
  std::int64_t longest() const override;
  std::vector<ResizableTable> resizable_tables() const override;
  double terms_flops(std::int64_t tokens) const override;

  // Options that both share: theta, and those that come after each one's own.
  static PositionOptionKind theta_option();
  static std::vector<PositionOptionKind> last_options();

 protected:
  // Registers pos, pos_ln, pos_q_linear, pos_k_linear and, where options say so, theta and gate.
  Tupe(std::string name, const PositionContext& context, const OptionReader& options);

  struct Projections {
    torch::Tensor query, key;        // [N,T,D], not scaled; gated queries float32 or wider
    torch::Tensor from_cls, to_cls;  // [N], scaled; undefined for kNone
  };
  // Throws std::invalid_argument when `tokens` exceeds the table.
  Projections project(std::int64_t tokens) const;

  // [N,T,T] scaled products of positions, plus `added` when that is defined.
  torch::Tensor correlation(const Projections& positions, const torch::Tensor& added) const;
  // [N,T,T] with [CLS]'s row and column replaced as theta says.
  torch::Tensor untied(const torch::Tensor& bias, const Projections& positions) const;

  // Factors [N] of everything that positions say, float32 or wider: 2 sigmoid(gate), 1 at first;
  // undefined without a gate. project() has them in its results.
  torch::Tensor gate() const;
  // Terms with what does not depend on how the position part reaches attention.
  AttentionTerms terms_without_positions(std::int64_t tokens) const;

  const PositionContext& context() const { return context_; }
  TupeTheta theta() const { return theta_; }
  double scale() const;  // 1 / sqrt(2 D)

 private:
  std::int64_t rows_in_front() const { return theta_ == TupeTheta::kOfficial ? 1 : 0; }
  std::int64_t rows_kept() const;
  torch::Tensor rows_of(std::int64_t tokens) const;
  torch::Tensor split_heads(const torch::Tensor& rows) const;

  std::string name_;
  PositionContext context_;
  TupeTheta theta_;
  ContentRotation content_;
  std::shared_ptr<Embedding> table_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> query_projection_;
  std::shared_ptr<Linear> key_projection_;
  torch::Tensor theta_vectors_;  // [2,H]
  torch::Tensor gate_;           // [N]
};

}  // namespace tupelo

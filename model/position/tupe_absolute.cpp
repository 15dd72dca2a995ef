// TUPE-A (Ke, He, Liu, "Rethinking Positional Encoding in Language Pre-training", ICLR 2021).
#include <cmath>
#include <utility>

#include "model/position/cls_reset.h"
#include "model/position/kinds.h"
#include "model/position/tupe.h"

namespace tupelo {
namespace {

std::vector<PositionOptionKind> tupe_absolute_options() {
  std::vector<PositionOptionKind> options = {
      Tupe::theta_option(),
      {"fold",
       "bias",
       {"bias", "concat"},
       "how it reaches attention, with equal results: as a bias, or as more features of queries "
       "and keys"}};
  for (PositionOptionKind& option : Tupe::last_options()) {
    options.push_back(std::move(option));
  }
  return options;
}

class TupeAbsolute : public Tupe {
 public:
  TupeAbsolute(const PositionContext& context, const OptionReader& reader)
      : Tupe("tupe-a", context, reader), concatenated_(reader.text("fold") == "concat") {}

  AttentionTerms terms(std::int64_t tokens) override {
    const Projections positions = project(tokens);
    AttentionTerms terms = terms_without_positions(tokens);
    if (concatenated_) {
      add_features(positions, terms);
    } else {
      terms.bias = untied(correlation(positions, {}), positions);
    }
    return terms;
  }

  PositionPicture picture(std::int64_t tokens) override {
    const Projections positions = project(tokens);
    PositionPicture picture;
    picture.correlation = untied(correlation(positions, {}), positions);
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    const auto length = static_cast<double>(tokens);
    const auto hidden = static_cast<double>(context().hidden_size());
    return Tupe::terms_flops(tokens) - (concatenated_ ? 2.0 * length * length * hidden : 0.0);
  }

 private:
  // [q ; p_q][k ; p_k]^T. Row and column 0 of the second product vanish with rows 0 of both
  // factors; one more feature puts theta 2 into column 0. Theta 1 is constant along a row of the
  // softmax, so it is left out. Zeros keep the width a multiple of 8, which fused kernels ask for.
  void add_features(const Projections& positions, AttentionTerms& terms) const {
    const torch::Tensor query = positions.query.to(positions.key.scalar_type());
    if (theta() == TupeTheta::kNone) {
      terms.query_extra = query;
      terms.key_extra = positions.key;
      return;
    }
    constexpr std::int64_t kSpare = 8;
    const std::int64_t heads = query.size(0), tokens = query.size(1);
    torch::Tensor not_cls =
        torch::zeros({heads, tokens, kSpare}, query.options().requires_grad(false));
    not_cls.narrow(1, 1, tokens - 1).select(2, 0).fill_(1.0);
    const torch::Tensor to_cls =
        (positions.to_cls / scale()).to(query.scalar_type()).view({heads, 1, 1});
    const torch::Tensor only_cls = at::constant_pad_nd(to_cls, {0, kSpare - 1, 0, tokens - 1});
    terms.query_extra = at::cat({without_first_row(query), not_cls}, -1);
    terms.key_extra = at::cat({without_first_row(positions.key), only_cls}, -1);
  }

  bool concatenated_;
};

}  // namespace

PositionEncodingKind tupe_absolute_kind() {
  return {"tupe-a",
          "TUPE-A: positions attend to positions, untied from words; [CLS] untied",
          tupe_absolute_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<TupeAbsolute>(
                context, OptionReader("tupe-a", tupe_absolute_options(), given));
          }};
}

}  // namespace tupelo

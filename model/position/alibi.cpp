// ALiBi: a penalty proportional to the distance, each head with a slope of its own (Press, Smith,
// Lewis, "Train Short, Test Long", ICLR 2022), in forms for attention to both sides.
#include <bit>
#include <cmath>
#include <limits>

#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/length_cache.h"
#include "model/position/option_reader.h"
#include "model/position/placed_encoding.h"
#include "model/position/toeplitz.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> alibi_options() {
  return {{"form",
           "symmetric",
           {"symmetric", "split", "learned"},
           "equal on both sides; half of the heads blind to each side; trained slopes per side"},
          {"interpolation", "1", {}, "distances are divided by it", 0, true}};
}

// 2^(-8/n), 2^(-16/n), ... for a power of two; else those of the power below, then every other one
// of twice that power.
std::vector<double> slopes(std::int64_t heads) {
  if (heads == 0) {
    return {};
  }
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const auto slope = [](std::int64_t head, std::int64_t of) {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(of));
  };
  std::vector<double> values;
  for (std::int64_t head = 0; head < power; ++head) {
    values.push_back(slope(head, power));
  }
  for (std::int64_t head = power; head < heads; ++head) {
    values.push_back(slope(2 * (head - power), 2 * power));
  }
  return values;
}

// [2T-1] float64: -(T-1) .. T-1
Tensor distances(std::int64_t tokens) {
  return torch::arange(1 - tokens, tokens, torch::TensorOptions().dtype(torch::kFloat64));
}

class Alibi : public PlacedEncoding {
 public:
  Alibi(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        split_(reader.text("form") == "split"),
        interpolation_(reader.number("interpolation")) {
    if (reader.text("form") == "learned") {
      left_ = register_parameter("left", torch::full({context.heads}, kFirstMean));
      right_ = register_parameter("right", torch::full({context.heads}, kFirstMean));
    }
  }

  void initialize(double, const at::Generator& generator) override {
    torch::NoGradGuard no_grad;
    for (Tensor* parameter : {&left_, &right_}) {
      if (parameter->defined()) {
        fill_normal(*parameter, 1.0, generator);
        parameter->add_(kFirstMean);
      }
    }
  }

  std::vector<std::string> undecayed_parameters() const override {
    return left_.defined() ? std::vector<std::string>{"left", "right"} : std::vector<std::string>{};
  }

  AttentionTerms terms(std::int64_t tokens) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    terms.bias_blocks = split_;
    terms.bias = left_.defined() ? toeplitz(trained_line(tokens))
                                 : fixed_.get(tokens, device(), wide_type(),
                                              [&] { return toeplitz(fixed_line(tokens)); });
    return terms;
  }

  // Minus infinity where form=split blocks a side.
  PositionPicture picture(std::int64_t tokens) override {
    PositionPicture picture;
    picture.distance_bias =
        left_.defined() ? trained_line(tokens) : fixed_line(tokens).to(device(), wide_type());
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    constexpr double kPerEntry = 4.0;  // two products, their sum and the interpolation
    return left_.defined() ? kPerEntry * static_cast<double>((2 * tokens - 1) * context_.heads)
                           : 0.0;
  }

 private:
  static constexpr double kFirstMean = -2.0;

  Tensor trained_line(std::int64_t tokens) {
    const Tensor left = at_least_float32(left_), right = at_least_float32(right_);
    const Tensor distance =
        distances(tokens).div_(interpolation_).to(left.options().requires_grad(false));
    return (left.sigmoid().unsqueeze(1) * distance.clamp_max(0.0)) -
           (right.sigmoid().unsqueeze(1) * distance.clamp_min(0.0));
  }

  // [N,2T-1] float64
  Tensor fixed_line(std::int64_t tokens) const {
    const Tensor distance = distances(tokens);
    const std::int64_t heads_looking_left = split_ ? (context_.heads + 1) / 2 : context_.heads;
    const std::int64_t heads_looking_right = context_.heads - heads_looking_left;
    std::vector<double> slope = slopes(heads_looking_left);
    const std::vector<double> others = slopes(heads_looking_right);
    slope.insert(slope.end(), others.begin(), others.end());
    const Tensor penalty = distance.abs().div_(interpolation_).neg_();
    Tensor line = torch::tensor(slope, torch::kFloat64).unsqueeze(1) * penalty;
    if (split_) {
      constexpr double kBlocked = -std::numeric_limits<double>::infinity();
      line.narrow(0, 0, heads_looking_left).masked_fill_(distance.gt(0), kBlocked);
      line.narrow(0, heads_looking_left, heads_looking_right)
          .masked_fill_(distance.lt(0), kBlocked);
    }
    return line;
  }

  PositionContext context_;
  bool split_;
  double interpolation_;
  LengthCache fixed_{1};  // [N,T,T], large
  Tensor left_, right_;   // [N], through a sigmoid: slopes towards keys on that side
};

}  // namespace

PositionEncodingKind alibi_kind() {
  return {"alibi",
          "a penalty proportional to the distance, with a slope per head",
          alibi_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Alibi>(context, OptionReader("alibi", alibi_options(), given));
          }};
}

}  // namespace tupelo

// Sines and cosines of geometric wavelengths (Vaswani et al., "Attention Is All You Need", 2017).
#include <stdexcept>

#include "model/position/input_table.h"
#include "model/position/kinds.h"
#include "model/position/sinusoidal.h"
#include "model/token_layout.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> input_sinusoidal_options() {
  return {{"layout",
           "interleaved",
           {"interleaved", "concat", "t2t"},
           "order of sines and cosines: in turn, one after the other, the same with "
           "tensor2tensor's wavelengths"},
          {"scale",
           "1",
           {},
           "factor on the sinusoids; word embeddings start at initializer_range, far below their 1",
           0,
           true},
          {"trainable", "false", {"true", "false"}, "whether the table is only the first value"},
          InputTable::merge_option()};
}

SinusoidLayout layout_of(const OptionReader& options) {
  const std::string& text = options.text("layout");
  return text == "t2t"
             ? SinusoidLayout::kTensor2Tensor
             : (text == "concat" ? SinusoidLayout::kConcat : SinusoidLayout::kInterleaved);
}

void check_width(std::int64_t hidden, SinusoidLayout layout) {
  const std::int64_t smallest = layout == SinusoidLayout::kTensor2Tensor ? 4 : 2;
  if (hidden % 2 != 0 || hidden < smallest) {
    throw std::invalid_argument(
        "position encoding sinusoidal at the input: hidden-size=" + std::to_string(hidden) +
        " must be even and at least " + std::to_string(smallest));
  }
}

Tensor sinusoids(std::int64_t positions, std::int64_t hidden, SinusoidLayout layout, double scale) {
  return sinusoidal_table(torch::arange(positions, torch::kInt64), hidden, layout).mul_(scale);
}

class FixedSinusoids : public InputTable {
 public:
  FixedSinusoids(const InputContext& context, const OptionReader& reader)
      : InputTable(merge_of(reader)),
        hidden_(context.hidden_size),
        layout_(layout_of(reader)),
        scale_(reader.number("scale")) {
    check_width(hidden_, layout_);
  }

  void initialize(double, const at::Generator&) override {}

 protected:
  Tensor vectors(const InputTokens& tokens, const Tensor& like) override {
    const std::int64_t length = tokens.ids.size(1);
    const bool current = table_.defined() && table_.size(0) >= length &&
                         table_.scalar_type() == like.scalar_type() &&
                         table_.device() == like.device();
    if (!current) {
      table_ = sinusoids(length, hidden_, layout_, scale_).to(like.device(), like.scalar_type());
    }
    return rows_of_tokens(table_, tokens);
  }

 private:
  std::int64_t hidden_;
  SinusoidLayout layout_;
  double scale_;
  Tensor table_;  // [>=T,H] of the latest dtype and device; never saved, never cast
};

// Parameter `weight` [N,H].
class TrainedSinusoids : public InputTable {
 public:
  TrainedSinusoids(const InputContext& context, const OptionReader& reader)
      : InputTable(merge_of(reader)),
        extension_(context.extension),
        layout_(layout_of(reader)),
        scale_(reader.number("scale")),
        weight_(register_parameter("weight",
                                   torch::zeros({context.max_positions, context.hidden_size}))) {
    check_width(context.hidden_size, layout_);
  }

  void initialize(double, const at::Generator&) override {
    torch::NoGradGuard no_grad;
    weight_.copy_(sinusoids(weight_.size(0), weight_.size(1), layout_, scale_));
  }

  std::int64_t longest() const override { return extended_length(weight_.size(0), extension_); }
  std::vector<ResizableTable> resizable_tables() const override {
    return {{"weight", ResizableTable::Rows::kPositions, 0}};
  }

 protected:
  Tensor vectors(const InputTokens& tokens, const Tensor&) override {
    const std::int64_t length = tokens.layout.longest();
    check_covered("sinusoidal(trainable=true)", length, longest());
    return rows_of_tokens(extended_table(weight_, 0, length, extension_), tokens);
  }

 private:
  LengthExtension extension_;
  SinusoidLayout layout_;
  double scale_;
  Tensor weight_;
};

}  // namespace

InputEncodingKind sinusoidal_input_kind() {
  return {"sinusoidal",
          "sines and cosines of the position",
          input_sinusoidal_options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            const OptionReader reader(input_owner("sinusoidal"), input_sinusoidal_options(), given);
            if (reader.flag("trainable")) {
              return std::make_shared<TrainedSinusoids>(context, reader);
            }
            return std::make_shared<FixedSinusoids>(context, reader);
          }};
}

}  // namespace tupelo

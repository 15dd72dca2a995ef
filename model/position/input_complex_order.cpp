// Complex-valued embeddings whose phase turns with the position (Wang et al., "Encoding word order
// in complex embeddings", ICLR 2020).
#include <cmath>
#include <stdexcept>

#include "model/layers.h"
#include "model/position/input_encoding.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/token_layout.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> input_complex_order_options() {
  return {{"form",
           "real-part",
           {"real-part", "concat-proj", "hermitian", "modulus"},
           "what becomes of [re|im]: the real part, a projection to hidden-size, or complex hidden "
           "states with scores Re(q k^H) or |q k^T|, projected behind the last layer"},
          {"phase", "none", {"none", "learned"}, "a trained angle at position 0"},
          {"share_frequency",
           "false",
           {"true", "false"},
           "one frequency (and phase) per feature for all words"},
          {"direction", "forward", {"forward", "backward"}, "from which end positions count"},
          {"first", "1", {}, "number of the first position", 0}};
}

enum class ComplexForm { kRealPart, kProjected, kHermitian, kModulus };

ComplexForm form_of(const OptionReader& options) {
  const std::string& text = options.text("form");
  if (text == "concat-proj") {
    return ComplexForm::kProjected;
  }
  return text == "hermitian" ? ComplexForm::kHermitian
                             : (text == "modulus" ? ComplexForm::kModulus : ComplexForm::kRealPart);
}

// Parameters: frequency and, if learned, phase [V,H] ([H] when shared); output.{weight,bias}
// [H,2H], [H] for every form but real-part.
class ComplexOrder : public InputEncoding {
 public:
  ComplexOrder(const InputContext& context, const OptionReader& options)
      : form_(form_of(options)),
        shared_(options.flag("share_frequency")),
        backward_(options.text("direction") == "backward"),
        first_(options.integer("first")) {
    const std::int64_t hidden = context.hidden_size;
    const auto shape = shared_ ? std::vector<std::int64_t>{hidden}
                               : std::vector<std::int64_t>{context.vocab_size, hidden};
    frequency_ = register_parameter("frequency", torch::zeros(shape));
    if (options.text("phase") == "learned") {
      phase_ = register_parameter("phase", torch::zeros(shape));
    }
    if (form_ != ComplexForm::kRealPart) {
      output_ = register_module("output", std::make_shared<Linear>(2 * hidden, hidden));
    }
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    torch::NoGradGuard no_grad;
    const std::int64_t hidden = frequency_.size(-1);
    Tensor exponents = at::arange(hidden, at::TensorOptions().dtype(at::kDouble));
    exponents = exponents.div(2, "floor").mul_(-2.0 / static_cast<double>(hidden));
    frequency_.copy_(exponents.mul_(std::log(10000.0)).exp_());
    if (phase_.defined()) {
      phase_.zero_();
    }
    if (output_) {
      output_->initialize(standard_deviation, generator);
    }
  }

  // Decay would slow all words down.
  std::vector<std::string> undecayed_parameters() const override {
    std::vector<std::string> names = {"frequency"};
    if (phase_.defined()) {
      names.emplace_back("phase");
    }
    if (output_) {
      names.emplace_back("output.bias");
    }
    return names;
  }

  Tensor forward(const Tensor& embeddings, const InputTokens& tokens) override {
    const Tensor angles = angles_of(tokens);
    const auto turned = [&](const Tensor& factors) {
      return embeddings * factors.to(embeddings.scalar_type());
    };
    const Tensor real = turned(angles.cos());
    if (form_ == ComplexForm::kRealPart) {
      return real;
    }
    const Tensor imaginary = turned(angles.sin());
    return form_ == ComplexForm::kProjected ? output_->forward(at::cat({real, imaginary}, -1))
                                            : at::cat({real, imaginary}, 0);
  }

  ComplexScores complex_scores() const override {
    return form_ == ComplexForm::kHermitian
               ? ComplexScores::kHermitian
               : (form_ == ComplexForm::kModulus ? ComplexScores::kModulus : ComplexScores::kNone);
  }

  Tensor collapse(const Tensor& hidden) override {
    return complex_scores() == ComplexScores::kNone
               ? hidden
               : output_->forward(at::cat(hidden.chunk(2, 0), -1));
  }

 private:
  // [B,T,H] or, without phases and with shared frequencies, what broadcasts to it. float32 or
  // wider: half precision could not tell the positions' angles apart.
  Tensor angles_of(const InputTokens& tokens) const {
    const Tensor frequency = at_least_float32(of_words(frequency_, tokens.ids));
    const Tensor positions = positions_of(tokens).to(frequency.scalar_type()).unsqueeze(-1);
    return phase_.defined()
               ? at::addcmul(at_least_float32(of_words(phase_, tokens.ids)), frequency, positions)
               : frequency * positions;
  }

  Tensor of_words(const Tensor& table, const Tensor& ids) const {
    return shared_ ? table : at::embedding(table, ids);
  }

  // [B,T] or [1,T] int64. Backwards from the last token of each sequence, so that neither padding
  // nor neighbours in a packed row move it.
  Tensor positions_of(const InputTokens& tokens) const {
    if (backward_) {
      return tokens.layout.over_sequences({tokens.ids}, backward_positions) + first_;
    }
    const Tensor& positions = tokens.layout.positions();
    return (positions.defined()
                ? positions
                : at::arange(tokens.ids.size(1), tokens.ids.options()).unsqueeze(0)) +
           first_;
  }

  static Tensor backward_positions(const std::vector<Tensor>& inputs,
                                   const SequenceBatch& sequences) {
    const Tensor& ids = inputs.front();
    const Tensor columns = at::arange(ids.size(1), ids.options()).expand_as(ids);
    const Tensor& real = sequences.admissible;
    const Tensor last =
        real.defined() ? real.sum(1, /*keepdim=*/true) - 1 : columns.narrow(1, ids.size(1) - 1, 1);
    return (last - columns).clamp_min(0);
  }

  ComplexForm form_;
  bool shared_;
  bool backward_;
  std::int64_t first_;
  Tensor frequency_;
  Tensor phase_;
  std::shared_ptr<Linear> output_;
};

}  // namespace

InputEncodingKind complex_order_input_kind() {
  return {"complex-order",
          "complex embeddings whose phases turn with the position",
          input_complex_order_options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            return std::make_shared<ComplexOrder>(
                context,
                OptionReader(input_owner("complex-order"), input_complex_order_options(), given));
          }};
}

}  // namespace tupelo

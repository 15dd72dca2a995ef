// A convolution over the embeddings: positions through the ends of a sequence.
#include "model/border_convolution.h"
#include "model/position/convolution_kernel.h"
#include "model/position/kinds.h"

namespace tupelo {
namespace {

class ConvolutionInput : public InputEncoding {
 public:
  ConvolutionInput(const InputContext& context, const OptionReader& options)
      : kernel_(*this, context.hidden_size, options) {}

  void initialize(double, const at::Generator& generator) override {
    kernel_.initialize(generator);
  }

  std::vector<std::string> undecayed_parameters() const override { return {"bias"}; }

  torch::Tensor forward(const torch::Tensor& embeddings, const InputTokens& tokens) override {
    return border_convolution(embeddings, kernel_.weight, kernel_.bias, tokens.layout);
  }

 private:
  ConvolutionKernel kernel_;
};

}  // namespace

InputEncodingKind convolution_input_kind() {
  return {"conv",
          "a convolution over the embeddings, which sees the ends of a sequence",
          ConvolutionKernel::options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            return std::make_shared<ConvolutionInput>(
                context, OptionReader(input_owner("conv"), ConvolutionKernel::options(), given));
          }};
}

}  // namespace tupelo

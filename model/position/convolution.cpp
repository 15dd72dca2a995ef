// A convolution in front of a layer: positions through the ends of a sequence. The parameters are
// the group's, so that with share=group all its layers use the same kernel.
#include "model/position/convolution_kernel.h"
#include "model/position/kinds.h"

namespace tupelo {
namespace {

class Convolution : public PositionEncoding {
 public:
  Convolution(const PositionContext& context, const OptionReader& options)
      : context_(context), kernel_(*this, context.hidden_size(), options) {}

  void initialize(double, const at::Generator& generator) override {
    kernel_.initialize(generator);
  }

  std::vector<std::string> undecayed_parameters() const override { return {"bias"}; }

  AttentionTerms terms(std::int64_t) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    terms.convolution_weight = kernel_.weight;
    terms.convolution_bias = kernel_.bias;
    return terms;
  }

 private:
  PositionContext context_;
  ConvolutionKernel kernel_;
};

}  // namespace

PositionEncodingKind convolution_kind() {
  return {"conv",
          "a convolution in front of the layer, which sees the ends of a sequence",
          ConvolutionKernel::options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Convolution>(
                context, OptionReader("conv", ConvolutionKernel::options(), given));
          }};
}

}  // namespace tupelo

// FLOATER in attention: what the path of a flow says is added to queries, keys and values, in place
// of their biases. Paper: floater_flow.h.
#include "model/position/floater_flow.h"
#include "model/position/kinds.h"

namespace tupelo {
namespace {

using torch::Tensor;

// Parameters: start [layers,3,H], where each layer's paths for q, k and v begin, and flow.*, which
// all of them share.
class Floater : public PositionEncoding {
 public:
  Floater(const PositionContext& context, const OptionReader& options)
      : context_(context),
        flow_(register_module(
            "flow", std::make_shared<FloaterFlow>(context.hidden_size(), FlowSettings(options)))),
        start_(register_parameter("start",
                                  torch::zeros({context.layers, 3, context.hidden_size()}))) {}

  void initialize(double, const at::Generator& generator) override {
    flow_->initialize(generator);
    fill_normal(start_, 1.0, generator);
  }

  // A path is what would otherwise be biases.
  std::vector<std::string> undecayed_parameters() const override {
    std::vector<std::string> names = {"start"};
    for (const std::string& name : FloaterFlow::bias_names()) {
      names.push_back("flow." + name);
    }
    return names;
  }

  ContentBiases content_biases() const override { return {false, false, false}; }

  AttentionTerms terms(std::int64_t tokens) override { return layer_terms(tokens, 1).front(); }

  std::vector<AttentionTerms> layer_terms(std::int64_t tokens, std::int64_t layers) override {
    TORCH_CHECK(layers <= start_.size(0), "paths for ", start_.size(0), " layers, not ", layers);
    const Tensor path = flow_->refreshed_path(start_, tokens, context_.max_positions);
    std::vector<AttentionTerms> terms;
    for (const Tensor& layer : heads_of_layers(path)) {
      terms.push_back(plain_attention_terms(context_.head_width));
      terms.back().query_offset = layer[0];
      terms.back().key_offset = layer[1];
      terms.back().value_offset = layer[2];
    }
    terms.resize(static_cast<std::size_t>(layers));
    return terms;
  }

  PositionPicture picture(std::int64_t tokens) override {
    const AttentionTerms first = terms(tokens);
    PositionPicture picture;
    picture.correlation =
        at::matmul(first.query_offset * first.scale, first.key_offset.transpose(1, 2));
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    return flow_->path_flops(start_.size(0) * start_.size(1), tokens);
  }

 private:
  // [T,layers,3,H] -> for each layer [3,N,T,D]
  std::vector<Tensor> heads_of_layers(const Tensor& path) const {
    return path.unflatten(-1, {context_.heads, context_.head_width})
        .permute({1, 2, 3, 0, 4})
        .unbind(0);
  }

  PositionContext context_;
  std::shared_ptr<FloaterFlow> flow_;
  Tensor start_;
};

}  // namespace

PositionEncodingKind floater_kind() {
  return {"floater",
          "FLOATER: the path of a learned flow, added to queries, keys and values of every layer",
          FlowSettings::options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Floater>(
                context, OptionReader("floater", FlowSettings::options(), given));
          }};
}

}  // namespace tupelo

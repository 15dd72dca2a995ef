#include "model/attention_probe.h"

#include <cmath>
#include <limits>
#include <utility>

#include "model/position/encoding_call.h"
#include "model/position/toeplitz.h"

namespace tupelo {
namespace {

using torch::Tensor;

Tensor zeros_of(std::vector<std::int64_t> sizes) { return torch::zeros(sizes, torch::kDouble); }

std::vector<double> numbers(const Tensor& tensor) {
  const Tensor host = tensor.to(torch::kCPU).contiguous();
  const auto* first = host.data_ptr<double>();
  return {first, first + host.numel()};
}

Tensor& part(ScoreParts& parts, ScorePath path) { return parts[static_cast<std::size_t>(path)]; }

// What does not depend on the input, [N,n,n], divided as the picture says.
void split_positions(const Tensor& products, const Tensor& bias, const Tensor& correlation,
                     bool distance_bias, ScoreParts& parts) {
  Tensor& positions = part(parts, ScorePath::kPositionPosition);
  Tensor& distances = part(parts, ScorePath::kDistanceBias);
  if (correlation.defined() && distance_bias) {
    positions = correlation;
    distances = products + bias - correlation;
  } else if (correlation.defined()) {
    positions = products + bias;
    distances = at::zeros_like(bias);
  } else if (distance_bias) {
    positions = at::zeros_like(bias);
    distances = products + bias;
  } else {
    positions = products;
    distances = bias;
  }
}

BiasRange range_of(const Tensor& line, std::int64_t first, std::int64_t count) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  if (!line.defined() || count == 0) {
    return {nothing, nothing};
  }
  const Tensor side = line.narrow(1, first, count);
  const Tensor finite = side.masked_select(side.isfinite()).to(torch::kDouble);
  if (finite.numel() == 0) {
    return {nothing, nothing};
  }
  return {finite.min().item<double>(), finite.max().item<double>()};
}

// "0", "input" or "mask_decoder".
std::string owner_of(const std::string& parameter) {
  const std::string groups = "roberta.position.", input = "roberta.embeddings.";
  if (parameter.rfind(groups, 0) == 0) {
    return parameter.substr(groups.size(), parameter.find('.', groups.size()) - groups.size());
  }
  return parameter.rfind(input, 0) == 0 ? "input" : "mask_decoder";
}

}  // namespace

ScoreParts split_scores(const AttentionSample& sample, const AttentionTerms& terms,
                        const PositionPicture& picture) {
  AttentionTerms products = terms;
  products.bias = Tensor();
  // Scores are affine in the query and in the key, so that leaving one or both out tells the parts
  // apart, whatever the terms are made of.
  const auto scores = [&](double query, double key) {
    return sample.scores(products, query, key, torch::kDouble);
  };
  const Tensor both = scores(1, 1);
  const Tensor bias = terms.bias.defined() ? sample.between_real(terms.bias).to(both.options())
                                           : at::zeros_like(both);
  ScoreParts parts;
  if (terms.complex_scores == ComplexScores::kModulus) {
    parts.fill(at::zeros_like(both));
    part(parts, ScorePath::kContentContent) = both;
    part(parts, ScorePath::kDistanceBias) = bias;
    return parts;
  }
  const Tensor neither = scores(0, 0);
  part(parts, ScorePath::kContentPosition) = scores(1, 0) - neither;
  part(parts, ScorePath::kPositionContent) = scores(0, 1) - neither;
  part(parts, ScorePath::kContentContent) = both - part(parts, ScorePath::kContentPosition) -
                                            part(parts, ScorePath::kPositionContent) - neither;
  const Tensor correlation = picture.correlation.defined()
                                 ? sample.between_real(picture.correlation).to(both.options())
                                 : Tensor();
  split_positions(neither, bias, correlation, picture.distance_bias.defined(), parts);
  return parts;
}

AttentionProbe::AttentionProbe(const RobertaForMaskedLm& model) : model_(model) {
  const std::int64_t heads = model.options().heads;
  for (std::int64_t layer = 0; layer < model.options().layers; ++layer) {
    const auto paths = static_cast<std::int64_t>(kScorePaths);
    sums_.push_back({zeros_of({paths, heads}), zeros_of({paths, heads}), zeros_of({paths, heads}),
                     zeros_of({heads}), zeros_of({heads}), zeros_of({heads}), zeros_of({heads}),
                     zeros_of({heads})});
  }
}

const PositionPicture& AttentionProbe::picture(std::int64_t group, std::int64_t tokens) {
  PositionPicture& kept = pictures_[{group, tokens}];
  if (group >= 0 && !kept.correlation.defined() && !kept.distance_bias.defined()) {
    kept = model_.encodings()[static_cast<std::size_t>(group)]->picture(tokens);
  }
  return kept;
}

void AttentionProbe::attend(const AttentionCall& call) {
  const torch::NoGradGuard no_gradients;
  const auto layer = static_cast<std::size_t>(layer_);
  const PositionPicture& seen = picture(model_.plan().group_of_layer[layer], call.query.size(2));
  Sums& sums = sums_.at(layer);
  for (const AttentionSample& sample : AttentionSample::of(call)) {
    longest_ = std::max(longest_, sample.tokens());
    const ScoreParts parts = split_scores(sample, call.terms, seen);
    const Tensor scores = at::stack(at::TensorList(parts)).sum(0);  // [N,n,n]
    const Tensor visible = scores.ne(-std::numeric_limits<double>::infinity());
    const Tensor all = at::where(visible, at::stack(at::TensorList(parts)), 0.0);  // [5,N,n,n]
    sums.sum += all.sum({2, 3}).cpu();
    sums.squares += all.square().sum({2, 3}).cpu();
    sums.largest = at::maximum(sums.largest, all.abs().amax({2, 3}).cpu());
    sums.pairs += visible.sum({1, 2}).cpu();
    add_entropy(sample, scores, sums);
  }
}

void AttentionProbe::add_entropy(const AttentionSample& sample, const Tensor& scores,
                                 Sums& sums) const {
  const QueryEntropy entropy = query_entropy(scores);
  const Tensor sum = entropy.nats.cpu(), count = entropy.queries.cpu();
  sums.entropy += sum;
  sums.queries += count;
  if (sample.tokens() > 1) {
    sums.relative += sum / std::log(static_cast<double>(sample.tokens()));
    sums.choices += count;
  }
}

std::vector<LayerProbe> AttentionProbe::layers() const {
  std::vector<LayerProbe> layers;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Sums& sums = sums_[i];
    LayerProbe layer;
    layer.group = model_.plan().group_of_layer[i];
    const Tensor mean = sums.sum / sums.pairs;
    const Tensor variance = (sums.squares / sums.pairs - mean.square()).clamp_min(0.0);
    for (std::size_t path = 0; path < kScorePaths; ++path) {
      const auto row = static_cast<std::int64_t>(path);
      layer.paths[path] = {numbers(mean[row]), numbers(variance[row]), numbers(sums.largest[row])};
    }
    layer.entropy = numbers(sums.entropy / sums.queries);
    layer.relative_entropy = numbers(sums.relative / sums.choices);
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<GroupProbe> probe_groups(const RobertaForMaskedLm& model, std::int64_t tokens) {
  const torch::NoGradGuard no_gradients;
  std::vector<GroupProbe> groups;
  for (std::size_t i = 0; i < model.encodings().size(); ++i) {
    const PositionPlan::Group& group = model.plan().groups[i];
    GroupProbe probe;
    probe.encoding = encoding_call_text(group.encoding, group.options);
    probe.layers = group.layers;
    probe.picture = model.encodings()[i]->picture(tokens);
    probe.to_left = range_of(probe.picture.distance_bias, 0, tokens - 1);
    probe.to_right = range_of(probe.picture.distance_bias, tokens, tokens - 1);
    groups.push_back(std::move(probe));
  }
  return groups;
}

std::map<std::string, double> position_gradient_norms(const RobertaForMaskedLm& model) {
  std::map<std::string, Tensor> gradients;
  for (const auto& parameter : model.named_parameters()) {
    gradients[parameter.key()] = parameter.value().grad();
  }
  std::map<std::string, double> squares;
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  for (const auto* names : {&roles.position_decayed, &roles.position_undecayed}) {
    for (const std::string& name : *names) {
      const Tensor& gradient = gradients.at(name);
      const double square =
          gradient.defined() ? gradient.to(torch::kDouble).square().sum().item<double>() : 0.0;
      squares[owner_of(name)] += square;
      squares["all"] += square;
    }
  }
  for (auto& [owner, value] : squares) value = std::sqrt(value);
  return squares;
}

}  // namespace tupelo

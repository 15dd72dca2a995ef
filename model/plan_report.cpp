#include "model/plan_report.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/position/encoding_call.h"
#include "model/position/input_encoding.h"

namespace tupelo {
namespace {

constexpr double kTurn = 3.0;  // a rotation: six operations for two features
constexpr std::int64_t kFloatBytes = 4;

double as_double(std::int64_t number) { return static_cast<double>(number); }

std::int64_t width_of(const torch::Tensor& rows) { return rows.defined() ? rows.size(-1) : 0; }

// Distances that occur among those with vectors of their own.
std::int64_t distances(const torch::Tensor& table, const LayerShape& shape) {
  return std::min(table.size(-2), 2 * shape.tokens - 1);
}

std::int64_t count_defined(std::initializer_list<torch::Tensor> tensors) {
  return std::count_if(tensors.begin(), tensors.end(),
                       [](const torch::Tensor& tensor) { return tensor.defined(); });
}

bool keys_meet_distances(const AttentionTerms& terms) {
  return terms.relative_query.defined() ||
         (terms.relative_rows.defined() && terms.relative_rows_as_queries);
}

bool queries_meet_distances(const AttentionTerms& terms) {
  return terms.relative_key.defined() ||
         (terms.relative_rows.defined() && terms.relative_rows_as_keys);
}

double elementwise_flops(const AttentionTerms& terms, const LayerShape& shape) {
  const double hidden = as_double(shape.hidden_size());
  double flops =
      hidden * as_double(count_defined({terms.query_gain, terms.query_offset, terms.key_offset,
                                        terms.value_offset, terms.relative_query_offset}));
  if (terms.bias.defined()) {
    flops += as_double(shape.heads * shape.tokens);
  }
  if (terms.rotation_cos.defined()) {
    flops += kTurn * hidden * (terms.rotate_values ? 3.0 : 2.0);
  }
  if (terms.temperature != LengthTemperature::kOff) {
    flops += hidden;
  }
  return flops;
}

double feature_flops(const AttentionTerms& terms, const LayerShape& shape) {
  const double heads = as_double(shape.heads), hidden = as_double(shape.hidden_size());
  const double tokens = as_double(shape.tokens);
  const double extra = heads * as_double(width_of(terms.key_extra));
  double flops = 2.0 * tokens * extra;
  if (terms.query_extra_gain.defined()) {
    flops += extra * (terms.query_extra.defined() ? 2.0 : 1.0);
  }
  const double phases = heads * as_double(width_of(terms.phase_key));
  flops += (2.0 * tokens + kTurn) * phases;
  if (terms.phase_map.defined()) {
    flops += 2.0 * as_double(terms.phase_map.numel());
  }
  if (terms.phase_value.defined()) {
    flops += (2.0 * tokens + kTurn + 1.0) * hidden;
  }
  return flops;
}

double distance_flops(const AttentionTerms& terms, const LayerShape& shape) {
  const double hidden = as_double(shape.hidden_size());
  const auto product = [&](const torch::Tensor& table) {
    return 2.0 * as_double(distances(table, shape)) * hidden +
           as_double(shape.heads * shape.tokens);
  };
  double flops = 0;
  if (queries_meet_distances(terms)) {
    flops += product(terms.relative_key.defined() ? terms.relative_key : terms.relative_rows);
  }
  if (keys_meet_distances(terms)) {
    flops += product(terms.relative_query.defined() ? terms.relative_query : terms.relative_rows);
  }
  if (terms.relative_value.defined()) {
    flops += product(terms.relative_value);
  }
  return flops;
}

double convolution_flops(const AttentionTerms& terms, const LayerShape& shape) {
  if (!terms.convolution_weight.defined()) {
    return 0.0;
  }
  // Bias, gelu and sum beside the products.
  return 2.0 * as_double(terms.convolution_weight.numel()) + 3.0 * as_double(shape.hidden_size());
}

double complex_flops(const AttentionTerms& terms, const LayerShape& shape) {
  if (terms.complex_scores == ComplexScores::kNone) {
    return 0.0;
  }
  const double again = plain_layer_flops(shape);
  if (terms.complex_scores == ComplexScores::kHermitian) {
    return again;
  }
  // Two more products of heads, and the modulus.
  return again + 4.0 * as_double(shape.tokens) * as_double(shape.hidden_size()) +
         4.0 * as_double(shape.heads * shape.tokens);
}

// Numbers per token that a layer keeps twice when hidden states are complex: its input, q, k, v,
// their mixture, both norms' inputs, the feed-forward block's input, and both sides of gelu.
std::int64_t complex_numbers(const AttentionTerms& terms, const LayerShape& shape) {
  return terms.complex_scores == ComplexScores::kNone
             ? 0
             : 8 * shape.hidden_size() + 2 * shape.intermediate_size;
}

// Heads that are kept beside the operands of the product, because those are other tensors.
std::int64_t kept_heads(const AttentionTerms& terms) {
  const bool tempered = terms.temperature != LengthTemperature::kOff;
  const bool widened = terms.key_extra.defined() || terms.phase_key.defined();
  const bool other_query = terms.query_gain.defined() || terms.query_offset.defined() || widened;
  // A trainable factor needs what it multiplied, and so does a map.
  const bool query = terms.query_gain.defined() || terms.query_extra_gain.defined() ||
                     (terms.phase_map.defined() && !terms.relative_query_offset.defined());
  const bool shifted_query = terms.phase_map.defined() && terms.relative_query_offset.defined();
  const bool distance_query =
      queries_meet_distances(terms) &&
      (terms.relative_query_offset.defined() || tempered || (other_query && !query));
  const bool distance_key =
      keys_meet_distances(terms) && (terms.key_offset.defined() || widened || tempered);
  return query + shifted_query + distance_query + distance_key +
         (terms.phase_value.defined() ? 1 : 0);
}

// Tensors [N,T,T].
std::int64_t kept_squares(AttentionPath path) {
  switch (path) {
    case AttentionPath::kOwn:
      return 1;  // probabilities
    case AttentionPath::kModulus:
      return 4;  // both products, the root, probabilities
    default:
      return 0;
  }
}

std::int64_t count_elements(const std::vector<torch::Tensor>& tensors) {
  return std::accumulate(
      tensors.begin(), tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const torch::Tensor& tensor) { return sum + tensor.numel(); });
}

void count_parameters(const RobertaForMaskedLm& model, PlanReport& report) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& parameter : model.named_parameters()) {
    sizes[parameter.key()] = parameter.value().numel();
    report.parameters += parameter.value().numel();
  }
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  for (const auto* names : {&roles.position_decayed, &roles.position_undecayed}) {
    for (const std::string& name : *names) {
      const std::int64_t size = sizes.at(name);
      report.position_parameters += size;
      if (name.find("roberta.embeddings.") == 0) {
        report.input_parameters += size;
      } else if (name.find("roberta.position.") != 0) {
        report.mask_decoder_parameters += size;
      }
    }
  }
}

PlanLayer layer_row(const AttentionTerms& terms, const AttentionTerms& plain,
                    const LayerShape& shape, bool padding) {
  const auto cost_on = [&](at::DeviceType device) {
    const AttentionPath path = attention_path(device, terms, padding);
    return PathCost{path,
                    extra_kept_bytes(terms, shape, path, attention_path(device, plain, padding))};
  };
  PlanLayer row;
  row.extra_flops = extra_layer_flops(terms, shape);
  row.shared_flops = relative_row_flops(terms, shape);
  row.cpu = cost_on(at::kCPU);
  row.cuda = cost_on(at::kCUDA);
  return row;
}

}  // namespace

double plain_layer_flops(const LayerShape& shape) {
  const double hidden = as_double(shape.hidden_size());
  const double maps = 4.0 * hidden * hidden + 2.0 * hidden * as_double(shape.intermediate_size);
  return 2.0 * maps + 4.0 * as_double(shape.tokens) * hidden;
}

double extra_layer_flops(const AttentionTerms& terms, const LayerShape& shape) {
  return elementwise_flops(terms, shape) + feature_flops(terms, shape) +
         distance_flops(terms, shape) + convolution_flops(terms, shape) +
         complex_flops(terms, shape);
}

double relative_row_flops(const AttentionTerms& terms, const LayerShape& shape) {
  if (!terms.relative_rows.defined()) {
    return 0.0;
  }
  const double hidden = as_double(shape.hidden_size());
  return 2.0 * as_double(terms.relative_rows.size(0)) * hidden * hidden *
         (terms.relative_rows_as_keys + terms.relative_rows_as_queries);
}

std::int64_t extra_kept_bytes(const AttentionTerms& terms, const LayerShape& shape,
                              AttentionPath path, AttentionPath plain_path) {
  const std::int64_t features =
      2 * shape.heads * (width_of(terms.key_extra) + width_of(terms.phase_key));
  std::int64_t per_token =
      features + kept_heads(terms) * shape.hidden_size() + complex_numbers(terms, shape);
  if (terms.convolution_weight.defined()) {
    per_token += 2 * shape.hidden_size();  // what the convolution and gelu read
  }
  const std::int64_t squares = kept_squares(path) - kept_squares(plain_path);
  return kFloatBytes * shape.tokens * (per_token + squares * shape.heads * shape.tokens);
}

PlanReport plan_report(const RobertaForMaskedLm& model, std::int64_t tokens, bool padding) {
  const ModelOptions& options = model.options();
  const LayerShape shape{options.heads, options.hidden_size / options.heads,
                         options.intermediate_size, tokens};
  const torch::NoGradGuard no_gradients;
  PlanReport report;
  report.tokens = tokens;
  report.layer_flops = plain_layer_flops(shape);
  report.input = InputPosition::parse(options.input_position).to_string();
  report.mask_decoder = options.mask_decoder;
  count_parameters(model, report);
  const PositionPlan& plan = model.plan();
  const AttentionTerms plain = plain_attention_terms(shape.head_width);
  for (const AttentionTerms& terms : model.terms_of_layers(tokens)) {
    const auto layer = static_cast<std::int64_t>(report.layers.size());
    PlanLayer row = layer_row(terms, plain, shape, padding);
    row.group = plan.group_of_layer[static_cast<std::size_t>(layer)];
    if (row.group >= 0) {
      const PositionPlan::Group& group = plan.groups[static_cast<std::size_t>(row.group)];
      row.encoding = encoding_call_text(group.encoding, group.options);
      if (group.layers.front() == layer) {
        const auto& encoding = model.encodings()[static_cast<std::size_t>(row.group)];
        row.parameters = count_elements(encoding->parameters());
        row.shared_flops += encoding->terms_flops(tokens);
      }
    }
    report.layers.push_back(std::move(row));
  }
  return report;
}

}  // namespace tupelo

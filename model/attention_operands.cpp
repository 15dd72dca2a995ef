#include "model/attention_operands.h"

#include <cmath>

#include "model/rotation.h"

namespace tupelo {
namespace {

using torch::Tensor;

Tensor affine(const Tensor& content, const Tensor& gain, const Tensor& offset) {
  const auto type = content.scalar_type();
  const Tensor scaled = gain.defined() ? content * gain.to(type) : content;
  return offset.defined() ? scaled + offset.to(type) : scaled;
}

// q + relative_query_offset through phase_map, turned back by each query's own angle.
Tensor phase_query(const Tensor& query, const AttentionTerms& terms) {
  Tensor content = affine(query, {}, terms.relative_query_offset);
  if (terms.phase_map.defined()) {
    content = at::matmul(content, terms.phase_map.to(query.scalar_type()));
  }
  return rotate(content, terms.phase_cos, terms.phase_sin.neg(), terms.phase_layout);
}

}  // namespace

Tensor widen(const Tensor& head, const Tensor& extra) {
  return at::cat({head, extra.to(head.scalar_type())
                            .expand({head.size(0), head.size(1), head.size(2), extra.size(-1)})},
                 -1);
}

Tensor length_temperature(const Tensor& query, const AttentionTerms& terms,
                          const Tensor& admissible_keys) {
  if (terms.temperature == LengthTemperature::kOff) {
    return {};
  }
  const Tensor lengths = admissible_keys.defined()
                             ? admissible_keys.sum(-1).to(at::kDouble)
                             : at::full({query.size(0)}, static_cast<double>(query.size(2)),
                                        query.options().dtype(at::kDouble));
  const bool at_least_16 = terms.temperature == LengthTemperature::kAtLeast16;
  Tensor factor = lengths.clamp_min(at_least_16 ? 16.0 : 2.0).log() /
                  std::log(static_cast<double>(terms.temperature_length));
  if (terms.temperature == LengthTemperature::kAtLeastOne) {
    factor = factor.clamp_min(1.0);
  }
  return factor.to(query.scalar_type()).view({-1, 1, 1, 1});
}

AttentionOperands operands_of(const Tensor& query, const Tensor& key, const Tensor& value,
                              const AttentionTerms& terms, const Tensor& admissible_keys) {
  const Tensor temperature = length_temperature(query, terms, admissible_keys);
  const auto tempered = [&](const Tensor& tensor) {
    return temperature.defined() ? tensor * temperature : tensor;
  };
  AttentionOperands operands;
  Tensor left = affine(query, terms.query_gain, terms.query_offset);
  operands.key = affine(key, {}, terms.key_offset);
  operands.value = affine(value, {}, terms.value_offset);
  if (terms.key_extra.defined()) {
    const Tensor extra = terms.query_extra_gain.defined()
                             ? affine(query, terms.query_extra_gain, terms.query_extra)
                             : terms.query_extra;
    left = widen(left, extra);
    operands.key = widen(operands.key, terms.key_extra);
  }
  if (terms.phase_key.defined()) {
    left = widen(left, phase_query(query, terms));
    operands.key = widen(operands.key, terms.phase_key);
  }
  operands.query = tempered(left);
  if (terms.relative_key.defined()) {
    operands.relative_query_input = tempered(affine(query, {}, terms.relative_query_offset));
    operands.relative_key = terms.relative_key.to(query.scalar_type());
  }
  if (terms.relative_query.defined()) {
    operands.relative_key_input = tempered(key);
    operands.relative_query = terms.relative_query.to(query.scalar_type());
  }
  if (terms.relative_value.defined()) {
    operands.relative_value = terms.relative_value.to(value.scalar_type());
  }
  operands.bias = terms.bias;
  operands.bias_blocks = terms.bias_blocks;
  operands.admissible_keys = admissible_keys;
  return operands;
}

}  // namespace tupelo

#include "model/position/attention_terms.h"

#include <cmath>

namespace tupelo {
namespace {

using TermTensor = torch::Tensor AttentionTerms::*;
constexpr TermTensor kTermTensors[] = {
    &AttentionTerms::bias,
    &AttentionTerms::query_gain,
    &AttentionTerms::query_offset,
    &AttentionTerms::key_offset,
    &AttentionTerms::value_offset,
    &AttentionTerms::query_extra_gain,
    &AttentionTerms::query_extra,
    &AttentionTerms::key_extra,
    &AttentionTerms::relative_query_offset,
    &AttentionTerms::relative_key,
    &AttentionTerms::relative_query,
    &AttentionTerms::relative_value,
    &AttentionTerms::relative_rows,
    &AttentionTerms::phase_cos,
    &AttentionTerms::phase_sin,
    &AttentionTerms::phase_key,
    &AttentionTerms::phase_map,
    &AttentionTerms::phase_value,
    &AttentionTerms::rotation_cos,
    &AttentionTerms::rotation_sin,
    &AttentionTerms::convolution_weight,
    &AttentionTerms::convolution_bias,
};

// Members with one row per token, in dimension 1 behind the heads and in dimension 0.
constexpr TermTensor kRowPerToken[] = {&AttentionTerms::rotation_cos, &AttentionTerms::rotation_sin,
                                       &AttentionTerms::phase_cos,    &AttentionTerms::phase_sin,
                                       &AttentionTerms::phase_key,    &AttentionTerms::phase_value};
constexpr TermTensor kRowPerTokenOfHeads[] = {
    &AttentionTerms::query_offset, &AttentionTerms::key_offset, &AttentionTerms::value_offset,
    &AttentionTerms::query_extra, &AttentionTerms::key_extra};

}  // namespace

std::vector<torch::Tensor> AttentionTerms::tensors() const {
  std::vector<torch::Tensor> defined;
  for (const TermTensor member : kTermTensors) {
    if ((this->*member).defined()) {
      defined.push_back(this->*member);
    }
  }
  return defined;
}

AttentionTerms AttentionTerms::with_tensors(const std::vector<torch::Tensor>& tensors) const {
  AttentionTerms terms = *this;
  auto next = tensors.begin();
  for (const TermTensor member : kTermTensors) {
    if ((terms.*member).defined()) {
      terms.*member = *next++;
    }
  }
  return terms;
}

AttentionTerms AttentionTerms::first(std::int64_t tokens) const {
  AttentionTerms terms = *this;
  if (terms.bias.defined()) {
    terms.bias = terms.bias.narrow(1, 0, tokens).narrow(2, 0, tokens);
  }
  for (const TermTensor member : kRowPerTokenOfHeads) {
    torch::Tensor& tensor = terms.*member;
    if (tensor.defined() && tensor.size(1) != 1) {
      tensor = tensor.narrow(1, 0, tokens);
    }
  }
  for (const TermTensor member : kRowPerToken) {
    if ((terms.*member).defined()) {
      terms.*member = (terms.*member).narrow(0, 0, tokens);
    }
  }
  return terms;  // vectors of distances that do not occur do no harm
}

AttentionTerms plain_attention_terms(std::int64_t head_width) {
  AttentionTerms terms;
  terms.scale = 1.0 / std::sqrt(static_cast<double>(head_width));
  return terms;
}

}  // namespace tupelo

// Attention with a bias shared by the batch and with vectors of distances, as an autograd function
// of our own.
#pragma once

#include <torch/types.h>

namespace tupelo {

// Undefined tensors add nothing. X is the width that queries and keys are compared in.
struct AttentionOperands {
  torch::Tensor query;  // [B,N,T,X]
  torch::Tensor key;    // [B,N,T,X]
  torch::Tensor value;  // [B,N,T,Y]
  torch::Tensor bias;   // [N,T,T]
  // Scores gain relative_query_input_i relative_key_r + relative_key_input_j relative_query_r and
  // values relative_value_r, r = j - i; tables as in model/relative_scores.h.
  torch::Tensor relative_query_input;  // [B,N,T,D]
  torch::Tensor relative_key;
  torch::Tensor relative_key_input;  // [B,N,T,D]
  torch::Tensor relative_query;
  torch::Tensor relative_value;   // rows of width Y
  torch::Tensor admissible_keys;  // [B,T] bool
  bool bias_blocks = false;       // the bias may forbid all keys of a query
};

// dropout(softmax(scale (products) + bias)) values, [B,N,T,Y], on any device; a query without any
// key gives zeros. Backward keeps the inputs and the probabilities [B,N,T,T], and sums the
// gradients of the bias and of the tables over the batch itself, so that no expanded bias or
// gradient of one ever exists. Softmax in float32 or wider.
torch::Tensor biased_attention(const AttentionOperands& operands, double scale, double dropout);

}  // namespace tupelo

// Products with vectors that depend on the distance r = j - i only, without a [T,T,D] tensor.
//
// `table` [N,2R+1,D] or [1,2R+1,D] (one for all heads), row r + R; farther distances use the end
// rows. Nothing here is recorded by autograd. Work proceeds in blocks of the batch, so that no more
// than a few such blocks of [*,N,T,2T-1] exist beside the arguments.
#pragma once

#include <torch/types.h>

namespace tupelo {

// scores[b,h,i,j] += factor * sum_d input[b,h,i,d] table[h,j-i,d], for scores [B,N,T,T] (any
// strides) and input [B,N,T,D].
void add_relative_scores(torch::Tensor scores, const torch::Tensor& input,
                         const torch::Tensor& table, double factor);

// [B,N,T,D]: sum over j of weights[b,h,i,j] table[h,j-i], in the type of table.
torch::Tensor relative_mixture(const torch::Tensor& weights, const torch::Tensor& table);

// Like table: sum over b, i and j with distance r (and over heads, when it has one for all) of
// weights[b,h,i,j] input[b,h,i].
torch::Tensor relative_table_gradient(const torch::Tensor& weights, const torch::Tensor& input,
                                      const torch::Tensor& table);

}  // namespace tupelo

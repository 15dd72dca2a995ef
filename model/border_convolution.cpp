#include "model/border_convolution.h"

namespace tupelo {

torch::Tensor border_convolution(const torch::Tensor& hidden, const torch::Tensor& weight,
                                 const torch::Tensor& bias, const TokenLayout& layout) {
  const auto convolve = [&](const std::vector<torch::Tensor>& inputs,
                            const SequenceBatch& sequences) {
    torch::Tensor rows = inputs.front();  // [C*S,t,H]
    if (sequences.admissible.defined()) {
      // Not a product, which would let a NaN among the padding through.
      const std::int64_t parts = rows.size(0) / sequences.admissible.size(0);
      const torch::Tensor padding = sequences.admissible.logical_not().repeat({parts, 1});
      rows = rows.masked_fill(padding.unsqueeze(-1), 0.0);
    }
    const std::int64_t groups = weight.size(0) / weight.size(1);
    return at::conv1d(rows.transpose(1, 2), weight, bias, /*stride=*/1,
                      /*padding=*/(weight.size(2) - 1) / 2, /*dilation=*/1, groups)
        .transpose(1, 2);
  };
  return hidden + at::gelu(layout.over_sequences({hidden}, convolve));
}

}  // namespace tupelo

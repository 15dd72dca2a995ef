// Which tokens of a batch form a sequence: one per row with padding behind it, or several documents
// packed into a row. Attention, positions and convolutions stay inside a sequence.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tupelo {

// Sequences of similar length as one padded batch of their own.
struct SequenceBatch {
  torch::Tensor tokens;      // [S,t] int64: where each token stands in the flattened batch [B*T];
                             // padding names any token. Undefined: the batch as it is.
  torch::Tensor admissible;  // [S,t] bool, false for padding; undefined: no padding
  std::int64_t longest = 0;  // t
};

class TokenLayout {
 public:
  // Every row is a sequence; attention_mask [B,T] bool or undefined (no padding).
  static TokenLayout rows(const torch::Tensor& input_ids, const torch::Tensor& attention_mask);
  // documents [B,T] int64: equal numbers >= 0 side by side in a row are a document, negative is
  // padding, anywhere. No position of another document is ever seen. Worked out on the host: a
  // layout for a device, whose tensors it then holds, waits for none when `documents` are there.
  static TokenLayout packed(const torch::Tensor& documents, torch::Device device);
  static TokenLayout packed(const torch::Tensor& documents) {
    return packed(documents, documents.device());
  }

  std::int64_t longest() const { return longest_; }
  // Whether every row is known to be a sequence of T real tokens: there is no mask at all.
  bool has_full_rows() const { return !real_.defined(); }
  // [B,T] int64, counted from 0 within each sequence; undefined for rows(): the column.
  const torch::Tensor& positions() const { return positions_; }
  // [B,T] bool; undefined: every token is real.
  const torch::Tensor& real() const { return real_; }

  // `inputs` [C*B,T,...] cut into sequences [C*S,t,...] for every SequenceBatch, `map` applied, and
  // its results [C*S,t,...] put back where the tokens were; padding gets zeros when rows are cut.
  // C is 1, or 2 for complex hidden states.
  using Map = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs,
                                          const SequenceBatch& sequences)>;
  torch::Tensor over_sequences(const std::vector<torch::Tensor>& inputs, const Map& map) const;

 private:
  explicit TokenLayout(std::int64_t longest) : longest_(longest) {}

  std::int64_t longest_;
  torch::Tensor positions_;
  torch::Tensor real_;
  std::vector<SequenceBatch> batches_;
  torch::Tensor kept_;   // packed: [K] int64, results that are no padding, batches end to end
  torch::Tensor place_;  // packed: [K] int64, where each belongs in [B*T]
};

}  // namespace tupelo

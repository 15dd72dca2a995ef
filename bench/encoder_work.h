// The work and the memory of a RoBERTa, by shape alone: what step_model.h computes with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/step_model.h"

namespace tupelo::bench {

struct EncoderShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t vocab = 50265;        // RoBERTa's
  std::int64_t position_rows = 514;  // of the learned table; 0: none
};

// base, large: RoBERTa's (https://arxiv.org/abs/1907.11692). 1b: 24 layers of 2,048, the shape of
// Megatron-LM's BERT of 1.3 billion (https://arxiv.org/abs/1909.08053). Throws
// std::invalid_argument that lists them.
EncoderShape named_shape(const std::string& name);

// Tied word embeddings count once.
double parameter_count(const EncoderShape& shape);

// A batch as a rank sees it in one forward pass.
struct MicroBatch {
  double rows = 0;
  double tokens_per_row = 0;
  double masked_fraction = 0.15;  // of tokens: those that the head looks at
};

// Multiplications and additions that a forward pass needs: 8 H^2 + 4 H I + 4 T H per layer and
// token, 2 H^2 + 2 H V per masked token. Norms, softmax and dropout do not count.
double forward_operations(const EncoderShape& shape, const MicroBatch& batch);

// Embeddings, encoder layers and head as predict_step() takes them. A layer's forward pass takes no
// less than `least_layer_seconds`, in which its kernels are launched.
std::vector<Layer> layers_of(const EncoderShape& shape, const MicroBatch& batch,
                             double operations_per_second, double least_layer_seconds);

struct Precision {
  bool half = false;  // parameters of 16 bits, with float32 masters
  double parameter_bytes() const { return half ? 2 : 4; }
};

// Bytes that a rank moves through its memory between backward and the next forward pass: gradients
// are set to zero, their norm is taken, AdamW updates this rank's share, masters are rounded.
double update_bytes(double parameters, const Precision& precision, int shards);

// Bytes of a rank: docs/precision.md.
double state_bytes(double parameters, const Precision& precision, int shards);
// What is kept for backward without recomputing, in fused attention kernels that keep no
// probabilities (docs/memory.md), and the head's logits in float32. An estimate: tupelo inspect
// --plan measures.
double activation_bytes(const EncoderShape& shape, const MicroBatch& batch,
                        const Precision& precision);

}  // namespace tupelo::bench

// What the position encodings of a model cost: parameters, work and memory, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/roberta.h"

namespace tupelo {

// One forward pass of a layer.
struct LayerShape {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t tokens = 0;  // T

  std::int64_t hidden_size() const { return heads * head_width; }
};

// Floating-point operations per token, multiply and add counted apart: the six linear maps, q k^T
// and P v of a layer without position encoding.
double plain_layer_flops(const LayerShape& shape);

// What the formula of the terms (model/position/attention_terms.h) adds to that for each token, an
// elementwise function counted as one operation.
double extra_layer_flops(const AttentionTerms& terms, const LayerShape& shape);

// Operations that a layer spends on the terms' relative_rows, whatever the number of sequences.
double relative_row_flops(const AttentionTerms& terms, const LayerShape& shape);

// Bytes in float32 that attention on a path keeps for backward per sequence, beyond what it keeps
// on `plain_path` without encoding. What all sequences share, such as the bias, is not among them.
std::int64_t extra_kept_bytes(const AttentionTerms& terms, const LayerShape& shape,
                              AttentionPath path, AttentionPath plain_path);

struct PathCost {
  AttentionPath path = AttentionPath::kOwn;
  std::int64_t kept_bytes = 0;  // extra_kept_bytes
};

struct PlanLayer {
  std::string encoding = "none";  // as in a plan: "tupe-r(rel_bins=16)"
  std::int64_t group = -1;        // -1: without encoding
  std::int64_t parameters = 0;    // of the group, in its first layer; 0 in the others
  double extra_flops = 0;         // per token and forward pass
  double shared_flops = 0;  // once per step for all sequences: the group's terms (in its first
                            // layer) and relative rows
  PathCost cpu, cuda;
};

struct PlanReport {
  std::int64_t tokens = 0;
  double layer_flops = 0;  // plain_layer_flops
  std::vector<PlanLayer> layers;
  std::string input;  // encoding at the input
  std::int64_t input_parameters = 0;
  std::string mask_decoder;
  std::int64_t mask_decoder_parameters = 0;
  std::int64_t position_parameters = 0;  // of the whole model, each counted once
  std::int64_t parameters = 0;           // of the whole model, positions included
};

// For sequences of `tokens` tokens; `padding` says whether batches have some. Throws
// std::invalid_argument when an encoding does not cover so many.
PlanReport plan_report(const RobertaForMaskedLm& model, std::int64_t tokens, bool padding);

}  // namespace tupelo

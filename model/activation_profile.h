// What a training step keeps for backward, part by part, and what a recompute policy makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/recompute_policy.h"

namespace tupelo {

// One half of a layer, or another part of a model, for one micro-batch.
struct PartActivations {
  std::int64_t kept_bytes = 0;       // from forward until its backward
  std::int64_t working_bytes = 0;    // beyond that while its backward runs
  std::int64_t parameter_bytes = 0;  // gradients that leave together when it is recomputed
  double flops = 0;                  // of its forward pass
};

struct LayerActivations {
  std::int64_t group = -1;        // of the position plan; -1: without encoding
  std::int64_t applications = 1;  // times per forward pass; more under a mask decoder
  std::int64_t input_bytes = 0;   // the hidden state, kept by every policy, and a half's input too
  PartActivations attention, feed_forward;  // each with its input among what it keeps
};

// Tensors of a position group that its layers share, once per step whatever the rows.
struct SharedTerms {
  std::int64_t kept_bytes = 0;      // what attention that is not recomputed holds on to
  std::int64_t captured_bytes = 0;  // what attention that is recomputed does
};

// Of one micro-batch on one device in one type; model/activation_probe.h measures it.
struct ActivationProfile {
  PartActivations embeddings, head;  // head: losses, and what follows the last layer
  std::int64_t mask_decoder_bytes = 0;
  std::int64_t replay_bytes = 0;      // generator state of each recomputed segment
  std::int64_t word_table_bytes = 0;  // its gradient waits from the head to the embeddings
  std::vector<LayerActivations> layers;
  std::vector<SharedTerms> groups;
  SharedTerms plain;  // of the layers without encoding
};

struct ActivationForecast {
  std::int64_t kept_bytes = 0;  // by the whole step at the end of the forward pass
  // The most that it needs at once beyond parameters, their gradients and the optimizer: what is
  // kept, recomputed segments, gradients of activations on their way.
  std::int64_t peak_bytes = 0;
  double recomputed_flops = 0;
  std::int64_t shared_bytes = 0;                                  // position terms, of kept_bytes
  std::vector<std::int64_t> attention_bytes, feed_forward_bytes;  // of kept_bytes, per layer
};

// `layers`: one entry per layer of the profile.
ActivationForecast forecast(const ActivationProfile& profile,
                            const std::vector<Recomputed>& layers);

// The policy with the least recomputed work whose forecast's peak_bytes are at most `budget_bytes`
// (of more than 4096 sensible ways to begin, every few are followed); a pure function. Throws
// std::invalid_argument, saying what recompute=full needs, when there is none.
std::vector<Recomputed> choose_recompute(const ActivationProfile& profile,
                                         std::int64_t budget_bytes);

// "6.50 GiB", "812 bytes".
std::string bytes_text(std::int64_t bytes);

}  // namespace tupelo

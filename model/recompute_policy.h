// What each layer computes again in backward instead of keeping it, as users write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tupelo {

// The part of a layer that keeps only its input.
enum class Recomputed { kNothing, kAttention, kFeedForward, kLayer };

bool recomputes_attention(Recomputed part);
bool recomputes_feed_forward(Recomputed part);

struct RecomputePolicy {
  std::vector<Recomputed> layers;  // one per layer; all kNothing while there is a budget
  // "auto:BYTES": the layers are yet to be chosen (model/activation_profile.h) so that what a step
  // keeps stays within so many bytes.
  std::optional<std::int64_t> budget_bytes;

  // The shortest text that parse_recompute reads back: "none", "full", "attention", "ffn",
  // "0-3:attention,4-7:full", "auto:6442450944".
  std::string to_string() const;
};

// none | full | attention | ffn | every-K | auto:BYTES | "0-3:attention,4-7:full,8:ffn".
//   full (also all), attention, ffn   in every layer: the whole of it, or one half
//   every-K      layers K-1, 2K-1, ... in full
//   auto:BYTES   a number, with B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB behind it
//   a list       sets of layers (model/layer_set.h), each with ":full", ":attention", ":ffn" or
//                ":none"; without any, full. Layers that are not named keep everything.
// Throws std::invalid_argument with the text at fault and what is valid; `setting` says in the
// message whose value it is.
RecomputePolicy parse_recompute(const std::string& text, std::int64_t layers,
                                const std::string& setting);

}  // namespace tupelo

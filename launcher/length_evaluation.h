// Held-out quality of a model by the length of its rows, beyond the trained one as well.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/evaluation.h"
#include "launcher/saved_model.h"

namespace tupelo {

struct LengthSettings {
  std::vector<std::int64_t> lengths;  // as given
  // For rows of more than model.max-positions tokens; shorter ones get the model as it is.
  LengthExtension extension;
  std::string logn;  // "": the model's own
};

// The options that length_settings() reads.
std::vector<VerbOption> length_options();

// Throws std::invalid_argument that names the option at fault, and for options that lack --lengths.
LengthSettings length_settings(const CommandLine& line);

struct LengthResult {
  std::int64_t length = 0;
  bool extended = false;
  Evaluation evaluation;
  double entropy = 0;           // of attention, nats: over layers, heads and real queries
  double relative_entropy = 0;  // to ln n, for n tokens
};

// The model for rows of more than model.max-positions tokens: the same weights under `settings`.
// Throws std::invalid_argument for settings that cannot do anything, and for a length that the
// model does not cover, naming what would make it.
std::shared_ptr<RobertaForMaskedLm> extended_model(const SavedModel& saved,
                                                   const LengthSettings& settings,
                                                   torch::Device device);

// Every length has the corpus cut into rows of its own; with max_rows there are so many of the
// shortest, and of longer ones as many as have the same number of tokens. Collective.
std::vector<LengthResult> evaluate_lengths(const SavedModel& saved, RobertaForMaskedLm& extended,
                                           const ShardedCorpus& corpus,
                                           const std::vector<std::int64_t>& lengths,
                                           std::int64_t max_rows, torch::Device device,
                                           Communicator& communicator);

std::string length_table(const std::vector<LengthResult>& results);
nlohmann::ordered_json length_json(const LengthSettings& settings,
                                   const std::vector<LengthResult>& results);

}  // namespace tupelo

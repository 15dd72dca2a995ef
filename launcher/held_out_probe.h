// What attention is made of on a few held-out rows that never change.
#pragma once

#include <torch/types.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "model/attention_probe.h"

namespace tupelo {

struct HeldOutProbe {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;             // real ones
  std::int64_t longest_sequence = 0;   // distances up to one less occur, in both directions
  std::vector<std::string> encodings;  // of the layers, as in a plan
  std::vector<LayerProbe> layers;
  std::vector<GroupProbe> groups;  // for rows of data.sequence_length tokens
};

// In evaluation mode and without gradients, on data.micro_batch rows spread evenly over the split.
// Leaves the model as it was, random generators included. Throws CorpusError when there is no row.
HeldOutProbe probe_held_out(RobertaForMaskedLm& model, const ShardedCorpus& corpus,
                            const DataOptions& data, torch::Device device);

// Norms as in position_gradient_norms(), of the loss per masked token of the same rows, in
// evaluation mode. Overwrites the parameters' gradients.
std::map<std::string, double> held_out_gradient_norms(RobertaForMaskedLm& model,
                                                      const ShardedCorpus& corpus,
                                                      const DataOptions& data,
                                                      torch::Device device);

// Everything but the pictures.
nlohmann::ordered_json probe_json(const HeldOutProbe& probe);

}  // namespace tupelo

// A new run that starts from the weights of another one, with position tables for another length
// when asked to.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoints/safetensors.h"
#include "launcher/command_line.h"
#include "launcher/run_config.h"
#include "launcher/run_state.h"
#include "launcher/settings.h"
#include "model/roberta.h"

namespace tupelo {

class Communicator;
class Console;

// The options of a command that are about initial weights.
std::vector<VerbOption> initial_weights_options();

// Throws std::invalid_argument when such options are given without --init-from.
void check_initial_weights_options(const CommandLine& line);

class InitialWeights {
 public:
  // Rank 0 reads the checkpoint that --init-from names ("RUN" or one of its checkpoints), the
  // others learn what it says, without tensors. Collective; errors are met by all ranks alike.
  static InitialWeights load(const CommandLine& line, Communicator& communicator, Console& console);

  const std::string& tokenizer_fingerprint() const { return state_.tokenizer_fingerprint; }
  // The model settings of that run.
  InheritedSettings settings() const;

  // Makes the settings those of a model for --extend positions: model.max-positions, and whatever
  // would otherwise follow it away from what the weights were trained with. Throws
  // std::invalid_argument when the length asks for a --extend-policy or --positions that is not
  // given.
  void extend(ConfigBuilder& builder) const;

  // On rank 0: puts the weights into a model of the extended settings, its position tables
  // rewritten. A sentence-order head that only one of the models has does not matter. Throws
  // std::invalid_argument when a parameter does not fit.
  void load_into(RobertaForMaskedLm& model);

  // For people: "step 12 of runs/a/checkpoints/..., 2 tables resized".
  std::string summary() const;
  nlohmann::ordered_json description() const;

 private:
  std::string checkpoint_;  // folder
  std::string weights_;     // one of weights_names()
  RunState state_;
  RunConfig config_;
  NamedTensors tensors_;     // rank 0
  std::int64_t length_ = 0;  // of --extend; 0: as it was
  LengthExtension extension_;
  std::vector<std::string> resized_;  // parameters, once loaded
  // "new" when only this run has one, "left out" when only the other one had, once loaded.
  std::string sentence_order_head_;
};

}  // namespace tupelo

// How weights are updated: the rows of [optim].
#include <algorithm>
#include <string>
#include <vector>

#include "launcher/config_entry_kinds.h"
#include "optim/cooldown.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace tupelo {
namespace {

// "adamw: torch, fairseq; lamb: corrected, fairseq".
std::string flavours_text() {
  std::string text;
  for (const std::string& optimizer : optimizer_names()) {
    text += (text.empty() ? "" : "; ") + optimizer;
    std::string separator = ": ";
    for (const std::string& flavour : optimizer_flavours(optimizer)) {
      text += separator + flavour;
      separator = ", ";
    }
  }
  return text;
}

std::vector<std::string> flavour_words() {
  std::vector<std::string> valid = {kDefaultFlavour};
  for (const std::string& optimizer : optimizer_names()) {
    for (const std::string& flavour : optimizer_flavours(optimizer)) {
      if (std::find(valid.begin(), valid.end(), flavour) == valid.end()) valid.push_back(flavour);
    }
  }
  return valid;
}

// The default prints as what it stands for: what a run followed stays readable in its files.
ConfigEntry flavour_entry() {
  ConfigEntry entry = choice<>(
      "optim.flavour", [](auto& c) -> auto& { return c.optim.optimizer.flavour; },
      words(flavour_words()), "whose convention, the first unless set; " + flavours_text());
  entry.get = [](const RunConfig& config) {
    const OptimizerOptions& optimizer = config.optim.optimizer;
    return optimizer.flavour == kDefaultFlavour ? optimizer_flavours(optimizer.name).front()
                                                : optimizer.flavour;
  };
  return entry;
}

}  // namespace

std::vector<ConfigEntry> optim_entries() {
  return {
      choice<>(
          "optim.optimizer", [](auto& c) -> auto& { return c.optim.optimizer.name; },
          words(optimizer_names()), "update rule"),
      flavour_entry(),
      number(
          "optim.learning-rate", [](auto& c) -> auto& { return c.optim.schedule.peak; }, 0, 1e6,
          "peak learning rate"),
      ConfigEntry{"optim.adamw-learning-rate", "",
                  "peak learning rate of what muon leaves to AdamW: embeddings, heads, norms, "
                  "biases and positions; auto: as optim.learning-rate",
                  [](RunConfig& config, const std::string& value) {
                    if (value != "auto") parse_number(value, 0, 1e6);
                    config.optim.adamw_learning_rate = value;
                  },
                  [](const RunConfig& config) { return config.optim.adamw_learning_rate; }},
      choice<>(
          "optim.lr-scaling", [](auto& c) -> auto& { return c.optim.lr_scaling; },
          words({"none", "linear", "sqrt"}),
          "how learning rates grow with train.global-batch / optim.lr-reference-batch"),
      integer(
          "optim.lr-reference-batch", [](auto& c) -> auto& { return c.optim.lr_reference_batch; },
          0, 1 << 24, "global batch that the learning rates are given for, with lr-scaling"),
      number(
          "optim.layer-decay", [](auto& c) -> auto& { return c.optim.layer_decay; }, 1e-6, 1,
          "learning rate of a layer, relative to the layer above; the heads' is whole, that of "
          "embeddings the smallest"),
      number(
          "optim.end-learning-rate", [](auto& c) -> auto& { return c.optim.schedule.end; }, 0, 1e6,
          "rate at the last step (polynomial schedules, wsd, cool-down)"),
      number(
          "optim.power", [](auto& c) -> auto& { return c.optim.schedule.power; }, 0, 100,
          "exponent of the polynomial schedule"),
      choice<>(
          "optim.schedule", [](auto& c) -> auto& { return c.optim.schedule.name; },
          words(schedule_names()), "how the rate falls after warm-up"),
      text(
          "optim.decay-steps", [](auto& c) -> auto& { return c.optim.decay_steps; },
          "schedule wsd: last steps in which the rate falls, or their share of train.steps"),
      choice<>(
          "optim.decay-shape", [](auto& c) -> auto& { return c.optim.decay_shape; },
          words(decay_shapes()), "how it falls in wsd and in a cool-down"),
      text(
          "optim.cooldown", [](auto& c) -> auto& { return c.optim.cooldown; },
          "with any other schedule: last steps of the run, or their share of it, in which the rate "
          "falls from where it is (docs/optimizers.md); 0 = none"),
      text(
          "optim.warmup", [](auto& c) -> auto& { return c.optim.warmup; },
          "linear warm-up, in steps (\"2000\") or as a share of train.steps (\"6%\")"),
      number(
          "optim.weight-decay", [](auto& c) -> auto& { return c.optim.weight_decay; }, 0, 100,
          "decoupled decay of matrices and word embeddings"),
      number(
          "optim.beta1", [](auto& c) -> auto& { return c.optim.optimizer.beta1; }, 0, 0.9999999,
          "decay of the first moment"),
      number(
          "optim.beta2", [](auto& c) -> auto& { return c.optim.optimizer.beta2; }, 0, 0.9999999,
          "decay of the second moment"),
      number(
          "optim.momentum", [](auto& c) -> auto& { return c.optim.optimizer.momentum; }, 0,
          0.9999999, "muon: decay of the momentum of hidden matrices"),
      number(
          "optim.epsilon", [](auto& c) -> auto& { return c.optim.optimizer.epsilon; }, 1e-30, 1,
          "added to the root of the second moment"),
      number(
          "optim.clip-norm", [](auto& c) -> auto& { return c.optim.clip_norm; }, 0, kHuge,
          "largest global gradient norm; 0 = do not clip"),
      ConfigEntry{"optim.position-lr-multiplier", "",
                  "learning rate of position parameters, relative to the others; auto: 0.2 for "
                  "tupe-full, 1 for the rest",
                  [](RunConfig& config, const std::string& value) {
                    if (value != "auto") parse_number(value, 0, 1e6);
                    config.optim.position_lr_multiplier = value;
                  },
                  [](const RunConfig& config) { return config.optim.position_lr_multiplier; }},
      number(
          "optim.position-weight-decay",
          [](auto& c) -> auto& { return c.optim.position_weight_decay; }, 0, 100,
          "decay of position tables and projections"),
      ConfigEntry{"optim.position-frozen-steps", "",
                  "first steps in which position parameters stay as they are, also in epochs "
                  "(\"2e\", \"0.5 epochs\")",
                  [](RunConfig& config, const std::string& value) {
                    parse_duration(value);
                    config.optim.position_frozen_steps = value;
                  },
                  [](const RunConfig& config) { return config.optim.position_frozen_steps; }},
      choice<>(
          "optim.positions", [](auto& c) -> auto& { return c.optim.positions; },
          words({"update", "freeze", "truncate"}),
          "position parameters: trained, untouched in the whole run, or trained after --extend cut "
          "them",
          "positions"),
  };
}

}  // namespace tupelo

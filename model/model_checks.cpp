#include "model/model_checks.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/position/spelling.h"

namespace tupelo {
namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument("model: " + what); }

void check_at_least(const char* name, std::int64_t value, std::int64_t minimum) {
  if (value < minimum) {
    reject(std::string(name) + "=" + std::to_string(value) + " must be at least " +
           std::to_string(minimum));
  }
}

void check_dropout(const char* name, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    reject(std::string(name) + "=" + std::to_string(value) + " must be in [0, 1)");
  }
}

LengthTemperature parse_temperature(const std::string& name) {
  const std::vector<std::string> names = {"off", "plain", "clip16", "max1"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    reject("logn=" + name + " is not valid" + spelling_hint(name, names) +
           "; valid: " + comma_separated(names));
  }
  constexpr LengthTemperature kKinds[] = {LengthTemperature::kOff, LengthTemperature::kPlain,
                                          LengthTemperature::kAtLeast16,
                                          LengthTemperature::kAtLeastOne};
  return kKinds[found - names.begin()];
}

// ln 1 = 0 would divide the scores.
void check_temperature_length(const ModelOptions& options) {
  const std::int64_t length = temperature_length(options);
  if (options.logn != "off" && length < 2) {
    reject("logn-length=" + std::to_string(length) + " must be at least 2, or 0 for max-positions");
  }
}

}  // namespace

void check_sizes(const ModelOptions& options) {
  check_at_least("vocab-size", options.vocab_size, 1);
  check_at_least("hidden-size", options.hidden_size, 1);
  check_at_least("layers", options.layers, 1);
  check_at_least("heads", options.heads, 1);
  check_at_least("intermediate-size", options.intermediate_size, 1);
  check_at_least("max-positions", options.max_positions, 1);
  check_dropout("dropout", options.dropout);
  check_dropout("attention-dropout", options.attention_dropout);
  if (options.hidden_size % options.heads != 0) {
    reject("heads=" + std::to_string(options.heads) +
           " must divide hidden-size=" + std::to_string(options.hidden_size));
  }
  if (options.pad_id < 0 || options.pad_id >= options.vocab_size) {
    reject("pad_id=" + std::to_string(options.pad_id) + " must be an id of the vocabulary, 0 to " +
           std::to_string(options.vocab_size - 1));
  }
  if (!(options.layer_norm_epsilon > 0.0) || !(options.initializer_range > 0.0)) {
    reject("layer-norm-epsilon and initializer-range must be positive");
  }
}

void check_some_position(const ModelOptions& options, const InputPosition& input,
                         const PositionPlan& plan) {
  const bool none = input.name == "none" && plan.groups.empty() && options.mask_decoder == "none";
  if (none && !options.allow_no_position) {
    reject(
        "no position information anywhere: input-position is none and so is every layer of"
        " position, so word order could not matter; set either, or allow-no-position");
  }
}

// Complex heads are twice as wide as those that encodings make their terms for.
void check_complex(const ModelOptions& options, ComplexScores scores, const PositionPlan& plan) {
  const bool alone = plan.groups.empty() && options.mask_decoder == "none";
  if (scores != ComplexScores::kNone && !alone) {
    reject(
        "input-position=" + options.input_position +
        " makes all hidden states complex and cannot be combined with other encodings: position=" +
        plan.to_string() + ", mask-decoder=" + options.mask_decoder +
        "; valid beside it: all:none and none");
  }
}

std::int64_t temperature_length(const ModelOptions& options) {
  return options.logn_length > 0 ? options.logn_length : options.max_positions;
}

LengthTemperature checked_temperature(const ModelOptions& options) {
  const LengthTemperature kind = parse_temperature(options.logn);
  check_temperature_length(options);
  return kind;
}

}  // namespace tupelo

#include "bench/encoder_work.h"

#include <algorithm>
#include <stdexcept>

namespace tupelo::bench {
namespace {

// A linear map: 2 operations for each weight and row.
Operation linear(std::int64_t in, std::int64_t out, double rows, double operations_per_second) {
  const double work = 2.0 * static_cast<double>(in) * static_cast<double>(out) * rows;
  return {work / operations_per_second, {in * out, out}};
}

Operation norm(std::int64_t width) { return {0, {width, width}}; }

Layer embeddings(const EncoderShape& shape) {
  // The word table last in backward: the head's part of its gradient is there from the beginning.
  Operation tables{0, {shape.vocab * shape.hidden}};
  if (shape.position_rows > 0) tables.parameters.push_back(shape.position_rows * shape.hidden);
  tables.parameters.push_back(shape.hidden);  // token type
  return {{tables, norm(shape.hidden)}};
}

Layer encoder_layer(const EncoderShape& shape, const MicroBatch& batch, double speed) {
  const double tokens = batch.rows * batch.tokens_per_row;
  const double mixing = 4 * batch.tokens_per_row * static_cast<double>(shape.hidden) * tokens;
  const Operation projection = linear(shape.hidden, shape.hidden, tokens, speed);
  return {{projection,
           projection,
           projection,
           {mixing / speed, {}},
           projection,
           norm(shape.hidden),
           linear(shape.hidden, shape.intermediate, tokens, speed),
           linear(shape.intermediate, shape.hidden, tokens, speed),
           norm(shape.hidden)}};
}

Layer head(const EncoderShape& shape, const MicroBatch& batch, double speed) {
  const double masked = batch.rows * batch.tokens_per_row * batch.masked_fraction;
  Operation decoder = linear(shape.hidden, shape.vocab, masked, speed);
  decoder.parameters = {shape.vocab};  // its weights are the word table
  return {{linear(shape.hidden, shape.hidden, masked, speed), norm(shape.hidden), decoder}};
}

double forward_seconds(const Layer& layer) {
  double seconds = 0;
  for (const Operation& operation : layer.operations) seconds += operation.forward_seconds;
  return seconds;
}

void take_at_least(Layer& layer, double seconds) {
  const double now = forward_seconds(layer);
  if (now >= seconds) return;
  for (Operation& operation : layer.operations) {
    operation.forward_seconds = now > 0 ? operation.forward_seconds * seconds / now
                                        : seconds / static_cast<double>(layer.operations.size());
  }
}

}  // namespace

EncoderShape named_shape(const std::string& name) {
  if (name == "base") return {name, 12, 768, 3072};
  if (name == "large") return {name, 24, 1024, 4096};
  if (name == "1b") return {name, 24, 2048, 8192};
  throw std::invalid_argument("there is no model '" + name + "'; valid are base, large, 1b");
}

double parameter_count(const EncoderShape& shape) {
  double count = 0;
  for (const Layer& layer : layers_of(shape, {}, 1, 0)) {
    for (const Operation& operation : layer.operations) {
      for (const std::int64_t elements : operation.parameters) {
        count += static_cast<double>(elements);
      }
    }
  }
  return count;
}

double forward_operations(const EncoderShape& shape, const MicroBatch& batch) {
  double seconds = 0;
  for (const Layer& layer : layers_of(shape, batch, 1, 0)) seconds += forward_seconds(layer);
  return seconds;
}

std::vector<Layer> layers_of(const EncoderShape& shape, const MicroBatch& batch,
                             double operations_per_second, double least_layer_seconds) {
  std::vector<Layer> layers{embeddings(shape)};
  const Layer one = encoder_layer(shape, batch, operations_per_second);
  layers.insert(layers.end(), static_cast<std::size_t>(shape.layers), one);
  layers.push_back(head(shape, batch, operations_per_second));
  for (std::size_t i = 1; i < layers.size(); ++i) take_at_least(layers[i], least_layer_seconds);
  return layers;
}

double update_bytes(double parameters, const Precision& precision, int shards) {
  const double share = parameters / shards;
  const double zeroed = 4 * parameters;
  const double norm = 4 * share;
  const double adamw = (4 + 2 * 3 * 4) * share;  // gradient; weights and two moments both ways
  const double rounded = precision.half ? (4 + 2) * share : 0;
  return zeroed + norm + adamw + rounded;
}

double state_bytes(double parameters, const Precision& precision, int shards) {
  const double gradients = 4;
  const double shared = (precision.half ? 4 : 0) + 8;  // masters, two moments
  return parameters * (precision.parameter_bytes() + gradients + shared / shards);
}

double activation_bytes(const EncoderShape& shape, const MicroBatch& batch,
                        const Precision& precision) {
  const double tokens = batch.rows * batch.tokens_per_row;
  const auto hidden = static_cast<double>(shape.hidden);
  const auto intermediate = static_cast<double>(shape.intermediate);
  const double of_layers = static_cast<double>(shape.layers) * tokens *
                           (8 * hidden + 2 * intermediate) * precision.parameter_bytes();
  const double logits = tokens * batch.masked_fraction * static_cast<double>(shape.vocab) * 4;
  return of_layers + logits;
}

}  // namespace tupelo::bench

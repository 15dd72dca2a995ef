#include "model/embeddings.h"

#include <stdexcept>
#include <vector>

#include "model/dropout.h"
#include "model/position/option_reader.h"
#include "model/position/spelling.h"

namespace tupelo {
namespace {

SinusoidLayout parse_layout(const std::string& options_text) {
  const std::vector<PositionOptionKind> kinds = {
      {"layout", "interleaved", {"interleaved", "concat", "t2t"}, "order of sines and cosines"}};
  PositionOptions given;
  if (!options_text.empty()) {
    const std::size_t equals = options_text.find('=');
    given.emplace_back(options_text.substr(0, equals),
                       equals == std::string::npos ? "" : options_text.substr(equals + 1));
  }
  const std::string layout = OptionReader("sinusoidal", kinds, given).text("layout");
  return layout == "t2t"
             ? SinusoidLayout::kTensor2Tensor
             : (layout == "concat" ? SinusoidLayout::kConcat : SinusoidLayout::kInterleaved);
}

}  // namespace

InputPosition InputPosition::parse(const std::string& text) {
  const std::size_t open = text.find('(');
  const std::string name = text.substr(0, open);
  const std::vector<std::string> names = {"none", "learned", "sinusoidal"};
  InputPosition position;
  if (name == "sinusoidal" && (open == std::string::npos || text.back() == ')')) {
    position.kind = Kind::kSinusoidal;
    position.layout = parse_layout(
        open == std::string::npos ? "" : text.substr(open + 1, text.size() - open - 2));
    return position;
  }
  if (text == "learned") {
    position.kind = Kind::kLearned;
  } else if (text != "none") {
    throw std::invalid_argument("input position: '" + text + "' is not valid" +
                                spelling_hint(name, names) +
                                "; valid: none, learned, sinusoidal, sinusoidal(layout=...)");
  }
  return position;
}

Embeddings::Embeddings(const EmbeddingsOptions& options) : options_(options) {
  const std::int64_t hidden = options.hidden_size, pad = options.pad_id;
  words_ = register_module("word_embeddings",
                           std::make_shared<Embedding>(options.vocab_size, hidden, pad));
  if (options.position.kind == InputPosition::Kind::kLearned) {
    positions_ =
        register_module("position_embeddings",
                        std::make_shared<Embedding>(options.max_positions + pad + 1, hidden, pad));
  }
  token_types_ = register_module("token_type_embeddings", std::make_shared<Embedding>(1, hidden));
  norm_ =
      register_module("LayerNorm", std::make_shared<LayerNorm>(hidden, options.layer_norm_epsilon));
}

void Embeddings::initialize(double standard_deviation, std::uint64_t seed) {
  const auto initialize_table = [&](Embedding& table, const std::string& name) {
    table.initialize(standard_deviation, initial_value_generator(seed, name));
  };
  initialize_table(*words_, "word_embeddings");
  initialize_table(*token_types_, "token_type_embeddings");
  if (positions_) {
    initialize_table(*positions_, "position_embeddings");
  }
  norm_->initialize();
}

torch::Tensor Embeddings::forward(const torch::Tensor& input_ids) {
  torch::Tensor sum = words_->forward(input_ids) + token_types_->weight[0];
  if (positions_) {
    sum = sum + learned_positions(input_ids);
  } else if (options_.position.kind == InputPosition::Kind::kSinusoidal) {
    sum = sum + sinusoids(input_ids.size(1));
  }
  return dropout(norm_->forward(sum), is_training() ? options_.dropout : 0.0);
}

torch::Tensor Embeddings::learned_positions(const torch::Tensor& input_ids) const {
  if (input_ids.size(1) > options_.max_positions) {
    throw std::invalid_argument("input position learned: a sequence of " +
                                std::to_string(input_ids.size(1)) + " tokens is longer than the " +
                                std::to_string(options_.max_positions) +
                                " positions that the model covers");
  }
  // Padding stays on row pad_id, tokens start one row after it.
  const torch::Tensor real = input_ids.ne(options_.pad_id).to(torch::kInt64);
  return positions_->forward(real.cumsum(1).mul_(real).add_(options_.pad_id));
}

torch::Tensor Embeddings::sinusoids(std::int64_t tokens) {
  const torch::Tensor& like = words_->weight;
  const bool current = sinusoids_.defined() && sinusoids_.size(0) >= tokens &&
                       sinusoids_.scalar_type() == like.scalar_type() &&
                       sinusoids_.device() == like.device();
  if (!current) {
    sinusoids_ = sinusoidal_table(torch::arange(tokens, torch::kInt64), options_.hidden_size,
                                  options_.position.layout)
                     .to(like.device(), like.scalar_type());
  }
  return sinusoids_.narrow(0, 0, tokens);
}

}  // namespace tupelo

#include "model/roberta.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "model/embeddings.h"
#include "model/encoder.h"
#include "model/layer_set.h"
#include "model/masked_lm_head.h"
#include "model/position/position_plan.h"

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

void check_options(const ModelOptions& options) {
  check_at_least("vocab_size", options.vocab_size, 1);
  check_at_least("hidden_size", options.hidden_size, 1);
  check_at_least("layers", options.layers, 1);
  check_at_least("heads", options.heads, 1);
  check_at_least("intermediate_size", options.intermediate_size, 1);
  check_at_least("max_positions", options.max_positions, 1);
  check_dropout("dropout", options.dropout);
  check_dropout("attention_dropout", options.attention_dropout);
  if (options.hidden_size % options.heads != 0) {
    reject("heads=" + std::to_string(options.heads) +
           " must divide hidden_size=" + std::to_string(options.hidden_size));
  }
  if (options.pad_id < 0 || options.pad_id >= options.vocab_size) {
    reject("pad_id=" + std::to_string(options.pad_id) + " must be an id of the vocabulary, 0 to " +
           std::to_string(options.vocab_size - 1));
  }
  if (!(options.layer_norm_epsilon > 0.0) || !(options.initializer_range > 0.0)) {
    reject("layer_norm_epsilon and initializer_range must be positive");
  }
}

void check_some_position(const InputPosition& input, const PositionPlan& plan) {
  if (input.kind == InputPosition::Kind::kNone && plan.groups.empty()) {
    reject(
        "no position information anywhere: input_position is none and so is every layer of the"
        " position plan, so word order could not matter; set either");
  }
}

EmbeddingsOptions embeddings_options(const ModelOptions& options, const InputPosition& position) {
  return {options.vocab_size,
          options.hidden_size,
          options.max_positions,
          options.pad_id,
          options.dropout,
          options.layer_norm_epsilon,
          position};
}

EncoderOptions encoder_options(const ModelOptions& options) {
  EncoderOptions encoder;
  encoder.layers = options.layers;
  encoder.hidden_size = options.hidden_size;
  encoder.heads = options.heads;
  encoder.intermediate_size = options.intermediate_size;
  encoder.dropout = options.dropout;
  encoder.attention_dropout = options.attention_dropout;
  encoder.layer_norm_epsilon = options.layer_norm_epsilon;
  if (options.recompute != "none") {
    encoder.recomputed_layers = parse_layer_set(options.recompute, options.layers, "recompute");
  }
  return encoder;
}

struct PlaceInGroups {
  std::size_t group;
  std::string name;  // relative to the group's encoding
};

// Where the parameter of this full name belongs, when it is a position encoding's.
std::optional<PlaceInGroups> place_in_groups(const std::string& parameter) {
  const std::string prefix = "roberta.position.";
  if (parameter.rfind(prefix, 0) != 0) {
    return std::nullopt;
  }
  const std::size_t dot = parameter.find('.', prefix.size());
  return PlaceInGroups{std::stoul(parameter.substr(prefix.size(), dot - prefix.size())),
                       parameter.substr(dot + 1)};
}

}  // namespace

struct RobertaForMaskedLm::State {
  ModelOptions options;
  PositionPlan plan;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Encoder> encoder;
  std::vector<std::shared_ptr<PositionEncoding>> encodings;  // one per group
  std::shared_ptr<MaskedLmHead> head;
};

RobertaForMaskedLm::RobertaForMaskedLm(const ModelOptions& options)
    : state_(std::make_shared<State>()) {
  check_options(options);
  const InputPosition input = InputPosition::parse(options.input_position);
  State& state = *state_;
  state.options = options;
  state.plan = PositionPlan::parse(options.position, options.layers);
  check_some_position(input, state.plan);

  const auto roberta = register_module("roberta", std::make_shared<torch::nn::Module>("roberta"));
  state.embeddings = roberta->register_module(
      "embeddings", std::make_shared<Embeddings>(embeddings_options(options, input)));
  state.encoder =
      roberta->register_module("encoder", std::make_shared<Encoder>(encoder_options(options)));
  const auto position =
      roberta->register_module("position", std::make_shared<torch::nn::Module>("position"));
  const PositionContext context{options.heads, options.hidden_size / options.heads,
                                options.max_positions, options.layer_norm_epsilon};
  for (const PositionPlan::Group& group : state.plan.groups) {
    state.encodings.push_back(
        position->register_module(std::to_string(state.encodings.size()),
                                  make_position_encoding(group.encoding, context, group.options)));
  }
  state.head = register_module(
      "lm_head", std::make_shared<MaskedLmHead>(options.hidden_size, options.vocab_size,
                                                options.layer_norm_epsilon));
}

void RobertaForMaskedLm::initialize(std::uint64_t seed) {
  const double deviation = state_->options.initializer_range;
  state_->embeddings->initialize(deviation, seed);
  state_->encoder->initialize(deviation, seed);
  for (std::size_t i = 0; i < state_->encodings.size(); ++i) {
    state_->encodings[i]->initialize(
        deviation, initial_value_generator(seed, "position." + std::to_string(i)));
  }
  state_->head->initialize(deviation, seed);
}

torch::Tensor RobertaForMaskedLm::hidden_states(const torch::Tensor& input_ids,
                                                const torch::Tensor& attention_mask) {
  TORCH_CHECK(input_ids.dim() == 2, "input_ids must be [B,T]");
  const std::int64_t tokens = input_ids.size(1);
  std::vector<AttentionTerms> terms_of_group;
  for (const auto& encoding : state_->encodings) {
    terms_of_group.push_back(encoding->terms(tokens));
  }
  const AttentionTerms plain =
      plain_attention_terms(state_->options.hidden_size / state_->options.heads);
  std::vector<AttentionTerms> terms_of_layer;
  for (const std::int64_t group : state_->plan.group_of_layer) {
    terms_of_layer.push_back(group < 0 ? plain : terms_of_group[static_cast<std::size_t>(group)]);
  }
  const torch::Tensor admissible_keys =
      attention_mask.defined() ? attention_mask.to(torch::kBool) : attention_mask;
  return state_->encoder->forward(state_->embeddings->forward(input_ids), terms_of_layer,
                                  admissible_keys);
}

torch::Tensor RobertaForMaskedLm::logits(const torch::Tensor& hidden) {
  return state_->head->forward(hidden, state_->embeddings->word_table());
}

MaskedLmOutput RobertaForMaskedLm::masked_lm_loss(const torch::Tensor& input_ids,
                                                  const torch::Tensor& attention_mask,
                                                  const torch::Tensor& masked_positions,
                                                  const torch::Tensor& labels) {
  const torch::Tensor hidden = hidden_states(input_ids, attention_mask);              // [B,T,H]
  const torch::Tensor rows = hidden.flatten(0, 1).index_select(0, masked_positions);  // [M,H]
  const torch::Tensor scores = logits(rows);                                          // [M,V]
  const bool half = scores.scalar_type() == at::kHalf || scores.scalar_type() == at::kBFloat16;
  MaskedLmOutput output;
  output.loss_sum = at::cross_entropy_loss(half ? scores.to(at::kFloat) : scores, labels,
                                           /*weight=*/{}, at::Reduction::Sum);
  output.correct = scores.detach().argmax(-1).eq(labels).sum();
  return output;
}

const ModelOptions& RobertaForMaskedLm::options() const { return state_->options; }

std::string RobertaForMaskedLm::position_plan() const { return state_->plan.to_string(); }

RobertaForMaskedLm::ParameterRoles RobertaForMaskedLm::parameter_roles() const {
  ParameterRoles roles;
  for (const auto& parameter : named_parameters()) {
    const std::string& name = parameter.key();
    if (const auto place = place_in_groups(name)) {
      const auto undecayed = state_->encodings[place->group]->undecayed_parameters();
      const bool decays =
          std::find(undecayed.begin(), undecayed.end(), place->name) == undecayed.end();
      (decays ? roles.position_decayed : roles.position_undecayed).push_back(name);
    } else if (name == "roberta.embeddings.position_embeddings.weight") {
      roles.position_decayed.push_back(name);
    } else {
      (parameter.value().dim() > 1 ? roles.decayed : roles.undecayed).push_back(name);
    }
  }
  return roles;
}

double RobertaForMaskedLm::learning_rate_multiplier(const std::string& parameter) const {
  const auto place = place_in_groups(parameter);
  return place ? state_->encodings[place->group]->learning_rate_multiplier() : 1.0;
}

double RobertaForMaskedLm::position_learning_rate_multiplier() const {
  double smallest = 1.0;
  for (const auto& encoding : state_->encodings) {
    smallest = std::min(smallest, encoding->learning_rate_multiplier());
  }
  return smallest;
}

}  // namespace tupelo

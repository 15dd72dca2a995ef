#include "model/roberta.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/embeddings.h"
#include "model/encoder.h"
#include "model/mask_decoder.h"
#include "model/masked_lm_head.h"
#include "model/model_checks.h"
#include "model/position/position_plan.h"
#include "model/sentence_order_head.h"

namespace tupelo {
namespace {

EmbeddingsOptions embeddings_options(const ModelOptions& options, const InputPosition& position) {
  return {options.vocab_size, options.hidden_size, options.max_positions,
          options.pad_id,     options.dropout,     options.layer_norm_epsilon,
          position,           options.extension};
}

EncoderOptions encoder_options(const ModelOptions& options,
                               const std::vector<ContentBiases>& content_biases) {
  EncoderOptions encoder;
  encoder.layers = options.layers;
  encoder.hidden_size = options.hidden_size;
  encoder.heads = options.heads;
  encoder.intermediate_size = options.intermediate_size;
  encoder.dropout = options.dropout;
  encoder.attention_dropout = options.attention_dropout;
  encoder.layer_norm_epsilon = options.layer_norm_epsilon;
  encoder.content_biases = content_biases;
  encoder.recompute = parse_recompute(options.recompute, options.layers, "recompute").layers;
  return encoder;
}

PositionContext position_context(const ModelOptions& options,
                                 const std::vector<std::int64_t>& layers) {
  PositionContext context;
  context.heads = options.heads;
  context.head_width = options.hidden_size / options.heads;
  context.max_positions = options.max_positions;
  context.layer_norm_epsilon = options.layer_norm_epsilon;
  context.layers = static_cast<std::int64_t>(layers.size());
  context.extension = options.extension;
  return context;
}

const std::string kInputPrefix = "roberta.embeddings.position_embeddings.";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

// Cross entropy of scores [N,C], summed in float32 or wider, and how many are right.
std::pair<torch::Tensor, torch::Tensor> summed_loss(const torch::Tensor& scores,
                                                    const torch::Tensor& labels) {
  const bool half = scores.scalar_type() == at::kHalf || scores.scalar_type() == at::kBFloat16;
  return {at::cross_entropy_loss(half ? scores.to(at::kFloat) : scores, labels,
                                 /*weight=*/{}, at::Reduction::Sum),
          scores.detach().argmax(-1).eq(labels).sum()};
}

}  // namespace

struct RobertaForMaskedLm::State {
  ModelOptions options;
  PositionPlan plan;
  LengthTemperature temperature = LengthTemperature::kOff;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Encoder> encoder;
  std::vector<std::shared_ptr<PositionEncoding>> encodings;  // one per group
  std::shared_ptr<MaskDecoder> mask_decoder;                 // or nullptr
  std::shared_ptr<MaskedLmHead> head;
  std::shared_ptr<Pooler> pooler;  // or nullptr, both
  std::shared_ptr<SentenceOrderHead> sentence_order_head;
  AttentionObserver* observer = nullptr;
  std::function<void(std::int64_t)> gate;  // or none

  void enter(std::int64_t layer) const {
    if (gate) {
      gate(layer);
    }
  }

  ComplexScores complex_scores() const {
    return embeddings->position() ? embeddings->position()->complex_scores() : ComplexScores::kNone;
  }
};

RobertaForMaskedLm::RobertaForMaskedLm(const ModelOptions& options)
    : state_(std::make_shared<State>()) {
  check_sizes(options);
  const InputPosition input = InputPosition::parse(options.input_position);
  State& state = *state_;
  state.options = options;
  state.plan = PositionPlan::parse(options.position, options.layers);
  state.temperature = checked_temperature(options);
  check_some_position(options, input, state.plan);

  std::vector<ContentBiases> biases(static_cast<std::size_t>(options.layers));
  for (const PositionPlan::Group& group : state.plan.groups) {
    state.encodings.push_back(make_position_encoding(
        group.encoding, position_context(options, group.layers), group.options));
    for (const std::int64_t layer : group.layers) {
      biases[static_cast<std::size_t>(layer)] = state.encodings.back()->content_biases();
    }
  }
  const auto roberta = register_module("roberta", std::make_shared<torch::nn::Module>("roberta"));
  state.embeddings = roberta->register_module(
      "embeddings", std::make_shared<Embeddings>(embeddings_options(options, input)));
  state.encoder = roberta->register_module(
      "encoder", std::make_shared<Encoder>(encoder_options(options, biases)));
  const auto position =
      roberta->register_module("position", std::make_shared<torch::nn::Module>("position"));
  for (std::size_t i = 0; i < state.encodings.size(); ++i) {
    position->register_module(std::to_string(i), state.encodings[i]);
  }
  state.mask_decoder = MaskDecoder::make(options.mask_decoder, options.max_positions,
                                         options.hidden_size, options.extension);
  if (state.mask_decoder) {
    roberta->register_module("mask_decoder", state.mask_decoder);
  }
  state.head = register_module(
      "lm_head", std::make_shared<MaskedLmHead>(options.hidden_size, options.vocab_size,
                                                options.layer_norm_epsilon));
  if (options.sentence_order_head) {
    state.pooler =
        roberta->register_module("pooler", std::make_shared<Pooler>(options.hidden_size));
    state.sentence_order_head =
        register_module("sop_classifier", std::make_shared<SentenceOrderHead>(options.hidden_size));
  }
  check_complex(options, state.complex_scores(), state.plan);
}

void RobertaForMaskedLm::initialize(std::uint64_t seed) {
  const double deviation = state_->options.initializer_range;
  state_->embeddings->initialize(deviation, seed);
  state_->encoder->initialize(deviation, seed);
  for (std::size_t i = 0; i < state_->encodings.size(); ++i) {
    state_->encodings[i]->initialize(
        deviation, initial_value_generator(seed, "position." + std::to_string(i)));
  }
  if (state_->mask_decoder) {
    state_->mask_decoder->initialize(deviation, initial_value_generator(seed, "mask_decoder"));
  }
  state_->head->initialize(deviation, seed);
  if (state_->pooler) {
    state_->pooler->initialize(deviation, seed);
    state_->sentence_order_head->initialize(deviation, seed);
  }
}

std::vector<AttentionTerms> RobertaForMaskedLm::terms_of_layers(std::int64_t tokens) const {
  const State& state = *state_;
  std::vector<AttentionTerms> terms_of_layer(
      static_cast<std::size_t>(state.options.layers),
      plain_attention_terms(state.options.hidden_size / state.options.heads));
  for (std::size_t i = 0; i < state.encodings.size(); ++i) {
    const std::vector<std::int64_t>& layers = state.plan.groups[i].layers;
    const auto terms =
        state.encodings[i]->layer_terms(tokens, static_cast<std::int64_t>(layers.size()));
    for (std::size_t n = 0; n < layers.size(); ++n) {
      terms_of_layer[static_cast<std::size_t>(layers[n])] = terms[n];
    }
  }
  for (AttentionTerms& terms : terms_of_layer) {
    terms.temperature = state.temperature;
    terms.temperature_length = temperature_length(state.options);
    terms.complex_scores = state.complex_scores();
  }
  return terms_of_layer;
}

torch::Tensor RobertaForMaskedLm::hidden_states(const torch::Tensor& input_ids,
                                                const torch::Tensor& attention_mask) {
  TORCH_CHECK(input_ids.dim() == 2, "input_ids must be [B,T]");
  return hidden_states(input_ids, TokenLayout::rows(input_ids, attention_mask));
}

torch::Tensor RobertaForMaskedLm::hidden_states(const torch::Tensor& input_ids,
                                                const TokenLayout& layout) {
  State& state = *state_;
  state.enter(-1);
  const std::vector<AttentionTerms> terms_of_layer = terms_of_layers(layout.longest());
  const torch::Tensor hidden =
      state.encoder->forward(state.embeddings->forward(input_ids, layout), terms_of_layer, layout,
                             state.mask_decoder.get(), state.observer);
  state.enter(state.options.layers);
  const auto& position = state.embeddings->position();
  return position ? position->collapse(hidden) : hidden;
}

torch::Tensor RobertaForMaskedLm::logits(const torch::Tensor& hidden) {
  return state_->head->forward(hidden, state_->embeddings->word_table());
}

MaskedLmOutput RobertaForMaskedLm::masked_lm_loss(const torch::Tensor& input_ids,
                                                  const torch::Tensor& attention_mask,
                                                  const torch::Tensor& masked_positions,
                                                  const torch::Tensor& labels) {
  return masked_lm_loss(input_ids, TokenLayout::rows(input_ids, attention_mask), masked_positions,
                        labels);
}

MaskedLmOutput RobertaForMaskedLm::masked_lm_loss(const torch::Tensor& input_ids,
                                                  const TokenLayout& layout,
                                                  const torch::Tensor& masked_positions,
                                                  const torch::Tensor& labels) {
  return masked_lm_loss_of(hidden_states(input_ids, layout), masked_positions, labels);
}

MaskedLmOutput RobertaForMaskedLm::masked_lm_loss_of(const torch::Tensor& hidden,
                                                     const torch::Tensor& masked_positions,
                                                     const torch::Tensor& labels) {
  const torch::Tensor rows = hidden.flatten(0, 1).index_select(0, masked_positions);  // [M,H]
  const auto [loss_sum, correct] = summed_loss(logits(rows), labels);
  return {loss_sum, correct};
}

torch::Tensor RobertaForMaskedLm::sentence_order_logits(const torch::Tensor& first_tokens) {
  TORCH_CHECK(state_->pooler, "the model has no sentence-order head");
  return state_->sentence_order_head->forward(state_->pooler->forward(first_tokens));
}

SentenceOrderOutput RobertaForMaskedLm::sentence_order_loss_of(const torch::Tensor& hidden,
                                                               const torch::Tensor& rows,
                                                               const torch::Tensor& labels) {
  const torch::Tensor first_tokens = hidden.select(1, 0).index_select(0, rows);  // [P,H]
  const auto [loss_sum, correct] = summed_loss(sentence_order_logits(first_tokens), labels);
  return {loss_sum, correct};
}

void RobertaForMaskedLm::recompute(const RecomputePolicy& policy) {
  state_->options.recompute = policy.to_string();
  state_->encoder->recompute(policy.layers);
}

void RobertaForMaskedLm::record_layers(WorkRecorder recorder) {
  state_->encoder->record_layers(std::move(recorder));
}

void RobertaForMaskedLm::before_use(std::function<void(std::int64_t layer)> gate) {
  state_->gate = gate;
  state_->encoder->before_layers(std::move(gate));
}

const ModelOptions& RobertaForMaskedLm::options() const { return state_->options; }

std::string RobertaForMaskedLm::position_plan() const { return state_->plan.to_string(); }

const PositionPlan& RobertaForMaskedLm::plan() const { return state_->plan; }

const std::vector<std::shared_ptr<PositionEncoding>>& RobertaForMaskedLm::encodings() const {
  return state_->encodings;
}

Embeddings& RobertaForMaskedLm::embeddings() const { return *state_->embeddings; }

const Encoder& RobertaForMaskedLm::encoder() const { return *state_->encoder; }

const MaskDecoder* RobertaForMaskedLm::mask_decoder() const { return state_->mask_decoder.get(); }

std::int64_t RobertaForMaskedLm::longest() const {
  std::int64_t longest = PositionEncoding::kAnyLength;
  for (const auto& encoding : state_->encodings) {
    longest = std::min(longest, encoding->longest());
  }
  if (state_->embeddings->position()) {
    longest = std::min(longest, state_->embeddings->position()->longest());
  }
  return state_->mask_decoder ? std::min(longest, state_->mask_decoder->longest()) : longest;
}

void RobertaForMaskedLm::observe(AttentionObserver* observer) { state_->observer = observer; }

RobertaForMaskedLm::ParameterRoles RobertaForMaskedLm::parameter_roles() const {
  const auto input = state_->embeddings->position();
  ParameterRoles roles;
  for (const auto& parameter : named_parameters()) {
    const std::string& name = parameter.key();
    std::optional<bool> decays;  // of position parameters
    if (const auto place = place_in_groups(name)) {
      decays = !contains(state_->encodings[place->group]->undecayed_parameters(), place->name);
    } else if (name.rfind(kInputPrefix, 0) == 0) {
      decays = !contains(input->undecayed_parameters(), name.substr(kInputPrefix.size()));
    } else if (name.rfind("roberta.mask_decoder.", 0) == 0) {
      decays = true;
    }
    if (decays) {
      (*decays ? roles.position_decayed : roles.position_undecayed).push_back(name);
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

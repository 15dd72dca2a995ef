// RoBERTa for masked-language-model pretraining, with the position encoding chosen per layer.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/position/length_extension.h"
#include "model/position/position_encoding.h"
#include "model/position/position_plan.h"
#include "model/recompute_policy.h"
#include "model/recorded_work.h"
#include "model/token_layout.h"

namespace tupelo {

class Embeddings;
class Encoder;
class MaskDecoder;

struct ModelOptions {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 768;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t intermediate_size = 3072;
  std::int64_t max_positions = 512;  // longest sequence; the learned table has pad_id + 1 more rows
  std::int64_t pad_id = 0;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  // Encoding at the input, "none" or "NAME(option=value,...)"; model/position/input_encoding.h.
  std::string input_position = "learned";
  // Attention encodings per layer; grammar in model/position/position_plan.h.
  std::string position = "all:none";
  // A model without any position information is refused unless this is set.
  bool allow_no_position = false;
  // Factor on the scores that grows with the length of a sequence: off | plain | clip16 | max1.
  std::string logn = "off";
  std::int64_t logn_length = 0;  // N of its formula; 0: max_positions
  // Absolute positions in front of the last layer only (DeBERTa's enhanced mask decoder):
  // none | emd | emd(steps=2).
  std::string mask_decoder = "none";
  // A second head that tells whether the two segments of a row were swapped.
  bool sentence_order_head = false;
  // What happens beyond max_positions; not part of a model's identity.
  LengthExtension extension = {};
  // What backward computes again instead of keeping it: grammar in model/recompute_policy.h. With
  // auto:BYTES everything is kept until recompute() says what the choice was.
  std::string recompute = "none";
};

struct MaskedLmOutput {
  torch::Tensor
      loss_sum;  // [] summed cross entropy over the M masked tokens, natural log, float32 or wider
  torch::Tensor correct;  // [] int64, masked tokens predicted right
};

struct SentenceOrderOutput {  // the same of P rows of two segments
  torch::Tensor loss_sum;
  torch::Tensor correct;
};

// Parameter names are those of Hugging Face RobertaForMaskedLM checkpoints
// ("roberta.embeddings...", "roberta.encoder.layer.0...", "lm_head..."), with
// "roberta.position.<group>." for attention encodings. The decoder is tied to the word embeddings.
// The sentence-order head is that of BERT: "roberta.pooler.dense", where RobertaModel has its
// pooler, and "sop_classifier.classifier", as in AlbertForPreTraining.
// Not thread-safe.
class RobertaForMaskedLm : public torch::nn::Module {
 public:
  // Throws std::invalid_argument that names the option and its valid values: heads must divide
  // hidden_size, no position information anywhere, plan errors, ...
  explicit RobertaForMaskedLm(const ModelOptions& options);

  // Draws all initial values; the same seed gives the same model on every rank.
  void initialize(std::uint64_t seed);

  // input_ids [B,T] int64; attention_mask [B,T] bool or undefined (no padding; padding is on the
  // right); masked_positions [M] int64 (b * T + t); labels [M] int64. M may be 0: loss_sum is 0
  // then, and still connected to the parameters. Dropout (in training mode) draws from the device's
  // default generator; seed it before the call.
  MaskedLmOutput masked_lm_loss(const torch::Tensor& input_ids, const torch::Tensor& attention_mask,
                                const torch::Tensor& masked_positions, const torch::Tensor& labels);
  MaskedLmOutput masked_lm_loss(const torch::Tensor& input_ids, const TokenLayout& layout,
                                const torch::Tensor& masked_positions, const torch::Tensor& labels);

  // The same loss, from hidden_states().
  MaskedLmOutput masked_lm_loss_of(const torch::Tensor& hidden,
                                   const torch::Tensor& masked_positions,
                                   const torch::Tensor& labels);
  // From hidden states [B,T,H]; rows [P] int64; labels [P] int64, 1 for swapped segments. P may be
  // 0, as M above. Only of a model with the head.
  SentenceOrderOutput sentence_order_loss_of(const torch::Tensor& hidden, const torch::Tensor& rows,
                                             const torch::Tensor& labels);

  // [B,T,H] after the last layer (after the mask decoder, when there is one). Throws
  // std::invalid_argument for a sequence longer than longest().
  torch::Tensor hidden_states(const torch::Tensor& input_ids, const torch::Tensor& attention_mask);
  torch::Tensor hidden_states(const torch::Tensor& input_ids, const TokenLayout& layout);
  // [M,V] for rows [M,H] of hidden states.
  torch::Tensor logits(const torch::Tensor& hidden);
  // [P,2] for hidden states [P,H] of the first tokens of P rows; only of a model with the head.
  torch::Tensor sentence_order_logits(const torch::Tensor& first_tokens);

  const ModelOptions& options() const;
  // The canonical plan text, which a checkpoint stores and a restore compares.
  std::string position_plan() const;
  const PositionPlan& plan() const;
  // One per group of the plan; the model owns them.
  const std::vector<std::shared_ptr<PositionEncoding>>& encodings() const;
  // What each layer's attention gets for sequences of `tokens` tokens, as in a forward pass.
  std::vector<AttentionTerms> terms_of_layers(std::int64_t tokens) const;
  // Parts, for those who measure (model/activation_probe.h); the model owns them.
  Embeddings& embeddings() const;
  const Encoder& encoder() const;
  const MaskDecoder* mask_decoder() const;  // or nullptr
  // Longest sequence that every encoding covers.
  std::int64_t longest() const;

  // What is recomputed from now on; options().recompute says it too.
  void recompute(const RecomputePolicy& policy);
  // From now on training runs the encoder's layers from recordings where it can
  // (model/layer_recordings.h); `recorder` is for the device of the parameters.
  void record_layers(WorkRecorder recorder);

  // `gate` is called in every forward pass before parameters are used: with -1 before those of
  // embeddings, position encodings and mask decoder, with each layer's number before it, and with
  // the number of layers before the heads.
  void before_use(std::function<void(std::int64_t layer)> gate);

  // The observer, nullptr for none, sees every forward pass from now on, except attention that is
  // recomputed. The caller owns it and takes it back before it dies.
  void observe(AttentionObserver* observer);

  // Full names of parameters by treatment (optim/optimizer.h ParameterGroup).
  struct ParameterRoles {
    std::vector<std::string> decayed;             // matrices and word embeddings
    std::vector<std::string> undecayed;           // norms and biases
    std::vector<std::string> position_decayed;    // tables and projections of position encodings
    std::vector<std::string> position_undecayed;  // their norms, biases, bias tables, temperatures
  };
  ParameterRoles parameter_roles() const;

  // What the encodings of the plan ask for as the learning rate of position parameters, relative to
  // the base rate: the smallest of their multipliers, 1 without encodings.
  double position_learning_rate_multiplier() const;
  // What the parameter's own position encoding recommends; 1 for every other parameter.
  double learning_rate_multiplier(const std::string& parameter) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tupelo

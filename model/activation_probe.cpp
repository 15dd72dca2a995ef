#include "model/activation_probe.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "model/allocation_meter.h"
#include "model/embeddings.h"
#include "model/encoder.h"
#include "model/plan_report.h"
#include "model/position/input_encoding.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

// Of distinct tensors.
std::int64_t bytes_of(const std::vector<Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) {
    sum += bytes_of(tensor);
  }
  return sum;
}

// What some code keeps for backward beside its results, once everything else is let go, and what
// backward needs beyond that.
struct Measured {
  std::int64_t kept = 0;
  std::int64_t working = 0;
};

// A number of rows or masked tokens at which a quantity was measured, and what it is at others: at
// one of them it may differ from the line, since tensors of one row need no copy.
Measured at_count(std::int64_t count, const std::function<Measured(std::int64_t)>& measure) {
  constexpr std::int64_t kFew = 2;
  if (count <= kFew) {
    return count > 0 ? measure(count) : Measured{};
  }
  const Measured few = measure(kFew), more = measure(kFew + 1);
  const std::int64_t beyond = count - kFew;
  return {few.kept + beyond * (more.kept - few.kept),
          few.working + beyond * (more.working - few.working)};
}

// Restores what a probe disturbs.
class Undisturbed {
 public:
  explicit Undisturbed(RobertaForMaskedLm& model, at::Device device)
      : model_(model), was_training_(model.is_training()) {
    generators_.push_back(at::globalContext().defaultGenerator(at::Device(at::kCPU)));
    if (!device.is_cpu()) {
      generators_.push_back(at::globalContext().defaultGenerator(device));
    }
    for (at::Generator& generator : generators_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      states_.push_back(generator.get_state());
    }
    model.train();
  }
  ~Undisturbed() {
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      const std::lock_guard<std::mutex> lock(generators_[i].mutex());
      generators_[i].set_state(states_[i]);
    }
    model_.train(was_training_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

  std::int64_t replay_bytes() const { return bytes_of(states_.back()); }

 private:
  RobertaForMaskedLm& model_;
  bool was_training_;
  std::vector<at::Generator> generators_;
  std::vector<Tensor> states_;
};

class Probe {
 public:
  Probe(RobertaForMaskedLm& model, const ActivationShape& shape)
      : model_(model),
        shape_(shape),
        options_(model.embeddings().word_table().options().requires_grad(false)),
        layer_shape_{model.options().heads, model.options().hidden_size / model.options().heads,
                     model.options().intermediate_size, shape.tokens},
        terms_(terms_without_gradient()) {}

  ActivationProfile run(const Undisturbed& undisturbed) {
    // What a device's libraries allocate at their first use stays, and is no activation.
    if (!options_.device().is_cpu()) measure_all();
    ActivationProfile profile = measure_all();
    profile.replay_bytes = undisturbed.replay_bytes();
    return profile;
  }

 private:
  ActivationProfile measure_all() {
    ActivationProfile profile;
    profile.word_table_bytes = bytes_of(model_.embeddings().word_table());
    probe_embeddings(profile);
    probe_head(profile);
    feed_forward_ = feed_forward();
    probe_layers(profile);
    return profile;
  }

  // Fills the encodings' caches, too: those outlive a step and are no activations.
  std::vector<AttentionTerms> terms_without_gradient() const {
    const torch::NoGradGuard no_gradients;
    const Tensor tokens = ids(1);
    model_.embeddings().forward(tokens, layout(tokens));
    return model_.terms_of_layers(shape_.tokens);
  }

  bool is_complex() const { return terms_.front().complex_scores != ComplexScores::kNone; }

  Tensor ids(std::int64_t rows) const {
    return at::full({rows, shape_.tokens}, model_.options().vocab_size - 1,
                    options_.dtype(at::kLong));
  }

  TokenLayout layout(const Tensor& ids) const {
    if (shape_.packed) {
      return TokenLayout::packed(at::zeros_like(ids));
    }
    return TokenLayout::rows(ids, shape_.padding ? at::ones_like(ids, at::kBool) : Tensor());
  }

  // A hidden state [rows,T,H] as a layer before would hand it on: no leaf, which would be kept.
  Tensor hidden(const Tensor& seed, std::int64_t rows, bool complex) const {
    return seed.expand({complex ? 2 * rows : rows, shape_.tokens, layer_shape_.hidden_size()})
        .clone(at::MemoryFormat::Contiguous);
  }
  Tensor hidden(const Tensor& seed, std::int64_t rows) const {
    return hidden(seed, rows, is_complex());
  }

  // `work` makes results that depend on the seed it is given; the first needs a gradient.
  Measured measured(const std::function<std::vector<Tensor>(const Tensor& seed)>& work) const {
    const Tensor seed = at::zeros({1}, options_).set_requires_grad(true);
    AllocationMeter meter;
    std::vector<Tensor> results = work(seed);
    Measured found;
    found.kept = meter.live_bytes() - bytes_of(results);
    const Tensor gradient = at::ones_like(results.front());
    const std::int64_t before = meter.live_bytes();
    meter.mark();
    torch::autograd::grad({results.front()}, {seed}, {gradient}, /*retain_graph=*/false,
                          /*create_graph=*/false, /*allow_unused=*/true);
    found.working = meter.peak_bytes() - before + bytes_of(gradient);
    return found;
  }

  void probe_embeddings(ActivationProfile& profile) const {
    const Measured found = at_count(shape_.rows, [&](std::int64_t rows) {
      const Tensor tokens = ids(rows);
      const TokenLayout sequences = layout(tokens);
      return measured([&](const Tensor&) -> std::vector<Tensor> {
        return {model_.embeddings().forward(tokens, sequences)};
      });
    });
    // Backward ends in the tables, which the measurement leaves out: two gradients of its output.
    profile.embeddings = {found.kept, 2 * hidden_bytes(is_complex()), 0, 0};
  }

  void probe_head(ActivationProfile& profile) const {
    const auto& position = model_.embeddings().position();
    Measured last;
    if (position) {
      last = at_count(shape_.rows, [&](std::int64_t rows) {
        return measured([&](const Tensor& seed) -> std::vector<Tensor> {
          return {position->collapse(hidden(seed, rows))};
        });
      });
    }
    const Measured words = at_count(shape_.masked, [&](std::int64_t masked) {
      const Tensor indices = at::zeros({masked}, options_.dtype(at::kLong));
      return measured([&](const Tensor& seed) -> std::vector<Tensor> {
        const MaskedLmOutput output =
            model_.masked_lm_loss_of(hidden(seed, 1, false), indices, indices);
        return {output.loss_sum, output.correct};
      });
    });
    const Measured order = at_count(shape_.pairs, [&](std::int64_t pairs) {
      const Tensor rows = at::arange(pairs, options_.dtype(at::kLong));
      const Tensor labels = at::zeros_like(rows);
      return measured([&](const Tensor& seed) -> std::vector<Tensor> {
        const SentenceOrderOutput output =
            model_.sentence_order_loss_of(hidden(seed, pairs, false), rows, labels);
        return {output.loss_sum, output.correct};
      });
    });
    profile.head.kept_bytes = last.kept + words.kept + order.kept;
    profile.head.working_bytes = std::max({last.working, words.working, order.working});
  }

  Measured feed_forward() const {
    return at_count(shape_.rows, [&](std::int64_t rows) {
      return measured([&](const Tensor& seed) -> std::vector<Tensor> {
        return {model_.encoder().layer(0).feed_forward_half(hidden(seed, rows))};
      });
    });
  }

  // Attention of some layers, each on a hidden state of its own; under a mask decoder they look at
  // a memory that is not counted.
  Measured attention(const std::vector<std::size_t>& layers, std::int64_t rows,
                     bool with_memory) const {
    const Tensor tokens = ids(rows);
    const TokenLayout sequences = layout(tokens);
    const Tensor memory_seed = at::zeros({1}, options_).set_requires_grad(true);
    const Tensor memory = with_memory ? hidden(memory_seed, rows) : Tensor();
    return measured([&](const Tensor& seed) {
      const std::vector<AttentionTerms> terms = model_.terms_of_layers(shape_.tokens);
      std::vector<Tensor> results;
      for (const std::size_t layer : layers) {
        results.push_back(model_.encoder().layer(layer).attention_half(hidden(seed, rows), memory,
                                                                       terms[layer], sequences));
      }
      return results;
    });
  }

  // Two layers keep twice what each has of its own and once what they share.
  struct Group {
    Measured each;
    std::int64_t shared = 0;
  };
  Group attention_of(std::size_t first, std::size_t second, bool with_memory) const {
    Group group;
    group.each = at_count(shape_.rows, [&](std::int64_t rows) {
      const Measured one = attention({first}, rows, with_memory);
      const Measured two = attention({first, second}, rows, with_memory);
      group.shared = 2 * one.kept - two.kept;
      return Measured{two.kept - one.kept, one.working};
    });
    return group;
  }

  // While the terms of the group's layers are held on to.
  std::int64_t captured_bytes(std::int64_t group) const {
    const std::vector<std::int64_t>& of_layer = model_.plan().group_of_layer;
    AllocationMeter meter;
    std::vector<AttentionTerms> terms = model_.terms_of_layers(shape_.tokens);
    for (std::size_t layer = 0; layer < terms.size(); ++layer) {
      if (of_layer[layer] != group) {
        terms[layer] = AttentionTerms();
      }
    }
    return meter.live_bytes();
  }

  void probe_layers(ActivationProfile& profile) const {
    const MaskDecoder* decoder = model_.mask_decoder();
    const std::vector<std::int64_t>& of_layer = model_.plan().group_of_layer;
    const std::size_t plain_layers = of_layer.size() - (decoder != nullptr ? 1 : 0);
    profile.layers.resize(of_layer.size());
    profile.groups.resize(model_.plan().groups.size());
    for (std::int64_t group = -1; group < static_cast<std::int64_t>(profile.groups.size());
         ++group) {
      std::vector<std::size_t> members;
      for (std::size_t layer = 0; layer < plain_layers; ++layer) {
        if (of_layer[layer] == group) {
          members.push_back(layer);
        }
      }
      if (members.empty()) {
        continue;
      }
      const Group found = attention_of(members.front(), members[members.size() > 1 ? 1 : 0], false);
      for (const std::size_t layer : members) {
        profile.layers[layer] = layer_activations(layer, group, found.each);
      }
      shared_terms(profile, group) = {found.shared, captured_bytes(group)};
    }
    if (decoder != nullptr) {
      probe_decoder(*decoder, plain_layers, profile);
    }
  }

  void probe_decoder(const MaskDecoder& decoder, std::size_t layer,
                     ActivationProfile& profile) const {
    const std::vector<std::int64_t>& of_layer = model_.plan().group_of_layer;
    const std::int64_t group = of_layer[layer];
    const Group found = attention_of(layer, layer, true);
    profile.layers[layer] = layer_activations(layer, group, found.each);
    profile.layers[layer].applications = decoder.steps();
    if (std::count(of_layer.begin(), of_layer.end(), group) == 1) {
      shared_terms(profile, group) = {found.shared, captured_bytes(group)};
    }
    const Measured queries = at_count(shape_.rows, [&](std::int64_t rows) {
      const TokenLayout sequences = layout(ids(rows));
      return measured([&](const Tensor& seed) -> std::vector<Tensor> {
        return {decoder.queries(hidden(seed, rows), sequences)};
      });
    });
    profile.mask_decoder_bytes = queries.kept + hidden_bytes(is_complex());
  }

  static SharedTerms& shared_terms(ActivationProfile& profile, std::int64_t group) {
    return group < 0 ? profile.plain : profile.groups[static_cast<std::size_t>(group)];
  }

  LayerActivations layer_activations(std::size_t index, std::int64_t group,
                                     const Measured& attention) const {
    const EncoderLayer& layer = model_.encoder().layer(index);
    const double tokens = static_cast<double>(shape_.rows * shape_.tokens);
    const double wide = 4.0 * static_cast<double>(layer_shape_.hidden_size()) *
                        static_cast<double>(layer_shape_.intermediate_size) *
                        (is_complex() ? 2.0 : 1.0);
    const AttentionTerms& terms = terms_[index];
    LayerActivations result;
    result.group = group;
    result.input_bytes = hidden_bytes(is_complex());
    result.attention = {
        attention.kept, attention.working, bytes_of(layer.attention_parameters()),
        tokens * (plain_layer_flops(layer_shape_) + extra_layer_flops(terms, layer_shape_) - wide) +
            relative_row_flops(terms, layer_shape_)};
    result.feed_forward = {feed_forward_.kept, feed_forward_.working,
                           bytes_of(layer.feed_forward_parameters()), tokens * wide};
    return result;
  }

  std::int64_t hidden_bytes(bool complex) const {
    return shape_.rows * shape_.tokens * layer_shape_.hidden_size() *
           static_cast<std::int64_t>(options_.dtype().itemsize()) * (complex ? 2 : 1);
  }

  RobertaForMaskedLm& model_;
  const ActivationShape& shape_;
  at::TensorOptions options_;
  LayerShape layer_shape_;
  std::vector<AttentionTerms> terms_;
  Measured feed_forward_;
};

}  // namespace

ActivationProfile profile_activations(RobertaForMaskedLm& model, const ActivationShape& shape) {
  TORCH_CHECK(shape.rows > 0 && shape.tokens > 0 && shape.masked >= 0 && shape.pairs >= 0,
              "a micro-batch needs rows of tokens");
  const Undisturbed undisturbed(model, model.embeddings().word_table().device());
  const torch::AutoGradMode with_graph(true);
  return Probe(model, shape).run(undisturbed);
}

}  // namespace tupelo

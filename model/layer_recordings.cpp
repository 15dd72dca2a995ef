#include "model/layer_recordings.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace tupelo {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One layer. All tensors stay where they are as long as it exists.
struct LayerRecordings::Recording : torch::CustomClassHolder {
  explicit Recording(TokenLayout rows) : layout(std::move(rows)) {}

  TokenLayout layout;
  std::shared_ptr<EncoderLayer> layer, twin;
  std::vector<Tensor> inputs;   // leaves: tensors of the terms, the hidden state
  AttentionTerms terms;         // around `inputs`
  std::vector<Tensor> sources;  // inputs and the twin's parameters
  Tensor output;                // [B,T,H]
  Tensor gradient;              // of `output`
  variable_list gradients;      // of those sources that require one, in their order
  std::int64_t passes = 0;      // forward passes so far
  std::unique_ptr<RecordedWork> forward, backward;

  void run_forward() {
    const torch::AutoGradMode with_graph(true);
    output = twin->forward(inputs.back(), {}, terms, layout);
  }

  void run_backward() {
    variable_list wanted;
    for (const Tensor& source : sources) {
      if (source.requires_grad()) {
        wanted.push_back(source);
      }
    }
    gradients = torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/false,
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }

  // That of the hidden state, the last input.
  const Tensor& input_gradient() const {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < inputs.size(); ++i) {
      before += inputs[i].requires_grad() ? 1 : 0;
    }
    return gradients[before];
  }
};

namespace {

std::vector<std::int64_t> key_of(const Tensor& tensor) {
  std::vector<std::int64_t> key = tensor.sizes().vec();
  key.push_back(tensor.dim());
  key.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
  key.push_back(tensor.requires_grad() ? 1 : 0);
  return key;
}

// Nothing to do where a recording hands on to the next.
void put(const Tensor& from, const Tensor& into) {
  if (from.data_ptr() != into.data_ptr()) {
    into.detach().copy_(from);
  }
}

bool share_memory(const EncoderLayer& layer, const EncoderLayer& twin) {
  const auto own = layer.parameters(), others = twin.parameters();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].data_ptr() != others[i].data_ptr()) {
      return false;
    }
  }
  return true;
}

// `twin` computes with the parameters of `layer`, and freezes what that freezes.
void link(const EncoderLayer& layer, EncoderLayer& twin) {
  const auto own = layer.parameters();
  auto others = twin.parameters();
  for (std::size_t i = 0; i < own.size(); ++i) {
    others[i].set_data(own[i].detach());
    others[i].set_requires_grad(own[i].requires_grad());
  }
  twin.train(layer.is_training());
}

// A layer as one node of autograd, for hidden state, terms and parameters.
template <typename Recording>
class ReplayedLayer : public torch::autograd::Function<ReplayedLayer<Recording>> {
 public:
  static Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Recording>& recording,
                        at::TensorList tensors) {
    for (std::size_t i = 0; i < recording->inputs.size(); ++i) {
      put(tensors[i], recording->inputs[i]);
    }
    recording->forward->replay();
    context->saved_data["recording"] = c10::IValue::make_capsule(recording);
    context->saved_data["pass"] = ++recording->passes;
    return recording->output.detach();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto recording =
        c10::static_intrusive_pointer_cast<Recording>(context->saved_data["recording"].toCapsule());
    TORCH_CHECK(context->saved_data["pass"].toInt() == recording->passes,
                "backward of a recorded layer after another forward pass overwrote its results");
    put(gradients[0], recording->gradient);
    recording->backward->replay();
    variable_list placed(1);  // none for the recording
    std::size_t next = 0;
    for (const Tensor& source : recording->sources) {
      // The tensors themselves, which are in use: autograd does not take them for .grad.
      placed.push_back(source.requires_grad() ? recording->gradients[next++] : Tensor());
    }
    return placed;
  }
};

}  // namespace

LayerRecordings::LayerRecordings(Layers layers, Layers twins, WorkRecorder recorder)
    : layers_(std::move(layers)), twins_(std::move(twins)), recorder_(std::move(recorder)) {
  TORCH_CHECK(layers_.size() == twins_.size());
}

LayerRecordings::~LayerRecordings() = default;

bool LayerRecordings::prepare(const Tensor& hidden,
                              const std::vector<AttentionTerms>& terms_of_layer,
                              const TokenLayout& layout, const std::vector<std::size_t>& wanted) {
  if (wanted.empty() || !layout.has_full_rows() || !hidden.requires_grad()) {
    return false;
  }
  Shape shape = key_of(hidden);
  for (const std::size_t layer : wanted) {
    shape.push_back(static_cast<std::int64_t>(layer));
    for (const Tensor& tensor : terms_of_layer[layer].tensors()) {
      const Shape key = key_of(tensor);
      shape.insert(shape.end(), key.begin(), key.end());
    }
  }
  if (shape == recorded_shape_ && are_current()) {
    seen_ = 0;
    return true;
  }
  seen_ = shape == seen_shape_ ? seen_ + 1 : 1;
  seen_shape_ = std::move(shape);
  if (seen_ <= kWarmUps) {
    return false;
  }
  record(hidden, terms_of_layer, layout, wanted);
  recorded_shape_ = seen_shape_;
  seen_ = 0;
  return true;
}

// Whether parameters lie where they lay.
bool LayerRecordings::are_current() const {
  for (const auto& recording : recordings_) {
    if (recording && !share_memory(*recording->layer, *recording->twin)) {
      return false;
    }
  }
  return true;
}

void LayerRecordings::record(const Tensor& hidden,
                             const std::vector<AttentionTerms>& terms_of_layer,
                             const TokenLayout& layout, const std::vector<std::size_t>& wanted) {
  recorded_shape_.clear();  // of what is dropped, also when recording fails
  recordings_.assign(layers_.size(), {});
  for (const std::size_t layer : wanted) {
    const bool follows = layer > 0 && recordings_[layer - 1];
    const Tensor input = follows ? recordings_[layer - 1]->output : at::empty_like(hidden.detach());
    recordings_[layer] = recorded_forward(layer, input, terms_of_layer[layer], layout);
  }
  for (auto layer = wanted.rbegin(); layer != wanted.rend(); ++layer) {
    const bool precedes = *layer + 1 < recordings_.size() && recordings_[*layer + 1];
    Recording& recording = *recordings_[*layer];
    recording.gradient = precedes ? recordings_[*layer + 1]->input_gradient()
                                  : at::empty_like(recording.output.detach());
    recording.backward = recorder_([&recording] { recording.run_backward(); });
    recording.output = recording.output.detach();  // lets go of the graph behind it
  }
}

c10::intrusive_ptr<LayerRecordings::Recording> LayerRecordings::recorded_forward(
    std::size_t layer, const Tensor& input, const AttentionTerms& terms,
    const TokenLayout& layout) const {
  auto recording = c10::make_intrusive<Recording>(layout);
  recording->layer = layers_[layer];
  recording->twin = twins_[layer];
  link(*recording->layer, *recording->twin);
  for (const Tensor& tensor : terms.tensors()) {
    recording->inputs.push_back(
        at::empty_like(tensor.detach()).set_requires_grad(tensor.requires_grad()));
  }
  recording->terms = terms.with_tensors(recording->inputs);
  recording->inputs.push_back(input.detach().requires_grad_());
  recording->sources = recording->inputs;
  for (const Tensor& parameter : recording->twin->parameters()) {
    recording->sources.push_back(parameter);
  }
  recording->forward = recorder_([own = recording.get()] { own->run_forward(); });
  return recording;
}

Tensor LayerRecordings::forward(std::size_t layer, const Tensor& hidden,
                                const AttentionTerms& terms) const {
  const auto& recording = recordings_.at(layer);
  std::vector<Tensor> all = terms.tensors();
  all.push_back(hidden);
  for (const Tensor& parameter : recording->layer->parameters()) {
    all.push_back(parameter);
  }
  return ReplayedLayer<Recording>::apply(recording, at::TensorList(all));
}

}  // namespace tupelo

#include "model/layer_recordings.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

namespace tupelo {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One layer. All tensors stay where they are as long as it exists.
struct LayerRecordings::Recording {
  Layer twin;
  TokenLayout layout;
  std::vector<Tensor> parameters;       // of the layer
  std::vector<Tensor> twin_parameters;  // the same memory
  std::vector<Tensor> inputs;           // leaves: tensors of the terms, the hidden state
  AttentionTerms terms;                 // around `inputs`
  Tensor output;                        // [B,T,H]
  Tensor gradient;                      // of `output`
  variable_list gradients;   // of those inputs and parameters that require one, in their order
  std::int64_t version = 0;  // of what backward works on: changes when that is overwritten or used
  std::unique_ptr<RecordedWork> forward, backward;

  explicit Recording(TokenLayout rows) : layout(std::move(rows)) {}

  void run_forward() {
    const torch::AutoGradMode with_graph(true);
    output = twin->forward(inputs.back(), {}, terms, layout);
  }

  void run_backward() {
    variable_list wanted;
    for (const auto* sources : {&inputs, &twin_parameters}) {
      for (const Tensor& source : *sources) {
        if (source.requires_grad()) {
          wanted.push_back(source);
        }
      }
    }
    gradients = torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/false,
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }

  // In the order of inputs and parameters; undefined for what requires none.
  variable_list placed_gradients() const {
    variable_list placed;
    std::size_t next = 0;
    for (const auto* sources : {&inputs, &twin_parameters}) {
      for (const Tensor& source : *sources) {
        placed.push_back(source.requires_grad() ? gradients[next++] : Tensor());
      }
    }
    return placed;
  }

  Tensor input_gradient() const { return placed_gradients()[inputs.size() - 1]; }

  bool is_current() const {
    return std::equal(
        parameters.begin(), parameters.end(), twin_parameters.begin(),
        [](const Tensor& own, const Tensor& twins) { return own.data_ptr() == twins.data_ptr(); });
  }
};

// The tensors of all terms of a pass, each once: layers of a group have the same ones.
struct LayerRecordings::SharedTerms {
  std::vector<Tensor> distinct;
  std::vector<std::vector<std::size_t>> of_layer;  // indices, by place in `wanted`

  SharedTerms(const std::vector<AttentionTerms>& terms_of_layer,
              const std::vector<std::size_t>& wanted) {
    for (const std::size_t layer : wanted) {
      of_layer.emplace_back();
      for (const Tensor& tensor : terms_of_layer[layer].tensors()) {
        const auto found = std::find_if(distinct.begin(), distinct.end(),
                                        [&](const Tensor& other) { return other.is_same(tensor); });
        of_layer.back().push_back(static_cast<std::size_t>(found - distinct.begin()));
        if (found == distinct.end()) {
          distinct.push_back(tensor);
        }
      }
    }
  }
};

namespace {

void append_key(const Tensor& tensor, std::vector<std::int64_t>& key) {
  key.push_back(tensor.dim());
  key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
  key.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
  key.push_back(tensor.requires_grad() ? 1 : 0);
}

Tensor leaf_like(const Tensor& tensor) {
  return at::empty_like(tensor.detach()).set_requires_grad(tensor.requires_grad());
}

// Nothing to do where a recording hands on to the next.
void put(const Tensor& from, const Tensor& into) {
  if (from.data_ptr() != into.data_ptr()) {
    into.detach().copy_(from.detach());
  }
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

// Keeps a recording for the backward pass, in the form that a context stores.
template <typename Recording>
struct Held : torch::CustomClassHolder {
  explicit Held(std::shared_ptr<Recording> what) : recording(std::move(what)) {}
  std::shared_ptr<Recording> recording;
};

// A layer as one node of autograd, for terms, hidden state and parameters.
template <typename Recording>
class ReplayedLayer : public torch::autograd::Function<ReplayedLayer<Recording>> {
 public:
  using Holder = c10::intrusive_ptr<Held<Recording>>;

  static Tensor forward(AutogradContext* context, const Holder& held, at::TensorList tensors) {
    Recording& recording = *held->recording;
    const std::size_t hidden = recording.inputs.size() - 1;
    put(tensors[hidden], recording.inputs[hidden]);
    recording.forward->replay();
    context->saved_data["held"] = c10::IValue::make_capsule(held);
    context->saved_data["version"] = ++recording.version;
    return recording.output.detach();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = c10::static_intrusive_pointer_cast<Held<Recording>>(
        context->saved_data["held"].toCapsule());
    Recording& recording = *held->recording;
    TORCH_CHECK(context->saved_data["version"].toInt() == recording.version,
                "backward of a recorded layer whose results were overwritten, by another forward "
                "pass or by a backward pass");
    put(gradients[0], recording.gradient);
    recording.backward->replay();
    ++recording.version;
    // The tensors themselves, which are in use: autograd does not take them for .grad.
    variable_list placed = recording.placed_gradients();
    placed.insert(placed.begin(), Tensor());  // none for the holder
    return placed;
  }
};

}  // namespace

LayerRecordings::LayerRecordings(std::vector<Layer> layers,
                                 std::function<Layer(std::size_t)> make_twin, WorkRecorder recorder)
    : layers_(std::move(layers)),
      make_twin_(std::move(make_twin)),
      recorder_(std::move(recorder)) {}

LayerRecordings::~LayerRecordings() = default;

bool LayerRecordings::prepare(const Tensor& hidden,
                              const std::vector<AttentionTerms>& terms_of_layer,
                              const TokenLayout& layout, const std::vector<std::size_t>& wanted) {
  if (wanted.empty() || !layout.has_full_rows() || !hidden.requires_grad()) {
    return false;
  }
  const SharedTerms shared(terms_of_layer, wanted);
  Shape shape;
  append_key(hidden, shape);
  for (const Tensor& tensor : shared.distinct) {
    append_key(tensor, shape);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    shape.push_back(static_cast<std::int64_t>(wanted[i]));
    shape.insert(shape.end(), shared.of_layer[i].begin(), shared.of_layer[i].end());
  }
  if (shape != recorded_shape_ || !are_current()) {
    if (!is_due(shape)) {
      return false;
    }
    record(hidden, terms_of_layer, shared, layout, wanted);
    recorded_shape_ = std::move(shape);
  }
  passes_of_others_ = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    put(shared.distinct[i], terms_[i]);
  }
  return true;
}

// Whether a pass that runs from no recording yet is to be recorded.
bool LayerRecordings::is_due(const Shape& shape) {
  const bool place_is_free =
      recorded_shape_.empty() || shape == recorded_shape_ || ++passes_of_others_ > kWarmUps;
  return ++seen_[shape] > kWarmUps && place_is_free;
}

// Whether parameters lie where they lay.
bool LayerRecordings::are_current() const {
  return std::all_of(recordings_.begin(), recordings_.end(),
                     [](const auto& recording) { return !recording || recording->is_current(); });
}

void LayerRecordings::drop() {
  for (const auto& recording : recordings_) {
    if (recording) {
      ++recording->version;
    }
  }
  recordings_.assign(layers_.size(), nullptr);
  terms_.clear();
  recorded_shape_.clear();
  seen_.clear();
}

// Forward of all layers and then backward in reverse, which is the order of replaying.
void LayerRecordings::record(const Tensor& hidden,
                             const std::vector<AttentionTerms>& terms_of_layer,
                             const SharedTerms& shared, const TokenLayout& layout,
                             const std::vector<std::size_t>& wanted) {
  drop();
  for (const Tensor& tensor : shared.distinct) {
    terms_.push_back(leaf_like(tensor));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t layer = wanted[i];
    std::vector<Tensor> own_terms;
    for (const std::size_t index : shared.of_layer[i]) {
      own_terms.push_back(terms_[index]);
    }
    const bool follows = layer > 0 && recordings_[layer - 1];
    const Tensor input =
        follows ? recordings_[layer - 1]->output.detach().requires_grad_() : leaf_like(hidden);
    recordings_[layer] =
        recorded_forward(layer, input, terms_of_layer[layer].with_tensors(own_terms), layout);
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

std::shared_ptr<LayerRecordings::Recording> LayerRecordings::recorded_forward(
    std::size_t layer, const Tensor& input, const AttentionTerms& terms,
    const TokenLayout& layout) const {
  auto recording = std::make_shared<Recording>(layout);
  recording->twin = make_twin_(layer);
  link(*layers_[layer], *recording->twin);
  recording->parameters = layers_[layer]->parameters();
  recording->twin_parameters = recording->twin->parameters();
  recording->terms = terms;
  recording->inputs = terms.tensors();
  recording->inputs.push_back(input);
  recording->forward = recorder_([own = recording.get()] { own->run_forward(); });
  return recording;
}

Tensor LayerRecordings::forward(std::size_t layer, const Tensor& hidden,
                                const AttentionTerms& terms) const {
  const std::shared_ptr<Recording>& recording = recordings_.at(layer);
  std::vector<Tensor> all = terms.tensors();
  all.push_back(hidden);
  all.insert(all.end(), recording->parameters.begin(), recording->parameters.end());
  return ReplayedLayer<Recording>::apply(c10::make_intrusive<Held<Recording>>(recording),
                                         at::TensorList(all));
}

}  // namespace tupelo

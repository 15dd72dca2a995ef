// Layers that run from recordings train as ever: the same losses and gradients, bit for bit. What
// records here is a double that does the work again; cuda_graphs_gpu_test records with CUDA.
#include "model/layer_recordings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/roberta.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::layer_recordings_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 2, kTokens = 9, kLayers = 4;

struct Counts {
  int recordings = 0, replays = 0;
};

class WorkAgain : public RecordedWork {
 public:
  WorkAgain(std::function<void()> work, Counts& counts) : work_(std::move(work)), counts_(counts) {}
  void replay() override {
    ++counts_.replays;
    work_();
  }

 private:
  std::function<void()> work_;
  Counts& counts_;
};

// As on a device, recording draws no random numbers and leaves no values.
WorkRecorder work_again(Counts& counts) {
  return [&counts](std::function<void()> work) -> std::unique_ptr<RecordedWork> {
    auto generator = at::globalContext().defaultGenerator(at::kCPU);
    const Tensor state = generator.get_state();
    work();
    generator.set_state(state);
    ++counts.recordings;
    return std::make_unique<WorkAgain>(std::move(work), counts);
  };
}

using Result = std::map<std::string, Tensor>;

// Trains on batches of given lengths, as the trainer does.
class Training {
 public:
  Training(const ModelOptions& options, torch::ScalarType type = torch::kFloat32)
      : model_(tiny_model(options, type)) {
    torch::manual_seed(23);
    perturb(*model_, 0.1);
    model_->train();
  }

  RobertaForMaskedLm& model() { return *model_; }
  void record(Counts& counts) { model_->record_layers(work_again(counts)); }

  Tensor forward(std::int64_t tokens, std::int64_t padding = 0) {
    torch::manual_seed(tokens + 1000 * passes_);
    TinyBatch batch(kRows, tokens);
    if (padding > 0) batch.pad(padding);
    torch::manual_seed(100 + passes_++);
    return batch.loss(*model_);
  }

  // Two micro-batches of one length.
  Result step(std::int64_t tokens, std::int64_t padding = 0) {
    return step_of({tokens, tokens}, padding);
  }

  Result step_of(const std::vector<std::int64_t>& lengths, std::int64_t padding = 0) {
    Result result;
    clear_gradients(*model_);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const Tensor loss = forward(lengths[i], padding);
      result["loss " + std::to_string(i)] = loss.detach();
      loss.backward();
    }
    const auto gradients = gradients_of(*model_);
    result.insert(gradients.begin(), gradients.end());
    const torch::NoGradGuard no_gradients;
    for (Tensor parameter : model_->parameters()) {
      if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.01);
    }
    return result;
  }

 private:
  std::shared_ptr<RobertaForMaskedLm> model_;
  std::int64_t passes_ = 0;
};

void expect_same(const Result& found, const Result& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(found.at(name).equal(tensor)) << what << " " << name;
  }
}

ModelOptions options_of(const std::string& position, const std::string& recompute = "none") {
  ModelOptions options = tiny_options(position, kLayers);
  options.dropout = options.attention_dropout = 0.1;
  options.recompute = recompute;
  return options;
}

// Steps of two passes: the third pass is a warm-up still, the fourth records.
constexpr int kSteps = 4;
constexpr int kReplaysOfLayer = 2 * (2 * kSteps - LayerRecordings::kWarmUps);

void expect_same_training(const ModelOptions& options, int recorded_layers,
                          torch::ScalarType type) {
  const std::string what = options.input_position + " " + options.position + " " +
                           options.mask_decoder + " " + options.recompute;
  Training plain(options, type), recorded(options, type);
  Counts counts;
  recorded.record(counts);
  for (int i = 0; i < kSteps; ++i) {
    expect_same(recorded.step(kTokens), plain.step(kTokens), what);
  }
  EXPECT_EQ(counts.recordings, 2 * recorded_layers) << what;
  EXPECT_EQ(counts.replays, recorded_layers * kReplaysOfLayer) << what;
}

TEST(LayerRecordings, TrainAllEncodingsToTheSameBits) {
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    expect_same_training(options_of("all:" + kind.name), kLayers, torch::kFloat32);
  }
  for (const std::string position :
       {"all:none", "0+2:tupe-r,1+3:shaw", "0-1:none,2-3:deberta", "all:tupe-full(share=layer)"}) {
    expect_same_training(options_of(position), kLayers, torch::kFloat64);
  }
  for (const std::string form : {"hermitian", "modulus"}) {
    ModelOptions options = options_of("all:none");
    options.input_position = "complex-order(form=" + form + ")";
    expect_same_training(options, kLayers, torch::kFloat32);
  }
}

TEST(LayerRecordings, TrainModelsOf16BitsToTheSameBits) {
  expect_same_training(options_of("0-1:none,2-3:tupe-r"), kLayers, torch::kBFloat16);
}

TEST(LayerRecordings, LeaveOutRecomputedLayersAndTheDecodersLayer) {
  expect_same_training(options_of("all:tupe-r", "1:full"), 3, torch::kFloat32);
  expect_same_training(options_of("all:tupe-r", "0:attention,2:ffn"), 2, torch::kFloat32);
  expect_same_training(options_of("all:tupe-r", "full"), 0, torch::kFloat32);
  ModelOptions decoded = options_of("all:tupe-r");
  decoded.mask_decoder = "emd(steps=2)";
  expect_same_training(decoded, kLayers - 1, torch::kFloat32);
}

TEST(LayerRecordings, LeavePaddedRowsAloneAndTakeAnotherLengthWhenItStays) {
  const ModelOptions options = options_of("all:tupe-r");
  Training plain(options), recorded(options);
  Counts counts;
  recorded.record(counts);
  const auto step = [&](std::int64_t tokens, std::int64_t padding = 0) {
    const int replays = counts.replays;
    expect_same(recorded.step(tokens, padding), plain.step(tokens, padding),
                std::to_string(tokens) + " tokens");
    return (counts.replays - replays) / (2 * kLayers);  // passes that were replayed
  };
  EXPECT_EQ(step(9, 2) + step(9, 2) + step(9, 2), 0);
  EXPECT_EQ(step(9) + step(9), 1);
  EXPECT_EQ(step(9), 2);
  EXPECT_EQ(step(9, 2), 0);
  EXPECT_EQ(step(12), 0);  // passes once
  EXPECT_EQ(step(9), 2);
  EXPECT_EQ(counts.recordings, 2 * kLayers);
  EXPECT_EQ(step(12), 0);  // the other one may come again
  EXPECT_EQ(step(12), 1);
  EXPECT_EQ(step(12), 2);
  EXPECT_EQ(step(9), 0);
  EXPECT_EQ(counts.recordings, 4 * kLayers);
}

// As in steps whose last micro-batch has fewer rows.
TEST(LayerRecordings, TakeTheShapeThatComesMoreOften) {
  const ModelOptions options = options_of("all:tupe-r");
  Training plain(options), recorded(options);
  Counts counts;
  recorded.record(counts);
  for (int i = 0; i < 6; ++i) {
    expect_same(recorded.step_of({9, 9, 7}), plain.step_of({9, 9, 7}), "step " + std::to_string(i));
  }
  EXPECT_EQ(counts.recordings, 2 * kLayers);
  EXPECT_EQ(counts.replays, 2 * kLayers * (12 - LayerRecordings::kWarmUps));
}

TEST(LayerRecordings, AreMadeAnewForParametersThatMoved) {
  const ModelOptions options = options_of("all:tupe-r");
  Training plain(options), recorded(options);
  Counts counts;
  recorded.record(counts);
  for (int i = 0; i < 2; ++i) expect_same(recorded.step(9), plain.step(9), "before");
  const int replays = counts.replays;
  ASSERT_GT(replays, 0);
  for (auto& parameter : recorded.model().parameters()) parameter.set_data(parameter.clone());
  for (int i = 0; i < 3; ++i) expect_same(recorded.step(9), plain.step(9), "after");
  EXPECT_EQ(counts.recordings, 4 * kLayers);
  EXPECT_GT(counts.replays, replays);
}

TEST(LayerRecordings, StandAsideWithoutGradientsAndInEvaluation) {
  Training recorded(options_of("all:tupe-r"));
  Counts counts;
  recorded.record(counts);
  recorded.model().eval();
  for (int i = 0; i < 3; ++i) recorded.step(9);
  recorded.model().train();
  {
    const torch::NoGradGuard no_gradients;
    for (int i = 0; i < 6; ++i) recorded.forward(9);
  }
  EXPECT_EQ(counts.recordings, 0);
  for (int i = 0; i < 3; ++i) recorded.step(9);
  const int replays = counts.replays;
  EXPECT_GT(replays, 0);
  {
    const torch::NoGradGuard no_gradients;
    recorded.forward(9);
  }
  EXPECT_EQ(counts.replays, replays);
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(LayerRecordings, RefuseABackwardPassWhoseResultsAreOverwritten) {
  Training recorded(options_of("all:tupe-r"));
  Counts counts;
  recorded.record(counts);
  for (int i = 0; i < 2; ++i) recorded.step(9);
  const std::string overwritten = "were overwritten";
  const Tensor before = recorded.forward(9);
  const Tensor last = recorded.forward(9);
  EXPECT_NE(refusal([&] { before.backward(); }).find(overwritten), std::string::npos);
  last.backward({}, /*retain_graph=*/true);
  EXPECT_NE(refusal([&] { last.backward(); }).find(overwritten), std::string::npos);
  const Tensor dropped = recorded.forward(9);
  for (int i = 0; i <= LayerRecordings::kWarmUps; ++i) recorded.forward(12).backward();
  ASSERT_EQ(counts.recordings, 4 * kLayers);
  EXPECT_NE(refusal([&] { dropped.backward(); }).find(overwritten), std::string::npos);
}

TEST(LayerRecordings, PassOnWhatARecorderThrows) {
  Training recorded(options_of("all:tupe-r"));
  int calls = 0;
  recorded.model().record_layers([&](std::function<void()>) -> std::unique_ptr<RecordedWork> {
    ++calls;
    throw std::runtime_error("no");
  });
  recorded.step(9);
  recorded.forward(9);
  EXPECT_THROW(recorded.forward(9), std::runtime_error);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tupelo::layer_recordings_test

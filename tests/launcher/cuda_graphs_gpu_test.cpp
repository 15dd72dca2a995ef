// Training from CUDA graphs against training from launched kernels.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "distributed/backends.h"
#include "launcher/cuda_graphs.h"
#include "launcher/model_parameters.h"
#include "launcher/trained_parameters.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::cuda_graphs_gpu_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kLayers = 4;
// The fourth pass of a length records.
constexpr std::int64_t kLengths[] = {16, 16, 16, 16, 16, 16, 11, 11, 11, 11, 11, 11};

struct Outcome {
  std::map<std::string, Tensor> results;  // losses of all passes, the last gradients
  int recordings = 0;
};

// As the trainer does: gradients arrive in buckets, the optimizer updates masters.
Outcome train(const ModelOptions& options, const std::string& precision, bool with_graphs) {
  const auto model = tiny_model(options, torch::kFloat32);
  torch::manual_seed(23);
  perturb(*model, 0.1);
  model->to(torch::kCUDA);
  model->train();
  const auto world = make_local_world(1);
  TrainOptions settings;
  settings.precision = precision;
  TrainedParameters trained(*model, settings, ShardGroups{*world.front()});
  const auto optimizer = make_optimizer({}, trained.masters(parameter_groups(*model, {}, 0)));
  Outcome outcome;
  if (with_graphs) {
    model->record_layers([&, record = cuda_graph_recorder(torch::Device(torch::kCUDA, 0))](
                             std::function<void()> work) {
      ++outcome.recordings;
      return record(std::move(work));
    });
  }
  std::int64_t pass = 0;
  for (const std::int64_t tokens : kLengths) {
    torch::manual_seed(100 + ++pass);
    TinyBatch batch(4, tokens);
    trained.reducer().zero();
    trained.reducer().overlap(true);
    const Tensor loss = model
                            ->masked_lm_loss(batch.input_ids.cuda(), torch::Tensor(),
                                             batch.masked_positions.cuda(), batch.labels.cuda())
                            .loss_sum;
    outcome.results["loss " + std::to_string(pass)] = loss.detach();
    loss.backward();
    trained.reducer().finish();
    optimizer->step(1e-4, pass);
    trained.publish();
    trained.wait();
  }
  for (const Tensor& bucket : trained.reducer().buckets()) {
    outcome.results["bucket " + std::to_string(outcome.results.size())] = bucket.clone();
  }
  return outcome;
}

// `recorded` layers at each of the two lengths.
void expect_same_training(ModelOptions options, const std::string& precision,
                          int recorded = kLayers) {
  options.hidden_size = 3 * 16;  // heads that fused kernels take
  options.intermediate_size = 64;
  const Outcome launched = train(options, precision, false);
  const Outcome replayed = train(options, precision, true);
  EXPECT_EQ(replayed.recordings, 2 * 2 * recorded) << options.position;
  ASSERT_EQ(launched.results.size(), replayed.results.size());
  const double tolerance = precision == "fp32" ? 1e-4 : 5e-2;
  for (const auto& [name, expected] : launched.results) {
    const double largest = expected.abs().max().item<double>();
    EXPECT_TRUE(near(replayed.results.at(name).cpu(), expected.cpu(), tolerance * largest))
        << options.position << " " << name;
  }
}

TEST(CudaGraphs, TrainAllEncodings) {
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    expect_same_training(tiny_options("all:" + kind.name, kLayers), "fp32");
    expect_same_training(tiny_options("all:" + kind.name, kLayers), "bf16");
  }
  expect_same_training(tiny_options("0-1:none,2-3:tupe-r", kLayers), "fp32");
}

// Masks of dropout come from the seed of each pass, not from that of the recording, in fused
// attention and in ours.
TEST(CudaGraphs, DrawTheSameDropout) {
  for (const std::string position : {"0-1:none,2-3:tupe-r", "all:shaw"}) {
    ModelOptions options = tiny_options(position, kLayers);
    options.dropout = options.attention_dropout = 0.3;
    expect_same_training(options, "fp32");
  }
}

TEST(CudaGraphs, GoWithRecomputedLayersAndAMaskDecoder) {
  ModelOptions options = tiny_options("all:tupe-r", kLayers);
  options.dropout = options.attention_dropout = 0.3;
  options.recompute = "1:full";
  expect_same_training(options, "fp32", 3);
  options.mask_decoder = "emd(steps=2)";
  expect_same_training(options, "fp32", 2);
}

TEST(CudaGraphs, AreOfCudaDevices) {
  EXPECT_THROW(cuda_graph_recorder(torch::kCPU), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::cuda_graphs_gpu_test

// Training from CUDA graphs against training from launched kernels.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "launcher/cuda_graphs.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::cuda_graphs_gpu_test {
namespace {

using torch::Tensor;

// Losses of eight passes with updates between them, and the last gradients.
std::map<std::string, Tensor> train(const ModelOptions& options, torch::ScalarType type,
                                    bool with_graphs) {
  const auto model = tiny_model(options, torch::kFloat32);
  torch::manual_seed(23);
  perturb(*model, 0.1);
  model->to(torch::kCUDA, type);
  model->train();
  if (with_graphs) model->record_layers(cuda_graph_recorder(torch::Device(torch::kCUDA, 0)));
  std::map<std::string, Tensor> results;
  for (int pass = 0; pass < 8; ++pass) {
    torch::manual_seed(100 + pass);
    TinyBatch batch(4, 16);
    clear_gradients(*model);
    const Tensor loss = model
                            ->masked_lm_loss(batch.input_ids.cuda(), torch::Tensor(),
                                             batch.masked_positions.cuda(), batch.labels.cuda())
                            .loss_sum;
    results["loss " + std::to_string(pass)] = loss.detach();
    loss.backward();
    const torch::NoGradGuard no_gradients;
    for (Tensor parameter : model->parameters()) {
      if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.01);
    }
  }
  const auto gradients = gradients_of(*model);
  results.insert(gradients.begin(), gradients.end());
  return results;
}

void expect_same_training(ModelOptions options, torch::ScalarType type) {
  options.hidden_size = 3 * 16;  // heads that fused kernels take
  options.intermediate_size = 64;
  const auto launched = train(options, type, false), replayed = train(options, type, true);
  ASSERT_EQ(launched.size(), replayed.size());
  const double tolerance = type == torch::kFloat32 ? 1e-4 : 5e-2;
  for (const auto& [name, expected] : launched) {
    const double largest = expected.abs().max().item<double>();
    EXPECT_TRUE(near(replayed.at(name).cpu(), expected.cpu(), tolerance * std::max(1.0, largest)))
        << options.position << " " << name;
  }
}

TEST(CudaGraphs, TrainAllEncodings) {
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    expect_same_training(tiny_options("all:" + kind.name, 4), torch::kFloat32);
    expect_same_training(tiny_options("all:" + kind.name, 4), torch::kBFloat16);
  }
  expect_same_training(tiny_options("0-1:none,2-3:tupe-r", 4), torch::kFloat32);
}

// Masks of dropout come from the seed of each pass, not from that of the recording.
TEST(CudaGraphs, DrawTheSameDropout) {
  ModelOptions options = tiny_options("0-1:none,2-3:tupe-r", 4);
  options.dropout = options.attention_dropout = 0.3;
  expect_same_training(options, torch::kFloat32);
}

TEST(CudaGraphs, AreOfCudaDevices) {
  EXPECT_THROW(cuda_graph_recorder(torch::kCPU), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::cuda_graphs_gpu_test

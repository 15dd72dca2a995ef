// Linked once with ranks as threads and once with ranks under mpirun (world_under_test.h).
#include "distributed/parameter_shards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "tests/distributed/world_under_test.h"

namespace tupelo {
namespace {

using testing::on_every_rank;

// Sizes that no number of ranks divides, and a matrix that several slices share.
std::vector<torch::Tensor> make_parameters(at::ScalarType type) {
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(5);
  std::vector<torch::Tensor> parameters;
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{7, 5}, {3}, {1}, {11, 4}, {}, {2, 3, 2}}) {
    parameters.push_back(torch::randn(shape, generator, torch::kFloat32).to(type));
    parameters.back().requires_grad_(true);
  }
  return parameters;
}

std::vector<torch::Tensor> copies_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

// A loss whose gradient depends on all parameters, the rank and the micro-batch.
torch::Tensor loss_of(const std::vector<torch::Tensor>& parameters, int rank, int micro_batch) {
  torch::Tensor sum = torch::zeros({}, torch::kFloat32);
  for (const torch::Tensor& parameter : parameters) {
    sum = sum + (parameter.to(torch::kFloat32) * (0.3 + 0.1 * rank)).sin().sum();
  }
  return sum * (1.0 + 0.5 * micro_batch);
}

// Plain gradient descent through slices; what the parameters are afterwards.
std::vector<torch::Tensor> trained(Communicator& communicator, at::ScalarType type,
                                   GradientReducerOptions options, int steps) {
  const std::vector<torch::Tensor> values = copies_of(make_parameters(torch::kFloat32));
  const std::vector<torch::Tensor> parameters = make_parameters(type);
  GradientReducer reducer(parameters, communicator, options);
  ParameterShards shards(reducer, communicator, values);
  for (int step = 0; step < steps; ++step) {
    reducer.zero();
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      reducer.overlap(micro_batch == 1);
      loss_of(parameters, communicator.rank(), micro_batch).backward();
    }
    reducer.finish();
    {
      const torch::NoGradGuard no_grad;
      for (const ParameterSlice& slice : shards.slices()) {
        if (slice.master.numel() == 0) continue;
        torch::Tensor master = slice.master;
        master.sub_(master.grad(), 0.05);
      }
    }
    shards.publish();
    shards.wait();
  }
  return copies_of(parameters);
}

void expect_same_bits(const std::vector<torch::Tensor>& left,
                      const std::vector<torch::Tensor>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(left[i].equal(right[i])) << "parameter " << i;
  }
}

class Shards : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(Shards, TrainAsUnshardedParametersDo) {
  const auto [world_size, bucket_bytes] = GetParam();
  on_every_rank(world_size, [bytes = bucket_bytes](Communicator& communicator) {
    for (const at::ScalarType type : {torch::kFloat32, torch::kBFloat16, torch::kHalf}) {
      const auto whole = trained(communicator, type, {.bucket_bytes = bytes}, 4);
      const auto sharded = trained(communicator, type, {.bucket_bytes = bytes, .scatter = true}, 4);
      expect_same_bits(whole, sharded);
      EXPECT_FALSE(whole[0].equal(make_parameters(type)[0].detach()));
    }
  });
}

// Each rank rounds, float32 sums, one more rounding: near the exact sums, and alike on all ranks.
TEST_P(Shards, GradientsMayTravelInSixteenBits) {
  const auto [world_size, bucket_bytes] = GetParam();
  on_every_rank(world_size, [bytes = bucket_bytes](Communicator& communicator) {
    const auto exact = trained(communicator, torch::kFloat32, {.bucket_bytes = bytes}, 4);
    for (const bool scatter : {false, true}) {
      const auto rounded =
          trained(communicator, torch::kFloat32,
                  {.bucket_bytes = bytes, .scatter = scatter, .wire = torch::kBFloat16}, 4);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_TRUE(rounded[i].allclose(exact[i], 1e-2, 1e-2));
        const torch::Tensor first = rounded[i].clone();
        communicator.broadcast(first, 0)->wait();
        EXPECT_TRUE(first.equal(rounded[i]));
      }
      EXPECT_FALSE(rounded[0].equal(exact[0]));
    }
  });
}

TEST_P(Shards, PartsMakeTheWholeToTheBit) {
  const auto [world_size, bucket_bytes] = GetParam();
  on_every_rank(world_size, [bytes = bucket_bytes](Communicator& communicator) {
    const std::vector<torch::Tensor> parameters = make_parameters(torch::kFloat32);
    GradientReducer reducer(parameters, communicator, {.bucket_bytes = bytes, .scatter = true});
    const ParameterShards shards(reducer, communicator, copies_of(parameters));
    torch::Tensor whole = torch::arange(35, torch::kFloat32).view({7, 5}) - 17;
    whole[0][0] = -0.0F;
    whole[6][4] = std::numeric_limits<float>::quiet_NaN();
    whole[3][1] = std::numeric_limits<float>::denorm_min();
    const torch::Tensor part = shards.part(0, whole).clone();
    EXPECT_EQ(part.numel(), shards.slices()[0].master.numel());
    const torch::Tensor again = shards.whole(0, part);
    EXPECT_EQ(again.sizes(), whole.sizes());
    EXPECT_TRUE(again.view(torch::kInt32).equal(whole.view(torch::kInt32)));
    double elements = 0;
    for (const ParameterSlice& slice : shards.slices()) elements += slice.master.numel();
    EXPECT_EQ(communicator.sum(elements), 35 + 3 + 1 + 44 + 1 + 12);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Shards,
                         ::testing::Combine(::testing::ValuesIn(testing::world_sizes()),
                                            ::testing::Values(1, 100, 4u << 20)));

class Masters : public ::testing::TestWithParam<int> {};

// 300 is no bfloat16, and 256 + 1 is 256 there.
TEST_P(Masters, GradientsAddUpInFloat32) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto parameter = torch::ones({3}, torch::kBFloat16).requires_grad_(true);
    GradientReducer reducer({parameter}, communicator);
    const ParameterShards shards(reducer, communicator, {torch::ones({3})});
    for (int step = 0; step < 2; ++step) {
      reducer.zero();
      for (int i = 0; i < 300; ++i) {
        reducer.overlap(i == 299);
        parameter.sum().backward();
      }
      reducer.finish();
      EXPECT_EQ(shards.slices()[0].master.grad().scalar_type(), torch::kFloat32);
      EXPECT_TRUE(
          shards.slices()[0].master.grad().eq(300 * communicator.world_size()).all().item<bool>());
    }
  });
}

TEST_P(Masters, KeepWhatSixteenBitsWouldLose) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    for (const bool scatter : {false, true}) {
      const torch::Tensor start = torch::full({5}, 1.0F / 3.0F);
      const auto parameter = start.to(torch::kBFloat16).requires_grad_(true);
      GradientReducer reducer({parameter}, communicator, {.scatter = scatter});
      ParameterShards shards(reducer, communicator, {start});
      torch::Tensor master = shards.slices()[0].master;
      EXPECT_TRUE(master.eq(1.0F / 3.0F).all().item<bool>());
      EXPECT_EQ(communicator.sum(static_cast<double>(shards.master_bytes())) > 0, true);
      for (int step = 0; step < 1000; ++step) {
        const torch::NoGradGuard no_grad;
        master.sub_(1e-4);
        shards.publish();
        shards.wait();
      }
      const float expected = static_cast<float>(1.0 / 3.0 - 0.1);
      EXPECT_TRUE(parameter.detach().allclose(torch::full({5}, expected).to(torch::kBFloat16)));
      EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf());
    }
  });
}

TEST_P(Masters, FullParametersOfEveryRankStayWhereTheyAre) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const std::vector<torch::Tensor> parameters = make_parameters(torch::kFloat32);
    const void* before = parameters[0].data_ptr();
    GradientReducer reducer(parameters, communicator);
    const ParameterShards shards(reducer, communicator, parameters);
    EXPECT_EQ(parameters[0].data_ptr(), before);
    EXPECT_TRUE(shards.slices()[0].master.is_same(parameters[0]));
    EXPECT_EQ(shards.master_bytes(), 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Masters, ::testing::ValuesIn(testing::world_sizes()));

}  // namespace
}  // namespace tupelo

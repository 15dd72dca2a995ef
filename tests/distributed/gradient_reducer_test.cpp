// Linked once with ranks as threads and once with ranks under mpirun (world_under_test.h).
#include "distributed/gradient_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/distributed/world_under_test.h"

namespace tupelo {
namespace {

using testing::on_every_rank;

const auto kDouble = torch::TensorOptions(torch::kFloat64);

// Two layers that share their weight, a table, a bias that stays unused, a scalar.
struct Parameters {
  torch::Tensor table, weight, unused, bias, scale;

  Parameters() {
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(3);
    const auto make = [&](torch::IntArrayRef shape) {
      return torch::randn(shape, generator, kDouble).requires_grad_(true);
    };
    table = make({7, 5});
    weight = make({5, 5});
    unused = make({9});
    bias = make({5});
    scale = make({});
  }

  std::vector<torch::Tensor> list() const { return {table, weight, unused, bias, scale}; }

  torch::Tensor loss(const torch::Tensor& rows) const {
    auto hidden = table.index_select(0, rows);
    for (int layer = 0; layer < 2; ++layer) hidden = torch::tanh(hidden.matmul(weight) + bias);
    return (hidden * scale).pow(2).sum();
  }
};

torch::Tensor rows_of(int rank, int micro_batch) {
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(100 + 10 * rank + micro_batch);
  return torch::randint(7, {4 + rank}, generator, torch::kInt64);
}

// Gradients of the same loss in one process.
std::vector<torch::Tensor> expected_gradients(int world_size, int micro_batches) {
  const Parameters parameters;
  auto loss = torch::zeros({}, kDouble);
  for (int rank = 0; rank < world_size; ++rank) {
    for (int i = 0; i < micro_batches; ++i) loss = loss + parameters.loss(rows_of(rank, i));
  }
  loss.backward();
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters.list()) {
    gradients.push_back(parameter.grad().defined() ? parameter.grad()
                                                   : torch::zeros_like(parameter));
  }
  return gradients;
}

void expect_gradients(const std::vector<torch::Tensor>& parameters,
                      const std::vector<torch::Tensor>& expected) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto difference = (parameters[i].grad() - expected[i]).abs().max().item<double>();
    const auto size = expected[i].abs().max().item<double>();
    EXPECT_LE(difference, 1e-12 * size) << "parameter " << i;
  }
}

// Passes everything on and notes what is sent, by the address of the data.
class RecordingCommunicator : public Communicator {
 public:
  explicit RecordingCommunicator(Communicator& inner) : inner_(inner) {}

  std::string backend() const override { return inner_.backend(); }
  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<Work> all_reduce(torch::Tensor tensor, ReduceOp op) override {
    sent.push_back(tensor.data_ptr());
    return inner_.all_reduce(std::move(tensor), op);
  }
  std::unique_ptr<Work> reduce_scatter(torch::Tensor output, torch::Tensor input,
                                       ReduceOp op) override {
    return inner_.reduce_scatter(std::move(output), std::move(input), op);
  }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    return inner_.all_gather(std::move(output), std::move(input));
  }
  std::unique_ptr<Work> broadcast(torch::Tensor tensor, int root) override {
    return inner_.broadcast(std::move(tensor), root);
  }
  void barrier() override { inner_.barrier(); }

  std::vector<const void*> sent;

 private:
  Communicator& inner_;
};

std::vector<const void*> addresses(const std::vector<torch::Tensor>& buckets, std::size_t count) {
  std::vector<const void*> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(buckets[i].data_ptr());
  return result;
}

class ReducerSums : public ::testing::TestWithParam<std::tuple<int, std::size_t, int, bool>> {};

TEST_P(ReducerSums, EqualTheGradientsOfASingleProcess) {
  const auto [world_size, bucket_bytes, micro_batches, overlap] = GetParam();
  const auto expected = expected_gradients(world_size, micro_batches);
  on_every_rank(world_size, [&, bytes = bucket_bytes, batches = micro_batches,
                             overlaps = overlap](Communicator& communicator) {
    const Parameters parameters;
    GradientReducer reducer(parameters.list(), communicator, {.bucket_bytes = bytes});
    std::vector<const void*> views;
    for (const auto& each : parameters.list()) views.push_back(each.grad().data_ptr());
    for (int step = 0; step < 3; ++step) {
      reducer.zero();
      for (int i = 0; i < batches; ++i) {
        reducer.overlap(overlaps && i + 1 == batches);
        parameters.loss(rows_of(communicator.rank(), i)).backward();
      }
      reducer.finish();
      expect_gradients(parameters.list(), expected);
      EXPECT_GE(reducer.exposed_seconds(), 0);
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(parameters.list()[i].grad().data_ptr(), views[i]) << "parameter " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReducerSums,
                         ::testing::Combine(::testing::ValuesIn(testing::world_sizes()),
                                            ::testing::Values(1, 250, 4u << 20),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()));

class GradientReducerTest : public ::testing::TestWithParam<int> {};

TEST_P(GradientReducerTest, BucketsAreFlatFullAndInReverseOrder) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const Parameters parameters;
    // 8, 40, 72, 200 and 280 bytes, from the last parameter to the first.
    GradientReducer reducer(parameters.list(), communicator, {.bucket_bytes = 120});
    ASSERT_EQ(reducer.bucket_count(), 3u);
    const auto buckets = reducer.buckets();
    EXPECT_EQ(buckets[0].numel(), 1 + 5 + 9);
    EXPECT_EQ(buckets[1].numel(), 25);
    EXPECT_EQ(buckets[2].numel(), 35);
    EXPECT_EQ(parameters.scale.grad().data_ptr(), buckets[0].data_ptr());
    parameters.bias.mutable_grad().fill_(2);
    EXPECT_EQ(buckets[0].sum().item<double>(), 10);
    EXPECT_EQ(parameters.table.grad().sizes(), parameters.table.sizes());
    reducer.zero();
    EXPECT_EQ(parameters.bias.grad().abs().sum().item<double>(), 0);
  });
}

TEST_P(GradientReducerTest, KeepsDtypesApart) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    std::vector<torch::Tensor> parameters;
    for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kFloat32, torch::kFloat64}) {
      parameters.push_back(torch::ones({3}, dtype).requires_grad_(true));
    }
    GradientReducer reducer(parameters, communicator);
    ASSERT_EQ(reducer.bucket_count(), 2u);
    EXPECT_EQ(reducer.buckets()[0].scalar_type(), torch::kFloat64);
    EXPECT_EQ(reducer.buckets()[1].scalar_type(), torch::kFloat32);
    reducer.overlap(true);
    auto loss = torch::zeros({}, kDouble);
    for (const auto& parameter : parameters) loss = loss + parameter.sum().to(torch::kFloat64);
    loss.backward();
    reducer.finish();
    for (const auto& each : parameters) {
      EXPECT_TRUE(each.grad().eq(communicator.world_size()).all().item<bool>());
    }
  });
}

TEST_P(GradientReducerTest, SendsDuringBackwardOnlyWhenOverlapping) {
  on_every_rank(GetParam(), [](Communicator& inner) {
    RecordingCommunicator communicator(inner);
    const Parameters parameters;
    GradientReducer reducer(parameters.list(), communicator, {.bucket_bytes = 1});
    const auto buckets = reducer.buckets();
    ASSERT_EQ(buckets.size(), 5u);
    reducer.zero();
    reducer.overlap(false);
    parameters.loss(rows_of(0, 0)).backward();
    EXPECT_TRUE(communicator.sent.empty());
    reducer.overlap(true);
    parameters.loss(rows_of(0, 1)).backward();
    // scale, bias; then the unused one holds back weight and table
    EXPECT_EQ(communicator.sent, addresses(buckets, 2));
    reducer.finish();
    EXPECT_EQ(communicator.sent, addresses(buckets, 5));
  });
}

// Ranks use their parameters in different orders, so that backward finishes them in different
// orders.
TEST_P(GradientReducerTest, BucketsLeaveInOneOrderWhateverBackwardDoes) {
  constexpr int kParameters = 6;
  on_every_rank(GetParam(), [](Communicator& inner) {
    RecordingCommunicator communicator(inner);
    std::vector<torch::Tensor> parameters;
    for (int i = 0; i < kParameters; ++i) {
      parameters.push_back(torch::full({3 + i}, 1.0 + i, kDouble).requires_grad_(true));
    }
    GradientReducer reducer(parameters, communicator, {.bucket_bytes = 1});
    const auto buckets = reducer.buckets();
    std::vector<int> order{0, 1, 2, 3, 4, 5};
    for (int step = 0; step < 12; ++step) {
      std::rotate(order.begin(), order.begin() + 1 + communicator.rank(), order.end());
      if ((step + communicator.rank()) % 2 == 0) std::reverse(order.begin(), order.end());
      communicator.sent.clear();
      reducer.zero();
      reducer.overlap(true);
      auto loss = torch::zeros({}, kDouble);
      for (const int i : order) loss = loss * 1.0 + (parameters[i] * (1.0 + i)).sum();
      loss.backward();
      reducer.finish();
      EXPECT_EQ(communicator.sent, addresses(buckets, buckets.size()));
      for (int i = 0; i < kParameters; ++i) {
        EXPECT_TRUE(
            parameters[i].grad().eq((1.0 + i) * communicator.world_size()).all().item<bool>());
      }
    }
  });
}

TEST_P(GradientReducerTest, AParameterUnusedOnOneRankCountsAsZeroThere) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto shared = torch::ones({4}, kDouble).requires_grad_(true);
    const auto moody = torch::ones({4}, kDouble).requires_grad_(true);
    GradientReducer reducer({shared, moody}, communicator, {.bucket_bytes = 1});
    const bool uses_it = communicator.rank() == communicator.world_size() - 1;
    for (int step = 0; step < 2; ++step) {
      reducer.zero();
      reducer.overlap(true);
      auto loss = shared.sum();
      if (uses_it) loss = loss + 3 * moody.sum();
      loss.backward();
      reducer.finish();
      EXPECT_TRUE(shared.grad().eq(communicator.world_size()).all().item<bool>());
      EXPECT_TRUE(moody.grad().eq(3).all().item<bool>());
    }
  });
}

TEST_P(GradientReducerTest, ASecondBackwardAfterOverlapIsRefused) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto parameter = torch::ones({4}, kDouble).requires_grad_(true);
    GradientReducer reducer({parameter}, communicator);
    reducer.zero();
    reducer.overlap(true);
    parameter.sum().backward();
    EXPECT_THROW(parameter.sum().backward(), c10::Error);
    EXPECT_THROW(reducer.overlap(true), c10::Error) << "a bucket is still under way";
    communicator.barrier();
  });
}

TEST_P(GradientReducerTest, ALostViewIsNoticed) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto parameter = torch::ones({4}, kDouble).requires_grad_(true);
    GradientReducer reducer({parameter}, communicator);
    parameter.pow(2).sum().backward({}, std::nullopt, /*create_graph=*/true);
    EXPECT_THROW(reducer.finish(), c10::Error);
    reducer.zero();
    parameter.mutable_grad().reset();
    parameter.sum().backward();
    EXPECT_THROW(reducer.finish(), c10::Error);
    reducer.zero();
    parameter.sum().backward();
    reducer.finish();
    EXPECT_TRUE(parameter.grad().eq(communicator.world_size()).all().item<bool>());
  });
}

TEST_P(GradientReducerTest, AGraphMayOutliveItsReducerAndANewOneTakesOver) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto parameter = torch::ones({4}, kDouble).requires_grad_(true);
    torch::Tensor loss;
    {
      GradientReducer first({parameter}, communicator);
      first.overlap(true);
      loss = parameter.sum();
    }
    loss.backward({}, /*retain_graph=*/true);
    GradientReducer second({parameter}, communicator);
    second.overlap(true);
    loss.backward();
    second.finish();
    EXPECT_TRUE(parameter.grad().eq(communicator.world_size()).all().item<bool>());
  });
}

TEST_P(GradientReducerTest, RefusesWhatIsNotAParameter) {
  on_every_rank(GetParam(), [](Communicator& communicator) {
    const auto parameter = torch::ones({4}, kDouble).requires_grad_(true);
    EXPECT_THROW(GradientReducer({torch::ones({4})}, communicator), c10::Error);
    EXPECT_THROW(GradientReducer({parameter * 2}, communicator), c10::Error);
    EXPECT_THROW(GradientReducer({parameter, parameter}, communicator), c10::Error);
    GradientReducer nothing({}, communicator);
    nothing.zero();
    nothing.overlap(true);
    nothing.finish();
  });
}

INSTANTIATE_TEST_SUITE_P(All, GradientReducerTest, ::testing::ValuesIn(testing::world_sizes()));

}  // namespace
}  // namespace tupelo

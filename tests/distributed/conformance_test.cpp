// What every backend must do, whatever carries its bytes: linked once per backend
// (world_under_test.h).
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "tests/distributed/world_under_test.h"

namespace tupelo {
namespace {

using testing::on_every_rank;
using testing::test_device;
using torch::indexing::Slice;

// Small integers, so that every dtype holds them and their sums exactly; another pattern on each
// rank.
torch::Tensor pattern(int rank, std::int64_t size, torch::ScalarType dtype) {
  return ((torch::arange(size, torch::kInt64) * 7 + rank * 3 + 5 * rank * rank) % 23)
      .to(test_device(), dtype);
}

torch::Tensor reduced_pattern(int world_size, std::int64_t size, torch::ScalarType dtype,
                              ReduceOp op) {
  auto result = pattern(0, size, torch::kInt64);
  for (int rank = 1; rank < world_size; ++rank) {
    const auto other = pattern(rank, size, torch::kInt64);
    result = op == ReduceOp::kSum   ? result + other
             : op == ReduceOp::kMax ? torch::maximum(result, other)
                                    : torch::minimum(result, other);
  }
  return result.to(dtype);
}

void expect_equal(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(torch::equal(actual, expected))
      << "of " << actual.numel() << " elements of " << actual.scalar_type() << " "
      << actual.ne(expected).sum().item<std::int64_t>() << " differ";
}

// Stands for what exceeds a chunk of 4 MiB by a few elements, in any dtype.
constexpr std::int64_t kLarge = -1;

class Collectives
    : public ::testing::TestWithParam<std::tuple<int, torch::ScalarType, std::int64_t>> {
 protected:
  int world_size() const { return std::get<0>(GetParam()); }
  torch::ScalarType dtype() const { return std::get<1>(GetParam()); }
  std::int64_t size() const {
    const auto size = std::get<2>(GetParam());
    if (size != kLarge) return size;
    return (4 << 20) / static_cast<std::int64_t>(torch::elementSize(dtype())) + 13;
  }
  // Of a reduce_scatter whose input is such a tensor.
  std::int64_t slice_size() const {
    return std::get<2>(GetParam()) == kLarge ? size() / world_size() : size();
  }
  // Of large tensors one operation is enough.
  std::vector<ReduceOp> ops() const {
    if (std::get<2>(GetParam()) == kLarge) return {ReduceOp::kSum};
    return {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};
  }
};

TEST_P(Collectives, AllReduce) {
  on_every_rank(world_size(), [&](Communicator& communicator) {
    for (const auto op : ops()) {
      auto tensor = pattern(communicator.rank(), size(), dtype());
      communicator.all_reduce(tensor, op)->wait();
      expect_equal(tensor, reduced_pattern(world_size(), size(), dtype(), op));
    }
  });
}

TEST_P(Collectives, ReduceScatter) {
  on_every_rank(world_size(), [&](Communicator& communicator) {
    const auto slice = slice_size();
    const auto whole = slice * world_size();
    for (const auto op : ops()) {
      const auto input = pattern(communicator.rank(), whole, dtype());
      auto output = torch::zeros({slice}, input.options());
      communicator.reduce_scatter(output, input, op)->wait();
      const auto begin = slice * communicator.rank();
      expect_equal(
          output,
          reduced_pattern(world_size(), whole, dtype(), op).index({Slice(begin, begin + slice)}));
      expect_equal(input, pattern(communicator.rank(), whole, dtype()));
    }
  });
}

TEST_P(Collectives, AllGather) {
  on_every_rank(world_size(), [&](Communicator& communicator) {
    const auto input = pattern(communicator.rank(), size(), dtype());
    auto output = torch::zeros({size() * world_size()}, input.options());
    communicator.all_gather(output, input)->wait();
    for (int rank = 0; rank < world_size(); ++rank) {
      expect_equal(output.index({Slice(size() * rank, size() * (rank + 1))}),
                   pattern(rank, size(), dtype()));
    }
  });
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  on_every_rank(world_size(), [&](Communicator& communicator) {
    for (int root = 0; root < world_size(); ++root) {
      auto tensor = pattern(communicator.rank(), size(), dtype());
      communicator.broadcast(tensor, root)->wait();
      expect_equal(tensor, pattern(root, size(), dtype()));
    }
  });
}

// Nothing, one, fewer than ranks, odd ones that travel as small and as large tensors, several
// chunks.
INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         ::testing::Combine(::testing::ValuesIn(testing::world_sizes()),
                                            ::testing::Values(torch::kFloat32, torch::kFloat64,
                                                              torch::kBFloat16, torch::kFloat16,
                                                              torch::kInt32, torch::kInt64,
                                                              torch::kUInt8),
                                            ::testing::Values(0, 1, 2, 777, 9001, kLarge)),
                         [](const auto& test) {
                           const auto size = std::get<2>(test.param);
                           return std::to_string(std::get<0>(test.param)) + "ranks_" +
                                  c10::toString(std::get<1>(test.param)) + "_" +
                                  (size == kLarge ? "large" : std::to_string(size));
                         });

class World : public ::testing::TestWithParam<int> {};

TEST_P(World, KnowsItself) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    EXPECT_EQ(communicator.world_size(), GetParam());
    auto seen =
        torch::zeros({GetParam()}, torch::TensorOptions(torch::kInt32).device(test_device()));
    seen[communicator.rank()] = 1;
    communicator.all_reduce(seen)->wait();
    EXPECT_TRUE(seen.eq(1).all().item<bool>());
  });
}

TEST_P(World, SeveralWorksAreInFlightAndWaitedForInAnyOrder) {
  constexpr int kWorks = 9;
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    const auto size_of = [](int i) { return 1 + 40000 * i; };
    std::vector<torch::Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < kWorks; ++i) {
      tensors.push_back(pattern(communicator.rank() + i, size_of(i), torch::kFloat32));
      works.push_back(i % 3 == 2
                          ? communicator.broadcast(tensors.back(), i % GetParam())
                          : communicator.all_reduce(tensors.back(),
                                                    i % 3 == 0 ? ReduceOp::kSum : ReduceOp::kMax));
    }
    for (int i = 0; i < kWorks; ++i) {
      const int next = (communicator.rank() % 2 == 0 ? i * 4 : (kWorks - 1 - i) * 2) % kWorks;
      works[next]->wait();
      works[next]->wait();
      EXPECT_TRUE(test_device().is_cuda() || works[next]->is_completed());
    }
    for (int i = 0; i < kWorks; ++i) {
      auto expected = pattern(i, size_of(i), torch::kFloat32);
      if (i % 3 == 2) {
        expected = pattern(i % GetParam() + i, size_of(i), torch::kFloat32);
      } else {
        for (int rank = 1; rank < GetParam(); ++rank) {
          const auto other = pattern(rank + i, size_of(i), torch::kFloat32);
          expected = i % 3 == 0 ? expected + other : torch::maximum(expected, other);
        }
      }
      expect_equal(tensors[i], expected);
    }
  });
}

TEST_P(World, AWorkThatNobodyWaitsForIsDoneAllTheSame) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    auto tensor = pattern(communicator.rank(), 100003, torch::kFloat64);
    communicator.all_reduce(tensor);
    communicator.barrier();
    expect_equal(tensor, reduced_pattern(GetParam(), 100003, torch::kFloat64, ReduceOp::kSum));
  });
}

// Or else a later tensor may get their memory, and with it what is received.
TEST_P(World, TheCommunicatorKeepsTensorsAliveUntilTheyAreDone) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    std::vector<torch::Tensor> later;
    for (int i = 0; i < 20; ++i) {
      communicator.all_reduce(pattern(communicator.rank(), 300007, torch::kFloat32));
      later.push_back(pattern(communicator.rank(), 300007, torch::kFloat32));
    }
    communicator.barrier();
    for (const auto& tensor : later) {
      expect_equal(tensor, pattern(communicator.rank(), 300007, torch::kFloat32));
    }
  });
}

// The monotonic clock is the host's, so that times of several processes compare.
TEST_P(World, NobodyLeavesABarrierBeforeAllHaveEntered) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    for (int i = 0; i < 20; ++i) {
      const double entered = now();
      communicator.barrier();
      const double left = now();
      EXPECT_LE(communicator.max(entered), -communicator.max(-left));
    }
  });
}

TEST_P(World, ScalarHelpers) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const int n = GetParam();
    EXPECT_EQ(communicator.sum(rank + 0.5), n * (n - 1) / 2 + 0.5 * n);
    EXPECT_EQ(communicator.max(-1.0 - rank), -1.0);
    EXPECT_EQ(communicator.sum(std::vector<double>{1.0, 2.0 * rank}),
              (std::vector<double>{1.0 * n, 1.0 * n * (n - 1)}));
    EXPECT_EQ(communicator.sum(std::vector<double>{}), std::vector<double>{});
    const auto huge = std::numeric_limits<std::uint64_t>::max() - 2;
    EXPECT_EQ(communicator.sum(huge + rank),
              static_cast<std::uint64_t>(n) * huge + static_cast<std::uint64_t>(n * (n - 1) / 2));
    EXPECT_TRUE(communicator.all_agree(true));
    EXPECT_FALSE(communicator.all_agree(rank != n - 1));
    EXPECT_TRUE(communicator.any(rank == n - 1));
    EXPECT_FALSE(communicator.any(false));
  });
}

TEST_P(World, StringsAreBroadcastFromEveryRoot) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    for (int root = 0; root < GetParam(); ++root) {
      const auto text = [](int rank) {
        return std::string("rank\0", 5) + std::to_string(rank) + std::string(70000u * rank, 'x');
      };
      EXPECT_EQ(communicator.broadcast(text(communicator.rank()), root), text(root));
      const bool is_root = communicator.rank() == root;
      EXPECT_EQ(communicator.broadcast(std::string(is_root ? "" : "something"), root), "");
    }
  });
}

TEST_P(World, ABrokenContractIsRefusedAndTheWorldLivesOn) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    const auto options = torch::TensorOptions(torch::kFloat32).device(test_device());
    const auto good = torch::zeros({4}, options);
    EXPECT_THROW(communicator.all_reduce({}), c10::Error);
    EXPECT_THROW(communicator.all_reduce(torch::zeros({4, 4}, options).t()), c10::Error);
    EXPECT_THROW(communicator.all_reduce(torch::zeros({4}, options.dtype(torch::kInt16))),
                 c10::Error);
    EXPECT_THROW(communicator.all_reduce(torch::zeros({4}, options.dtype(torch::kComplexFloat))),
                 c10::Error);
    EXPECT_THROW(communicator.broadcast(good, -1), c10::Error);
    EXPECT_THROW(communicator.broadcast(good, GetParam()), c10::Error);
    const auto short_output = torch::zeros({4 * GetParam() - 1}, options);
    EXPECT_THROW(communicator.all_gather(short_output, good), c10::Error);
    EXPECT_THROW(communicator.reduce_scatter(good, short_output), c10::Error);
    EXPECT_THROW(communicator.all_gather(
                     torch::zeros({4 * GetParam()}, options.dtype(torch::kFloat64)), good),
                 c10::Error);
    EXPECT_EQ(communicator.sum(1.0), GetParam());
  });
}

TEST_P(World, EveryRankHasTheSameBits) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    torch::manual_seed(1);
    for (const std::int64_t size : {100, 1200017}) {
      for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
        auto tensor = (torch::rand({size}) + communicator.rank()).to(test_device(), dtype);
        communicator.all_reduce(tensor)->wait();
        auto first = tensor.clone();
        communicator.broadcast(first, 0)->wait();
        expect_equal(tensor, first);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, World, ::testing::ValuesIn(testing::world_sizes()));

}  // namespace
}  // namespace tupelo

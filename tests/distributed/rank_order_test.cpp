// What the backends that reduce on the CPU promise beyond conformance: the bits of a sum in rank
// order.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/distributed/world_under_test.h"

namespace tupelo {
namespace {

using testing::on_every_rank;

class RankOrder : public ::testing::TestWithParam<int> {
 protected:
  // Of such different magnitude that another order of summation gives other bits.
  std::vector<torch::Tensor> values(std::int64_t size) const {
    torch::manual_seed(7);
    std::vector<torch::Tensor> all;
    for (int rank = 0; rank < GetParam(); ++rank) {
      all.push_back(torch::randn({size}) * std::pow(10.0, rank % 3));
    }
    return all;
  }

  torch::Tensor sum_of(const std::vector<torch::Tensor>& all) const {
    auto sum = all.front().clone();
    for (std::size_t rank = 1; rank < all.size(); ++rank) sum += all[rank];
    return sum;
  }
};

// Sizes for both ways of a backend, that for small and that for large tensors.
TEST_P(RankOrder, AllReduce) {
  for (const std::int64_t size : {500, 1500007}) {
    const auto all = values(size);
    on_every_rank(GetParam(), [&](Communicator& communicator) {
      auto tensor = all[communicator.rank()].clone();
      communicator.all_reduce(tensor)->wait();
      EXPECT_TRUE(torch::equal(tensor, sum_of(all))) << size;
    });
  }
}

TEST_P(RankOrder, ReduceScatterGivesTheBitsOfAllReduce) {
  const std::int64_t slice = 700001;
  const auto all = values(slice * GetParam());
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    auto output = torch::zeros({slice});
    communicator.reduce_scatter(output, all[communicator.rank()])->wait();
    EXPECT_TRUE(torch::equal(output, sum_of(all).narrow(0, slice * communicator.rank(), slice)));
  });
}

// 256 + 1 is 256 in bfloat16: a sum that is rounded after every rank would never move.
TEST_P(RankOrder, SixteenBitSumsAreRoundedOnce) {
  on_every_rank(GetParam(), [&](Communicator& communicator) {
    for (const std::int64_t size : {3, 100003}) {
      auto tensor = torch::full({size}, communicator.rank() == 0 ? 256.0 : 1.0, torch::kBFloat16);
      communicator.all_reduce(tensor)->wait();
      EXPECT_TRUE(torch::equal(tensor, torch::full({size}, 255.0 + GetParam(), torch::kBFloat16)));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, RankOrder, ::testing::ValuesIn(testing::world_sizes()));

}  // namespace
}  // namespace tupelo

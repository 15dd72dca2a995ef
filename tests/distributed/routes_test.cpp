// Under mpirun: that the bits of a collective are those of the local backend, whichever way they
// travel, and what they are where sums are taken host by host.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/distributed/mpi_main.h"
#include "tests/distributed/placements.h"
#include "tests/distributed/threads_as_ranks.h"

namespace tupelo {
namespace {

using testing::mpi_runtime;
using testing::Placement;

constexpr std::int64_t kSmallBytes = 8 << 10;
constexpr std::int64_t kHostChunkBytes = 128 << 10;
constexpr std::int64_t kHierarchyChunkBytes = 1 << 20;

int world_size() { return mpi_runtime().world_size(); }

// Numbers of such different magnitude that another order of summation gives other bits; the same on
// every rank, for every rank.
class Values {
 public:
  explicit Values(std::int64_t largest) {
    torch::manual_seed(5);
    numbers_ = torch::randn({largest + kShift * world_size()});
  }

  std::vector<torch::Tensor> of_ranks(std::int64_t size, torch::ScalarType dtype) const {
    std::vector<torch::Tensor> all;
    for (int rank = 0; rank < world_size(); ++rank) {
      const double scale = rank % 3 == 0 ? 1 : rank % 3 == 1 ? 37 : 0.01;
      const auto mine = numbers_.narrow(0, rank * kShift, size);
      all.push_back(torch::isFloatingType(dtype) ? (mine * scale).to(dtype)
                                                 : (mine.abs() * 60).to(dtype));
    }
    return all;
  }

 private:
  static constexpr std::int64_t kShift = 13;
  torch::Tensor numbers_;
};

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.numel() == b.numel() &&
         (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

// What each collective leaves on the rank of `communicator`.
std::vector<torch::Tensor> results(Communicator& communicator,
                                   const std::vector<torch::Tensor>& all, ReduceOp op) {
  const auto& mine = all[static_cast<std::size_t>(communicator.rank())];
  const std::int64_t slice = mine.numel() / communicator.world_size();
  const auto reduced = mine.clone();
  const auto scattered = torch::zeros({slice}, mine.options());
  const auto gathered = torch::zeros({mine.numel() * communicator.world_size()}, mine.options());
  const auto received = mine.clone();
  communicator.all_reduce(reduced, op);
  communicator.reduce_scatter(scattered, mine.narrow(0, 0, slice * communicator.world_size()), op);
  communicator.all_gather(gathered, mine);
  communicator.broadcast(received, communicator.world_size() / 2);
  communicator.barrier();
  return {reduced, scattered, gathered, received};
}

std::vector<torch::Tensor> local_results(const std::vector<torch::Tensor>& all, ReduceOp op) {
  std::vector<torch::Tensor> own;
  const auto body = [&](Communicator& communicator) {
    auto found = results(communicator, all, op);
    if (communicator.rank() == mpi_runtime().rank()) own = std::move(found);
  };
  for (const auto& failure : testing::run_ranks(world_size(), body)) {
    if (failure) std::rethrow_exception(failure);
  }
  return own;
}

void expect_same(const std::vector<torch::Tensor>& actual,
                 const std::vector<torch::Tensor>& expected) {
  const std::vector<std::string> names = {"all_reduce", "reduce_scatter", "all_gather",
                                          "broadcast"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(same_bits(actual[i], expected[i]))
        << names[i] << " of " << actual[i].numel() << " " << actual[i].scalar_type();
  }
}

std::unique_ptr<Communicator> communicator_by(Route route, Placement placement = {}) {
  if (placement.empty()) placement.resize(static_cast<std::size_t>(world_size()), 0);
  return make_mpi_communicator(
      mpi_runtime(),
      {.timeout = std::chrono::seconds(60), .route = route, .host_of_rank = std::move(placement)});
}

class Routes : public ::testing::TestWithParam<std::tuple<torch::ScalarType, ReduceOp>> {
 protected:
  torch::ScalarType dtype() const { return std::get<0>(GetParam()); }
  ReduceOp op() const { return std::get<1>(GetParam()); }

  // Around the sizes at which a backend changes its ways. Of large ones one operation is enough.
  std::vector<std::int64_t> sizes(std::int64_t chunk_bytes, std::int64_t chunks) const {
    const auto width = static_cast<std::int64_t>(torch::elementSize(dtype()));
    std::vector<std::int64_t> all = {0, 1, 2, 3, 5};
    for (const int more : {-1, 0, 1}) all.push_back(kSmallBytes / width + more);
    if (op() != ReduceOp::kSum) return all;
    for (const int more : {0, 1}) all.push_back(chunk_bytes / width + more);
    all.push_back(chunks * chunk_bytes / width - 1);
    return all;
  }
};

TEST_P(Routes, SharedMemoryAndMessagesGiveTheBitsOfThreads) {
  const auto shared = communicator_by(Route::kShared);
  const auto messages = communicator_by(Route::kMessages);
  const auto all_sizes = sizes(kHostChunkBytes, 6);
  const Values values(all_sizes.back());
  for (const auto size : all_sizes) {
    const auto all = values.of_ranks(size, dtype());
    const auto expected = local_results(all, op());
    expect_same(results(*shared, all, op()), expected);
    expect_same(results(*messages, all, op()), expected);
  }
}

torch::Tensor reduced(const torch::Tensor& a, const torch::Tensor& b, ReduceOp op) {
  return op == ReduceOp::kSum   ? a + b
         : op == ReduceOp::kMax ? torch::maximum(a, b)
                                : torch::minimum(a, b);
}

// The definition: over ranks of a host in their order, then over hosts in the order of their first
// ranks; 16-bit floats in float32, rounded at the end.
torch::Tensor host_by_host(const std::vector<torch::Tensor>& all, const Placement& placement,
                           ReduceOp op) {
  const auto dtype = all.front().scalar_type();
  const bool is_half = dtype == torch::kBFloat16 || dtype == torch::kFloat16;
  std::vector<int> order;
  std::map<int, torch::Tensor> of_host;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto value = all[rank].to(is_half ? torch::kFloat32 : dtype);
    auto& sum = of_host[placement[rank]];
    if (!sum.defined()) order.push_back(placement[rank]);
    sum = sum.defined() ? reduced(sum, value, op) : value;
  }
  auto total = of_host[order.front()];
  for (std::size_t i = 1; i < order.size(); ++i) total = reduced(total, of_host[order[i]], op);
  return total.to(dtype);
}

TEST_P(Routes, AHierarchyReducesHostByHost) {
  const auto all_sizes = sizes(kHierarchyChunkBytes, 2);
  const Values values(all_sizes.back());
  for (const auto& placement : testing::placements_of(world_size())) {
    SCOPED_TRACE("hosts of ranks: " + testing::describe(placement));
    const auto hierarchical = communicator_by(Route::kHierarchical, placement);
    for (const auto size : all_sizes) {
      const auto all = values.of_ranks(size, dtype());
      const auto total = host_by_host(all, placement, op());
      const std::int64_t slice = size / world_size();
      const auto found = results(*hierarchical, all, op());
      const auto own = total.narrow(0, slice * mpi_runtime().rank(), slice).clone();
      expect_same(found,
                  {total, own, torch::cat(all), all[static_cast<std::size_t>(world_size() / 2)]});
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Routes::ParamType>& test) {
  const ReduceOp op = std::get<1>(test.param);
  return std::string(c10::toString(std::get<0>(test.param))) + (op == ReduceOp::kSum   ? "_sum"
                                                                : op == ReduceOp::kMax ? "_max"
                                                                                       : "_min");
}

INSTANTIATE_TEST_SUITE_P(
    All, Routes,
    ::testing::Combine(::testing::Values(torch::kFloat32, torch::kFloat64, torch::kBFloat16,
                                         torch::kFloat16, torch::kInt32, torch::kInt64,
                                         torch::kUInt8),
                       ::testing::Values(ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin)),
    name_of);

// So that the test above would notice a hierarchy that is none.
TEST(HostByHost, IsNotTheOrderOfRanks) {
  const auto all = Values(1000).of_ranks(1000, torch::kFloat32);
  Placement apart(all.size(), 1);
  apart[0] = 0;
  const auto in_rank_order = host_by_host(all, Placement(all.size(), 0), ReduceOp::kSum);
  EXPECT_FALSE(same_bits(host_by_host(all, apart, ReduceOp::kSum), in_rank_order));
}

TEST(Route, AutoSharesMemoryOnOneHostAndGoesByHostsOnSeveral) {
  const auto n = static_cast<std::size_t>(world_size());
  EXPECT_EQ(communicator_by(Route::kAuto)->route(), "mpi through shared memory");
  EXPECT_EQ(communicator_by(Route::kHierarchical)->route(), "mpi through shared memory");
  EXPECT_EQ(communicator_by(Route::kMessages)->route(), "mpi in messages");
  Placement alone(n);
  for (std::size_t rank = 0; rank < n; ++rank) alone[rank] = static_cast<int>(rank);
  EXPECT_EQ(communicator_by(Route::kAuto, alone)->route(), "mpi in messages");
  auto two = alone;
  two[n - 1] = two[n - 2];
  EXPECT_EQ(communicator_by(Route::kAuto, two)->route(),
            "mpi, hierarchical over " + std::to_string(n - 1) + " hosts");
}

TEST(Route, MemoryIsNotSharedBetweenHosts) {
  const auto n = static_cast<std::size_t>(world_size());
  Placement two(n, 0);
  two[n - 1] = 1;
  EXPECT_THROW(communicator_by(Route::kShared, two), std::invalid_argument);
  EXPECT_EQ(communicator_by(Route::kAuto)->sum(1.0), world_size());
}

}  // namespace
}  // namespace tupelo

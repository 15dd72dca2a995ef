#include "launcher/agreement.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "data/batch_stream.h"
#include "data/errors.h"
#include "distributed/backends.h"
#include "launcher/exit_codes.h"
#include "launcher/ledger.h"

namespace tupelo::agreement_test {
namespace {

// Runs `body(communicator)` on one thread per rank.
void on_ranks(int world_size, const std::function<void(Communicator&)>& body) {
  auto world = make_local_world(world_size);
  std::vector<std::thread> threads;
  for (auto& communicator : world) threads.emplace_back([&] { body(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Agreement, NobodyFails) {
  std::atomic<int> done{0};
  on_ranks(3, [&](Communicator& communicator) { together(communicator, [&] { ++done; }); });
  EXPECT_EQ(done, 3);
}

TEST(Agreement, AllThrowTheLowestRanksError) {
  std::atomic<int> caught{0};
  on_ranks(4, [&](Communicator& communicator) {
    try {
      together(communicator, [&] {
        if (communicator.rank() == 2) throw CorpusError("shard seven is torn");
        if (communicator.rank() == 3) throw std::invalid_argument("not this one");
      });
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kCorrupt);
      EXPECT_STREQ(error.what(), "rank 2: shard seven is torn");
      ++caught;
    }
  });
  EXPECT_EQ(caught, 4);
}

TEST(Agreement, RankZeroActsForAll) {
  std::atomic<int> acted{0}, caught{0};
  on_ranks(2, [&](Communicator& communicator) {
    try {
      on_rank_zero(communicator, [&] {
        ++acted;
        throw std::system_error(ENOSPC, std::generic_category(), "cannot write x");
      });
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      ++caught;
    }
  });
  EXPECT_EQ(acted, 1);
  EXPECT_EQ(caught, 2);
}

TEST(FirstFailure, IsThatOfTheLowestRankOnAll) {
  on_ranks(3, [&](Communicator& communicator) {
    EXPECT_FALSE(first_failure(std::nullopt, communicator));
    std::optional<Failure> own;
    if (communicator.rank() > 0) {
      own = failure_of(CorpusError("of " + std::to_string(communicator.rank())), communicator);
    }
    const auto failure = first_failure(own, communicator);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_EQ(failure->code, ExitCode::kCorrupt);
    EXPECT_EQ(failure->sentence, "of 1");
    EXPECT_EQ(failure->text(), "rank 1: of 1");
  });
}

Batch rows_of(std::uint64_t epoch, std::vector<std::uint64_t> rows) {
  Batch batch;
  batch.epochs.assign(rows.size(), epoch);
  batch.corpora.assign(rows.size(), 0);
  batch.rows = std::move(rows);
  return batch;
}

// One row per step, in epochs of `rows` rows.
SampleOrder rows_one_by_one(std::uint64_t rows) {
  std::vector<std::uint64_t> offsets(rows + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  DataOptions options;
  options.packing = Packing::kDocument;
  options.global_batch = 1;
  return SampleOrder({{&offsets}}, options);
}

TEST(Ledger, ClosesAnEpochThatUsedEachRowOnce) {
  const SampleOrder order = rows_one_by_one(5);
  on_ranks(2, [&](Communicator& communicator) {
    Ledger ledger(order);
    ledger.record(communicator.rank() == 0 ? rows_of(0, {4, 1}) : rows_of(0, {0, 2}));
    EXPECT_TRUE(ledger.close_epochs(4, communicator).empty());
    EXPECT_EQ(ledger.totals(4, communicator).at(0).rows, 4u);
    ledger.record(communicator.rank() == 0 ? rows_of(0, {3}) : rows_of(1, {2}));
    const auto closed = ledger.close_epochs(6, communicator);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_TRUE(closed[0].complete);
    EXPECT_EQ(closed[0].hash, complete_epoch_hash(0, 5));
    EXPECT_EQ(ledger.totals(6, communicator).at(1).rows, 1u);
  });
}

TEST(Ledger, NoticesARowUsedTwice) {
  const SampleOrder order = rows_one_by_one(4);
  on_ranks(2, [&](Communicator& communicator) {
    Ledger ledger(order);
    ledger.record(communicator.rank() == 0 ? rows_of(0, {0, 1}) : rows_of(0, {2, 2}));
    const auto closed = ledger.close_epochs(4, communicator);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_FALSE(closed[0].complete);
    EXPECT_EQ(closed[0].rows, 4u);
  });
}

TEST(Ledger, ContinuesFromACheckpoint) {
  const SampleOrder order = rows_one_by_one(4);
  on_ranks(2, [&](Communicator& communicator) {
    Ledger first(order);
    first.record(communicator.rank() == 0 ? rows_of(2, {3}) : rows_of(2, {0}));
    const auto saved = first.totals(10, communicator);
    Ledger second(order);
    second.restore(communicator.rank() == 0 ? saved : decltype(saved){});
    second.record(communicator.rank() == 0 ? rows_of(2, {1}) : rows_of(2, {2}));
    const auto closed = second.close_epochs(12, communicator);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_EQ(closed[0].epoch, 2u);
    EXPECT_TRUE(closed[0].complete);
  });
}

TEST(Ledger, AnOrderThatEndsCutsItsOpenEpochs) {
  const SampleOrder order = rows_one_by_one(4);
  on_ranks(2, [&](Communicator& communicator) {
    Ledger ledger(order);
    ledger.record(communicator.rank() == 0 ? rows_of(0, {3, 1}) : rows_of(0, {0, 2}));
    ledger.record(communicator.rank() == 0 ? rows_of(1, {3}) : rows_of(1, {0}));
    const auto closed = ledger.close_all_epochs(6, communicator);
    ASSERT_EQ(closed.size(), 2u);
    EXPECT_TRUE(closed[0].complete);
    EXPECT_FALSE(closed[0].cut);
    EXPECT_EQ(closed[1].epoch, 1u);
    EXPECT_EQ(closed[1].rows, 2u);
    EXPECT_TRUE(closed[1].complete);
    EXPECT_TRUE(closed[1].cut);
    EXPECT_TRUE(ledger.close_all_epochs(6, communicator).empty());
  });
  on_ranks(2, [&](Communicator& communicator) {
    Ledger ledger(order);  // of a row less than was due
    ledger.record(communicator.rank() == 0 ? rows_of(0, {3}) : rows_of(0, {0}));
    const auto closed = ledger.close_all_epochs(3, communicator);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_FALSE(closed[0].complete);
  });
}

TEST(Ledger, AnEpochThatAPhaseCutsHasTheRowsThatWereDue) {
  DataOptions options;
  options.packing = Packing::kDocument;
  options.global_batch = 1;
  options.sequence_length = 6;     // two rows of the document of 7 tokens
  options.length_ramp = {{4, 3}};  // four of them, of which three are taken
  const std::vector<std::uint64_t> offsets = {0, 7};
  const SampleOrder order({{&offsets}}, options);
  on_ranks(2, [&](Communicator& communicator) {
    Ledger ledger(order);
    ledger.record(communicator.rank() == 0 ? rows_of(0, {3, 1}) : rows_of(0, {0}));
    EXPECT_TRUE(ledger.close_epochs(2, communicator).empty());
    const auto closed = ledger.close_epochs(3, communicator);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_TRUE(closed[0].cut);
    EXPECT_TRUE(closed[0].complete);
    EXPECT_EQ(closed[0].rows, 3u);
    ledger.record(communicator.rank() == 0 ? rows_of(1, {1}) : rows_of(1, {0}));
    const auto next = ledger.close_epochs(5, communicator);
    ASSERT_EQ(next.size(), 1u);
    EXPECT_EQ(next[0].epoch, 1u);
    EXPECT_FALSE(next[0].cut);
    EXPECT_TRUE(next[0].complete);
  });
}

}  // namespace
}  // namespace tupelo::agreement_test

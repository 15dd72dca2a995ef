#include "data/length_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

#include "data/batch_stream.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::length_bins_test {
namespace {

// Most documents are short and a few are long, as in real text.
std::shared_ptr<const DocumentTable> skewed_documents(std::size_t count) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> length(1.0 / 60);
  std::vector<std::uint64_t> offsets{0};
  for (std::size_t d = 0; d < count; ++d) {
    offsets.push_back(offsets.back() + 1 + static_cast<std::uint64_t>(length(random)));
  }
  return std::make_shared<DocumentOffsets>(std::move(offsets));
}

TEST(LengthBins, EveryRowIsInTheBinOfItsLength) {
  const auto documents = skewed_documents(5000);
  for (const bool pairs : {false, true}) {
    for (const std::int64_t sequence_length : {16, 130, 1000}) {
      const RowPlan plan(documents, Packing::kDocument, sequence_length, pairs);
      for (const std::size_t wanted : {1, 2, 8, 256}) {
        const LengthBins bins(documents, plan, wanted);
        ASSERT_GE(bins.count(), 1u);
        EXPECT_LE(bins.count(), wanted);
        EXPECT_EQ(bins.longest(bins.count() - 1), plan.cut().content);
        std::set<std::uint64_t> rows;
        std::uint64_t above = 0;
        for (std::size_t bin = 0; bin < bins.count(); ++bin) {
          EXPECT_GE(bins.rows(bin), plan.rows() / 1024);
          for (std::uint64_t i = 0; i < bins.rows(bin); ++i) {
            const std::uint64_t row = bins.row(bin, i);
            const std::uint64_t tokens = plan.pieces(row).front().count;
            EXPECT_GT(tokens, above);
            EXPECT_LE(tokens, bins.longest(bin));
            rows.insert(row);
          }
          above = bins.longest(bin);
        }
        EXPECT_EQ(rows.size(), plan.rows());
      }
    }
  }
}

// Of places in rows, when each row is as long as the longest of its bin.
double padding(const RowPlan& plan, const LengthBins& bins) {
  double places = 0, tokens = 0;
  for (std::size_t bin = 0; bin < bins.count(); ++bin) {
    places += static_cast<double>(bins.rows(bin)) * static_cast<double>(bins.longest(bin));
  }
  for (std::uint64_t row = 0; row < plan.rows(); ++row) {
    tokens += static_cast<double>(plan.pieces(row).front().count);
  }
  return 1 - tokens / places;
}

TEST(LengthBins, TheMoreBinsTheLessPadding) {
  const auto documents = skewed_documents(20000);
  const RowPlan plan(documents, Packing::kDocument, 512);
  const auto padded = [&](std::size_t bins) {
    return padding(plan, LengthBins(documents, plan, bins));
  };
  EXPECT_GT(padded(1), 0.85);
  EXPECT_LT(padded(4), 0.41);
  EXPECT_LT(padded(8), 0.23);
  EXPECT_LT(padded(64), 0.05);
}

// The best cuts of a few lengths, tried one by one.
TEST(LengthBins, NoOtherRangesPadLess) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> offsets{0}, rows(11);
    for (int d = 0; d < 60; ++d) {
      const std::uint64_t length = 1 + random() % 10 * (random() % 2);
      offsets.push_back(offsets.back() + length);
      ++rows[length];
    }
    const auto documents = std::make_shared<DocumentOffsets>(offsets);
    const RowPlan plan(documents, Packing::kDocument, 12);
    const LengthBins bins(documents, plan, 3);
    std::uint64_t places = 0, least = ~std::uint64_t{0};
    for (std::size_t bin = 0; bin < bins.count(); ++bin) {
      places += bins.rows(bin) * bins.longest(bin);
    }
    for (std::uint64_t a = 1; a <= 10; ++a) {
      for (std::uint64_t b = a; b <= 10; ++b) {
        std::uint64_t sum = 0;
        for (std::uint64_t length = 1; length <= 10; ++length) {
          sum += rows[length] * (length <= a ? a : length <= b ? b : 10);
        }
        least = std::min(least, sum);
      }
    }
    EXPECT_EQ(places, least);
  }
}

class BinnedStreamTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_sample_corpus(*folder_ / "c", sample_documents(3, 300, 60), 0, 1500);
    corpus_ = new ShardedCorpus(*folder_ / "c", Split::kTrain);
  }
  static void TearDownTestSuite() {
    delete corpus_;
    delete folder_;
  }

  static DataOptions options() {
    DataOptions options;
    options.packing = Packing::kDocument;
    options.sequence_length = 34;
    options.global_batch = 10;
    options.micro_batch = 3;
    options.length_bins = 4;
    return options;
  }
  static std::shared_ptr<const SampleOrder> order_of(const DataOptions& options,
                                                     const PlanCache* plans = nullptr) {
    return std::make_shared<SampleOrder>(
        std::vector<MixturePart>{MixturePart(corpus_->document_table())}, options, plans);
  }
  static std::unique_ptr<BatchStream> stream(const DataOptions& options, int rank, int world_size,
                                             std::int64_t first_step) {
    return std::make_unique<BatchStream>(std::vector<const ShardedCorpus*>{corpus_}, options,
                                         order_of(options), rank, world_size, first_step);
  }

  // The rows of a step with their epochs.
  using Rows = std::multiset<std::pair<std::uint64_t, std::uint64_t>>;
  static Rows rows_of(const std::vector<Batch>& batches) {
    Rows rows;
    for (const Batch& batch : batches) {
      for (std::size_t b = 0; b < batch.rows.size(); ++b) {
        rows.emplace(batch.epochs[b], batch.rows[b]);
      }
    }
    return rows;
  }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline ShardedCorpus* corpus_ = nullptr;
};

TEST_F(BinnedStreamTest, AllRanksOfAStepDrawFromOneBin) {
  for (const bool ramps : {false, true}) {
    DataOptions chosen = options();
    if (ramps) {
      chosen.length_ramp = {{12, 40}};
      chosen.batch_ramp = {{4, 15}, {7, 50}};
    }
    const auto order = order_of(chosen);
    const auto alone = stream(chosen, 0, 1, 0);
    std::vector<std::unique_ptr<BatchStream>> ranks;
    for (int rank = 0; rank < 3; ++rank) ranks.push_back(stream(chosen, rank, 3, 0));
    std::set<std::size_t> met;
    for (std::int64_t number = 0; number < 80; ++number) {
      const SampleOrder::Step step = order->step(number);
      const LengthBins& bins = *order->bins(step.phase);
      const RowPlan& plan = order->plan(step.phase, 0);
      met.insert(step.bin);
      const Rows expected = rows_of(alone->next());
      EXPECT_EQ(expected.size(), static_cast<std::size_t>(step.global_batch));
      for (const auto& [epoch, row] : expected) {
        const std::uint64_t tokens = plan.pieces(row).front().count;
        EXPECT_LE(tokens, bins.longest(step.bin));
        EXPECT_GT(tokens, step.bin == 0 ? 0 : bins.longest(step.bin - 1));
      }
      Rows together;
      for (const auto& rank : ranks) {
        const std::vector<Batch> batches = rank->next();
        for (const Batch& batch : batches) EXPECT_LE(batch.input_ids.size(1), step.longest_row);
        together.merge(rows_of(batches));
      }
      EXPECT_EQ(together, expected);
      if (number % 20 == 7) {
        EXPECT_EQ(rows_of(stream(chosen, 0, 1, number)->next()), expected);
      }
    }
    EXPECT_GE(met.size(), 4u);
  }
}

TEST_F(BinnedStreamTest, EveryRowOncePerEpochAlsoInPhases) {
  for (const bool ramps : {false, true}) {
    DataOptions chosen = options();
    if (ramps) {
      chosen.length_ramp = {{12, 150}, {20, 320}};
      chosen.batch_ramp = {{4, 100}, {7, 200}};
    }
    constexpr std::int64_t kSteps = 700;
    const auto order = order_of(chosen);
    const auto batches = stream(chosen, 0, 1, 0);
    std::map<std::uint64_t, std::uint64_t> rows, hashes;
    std::size_t cut = 0, whole = 0;
    std::uint64_t closed = 0;
    for (std::int64_t number = 1; number <= kSteps; ++number) {
      for (const auto& [epoch, row] : rows_of(batches->next())) {
        EXPECT_GE(epoch, closed);
        ++rows[epoch];
        hashes[epoch] += row_hash(epoch, row);
      }
      const SampleOrder::OpenEpochs open = order->open_epochs(0, number);
      EXPECT_LE(open.first, open.end);
      for (; closed < open.first; ++closed) {
        const SampleOrder::Epoch epoch = order->epoch(0, closed);
        EXPECT_EQ(rows[closed], epoch.consumed);
        if (epoch.consumed < epoch.rows) {
          ++cut;
        } else {
          ++whole;
          EXPECT_EQ(hashes[closed], complete_epoch_hash(closed, epoch.rows));
        }
      }
      for (const auto& [epoch, count] : rows) {
        EXPECT_LT(epoch, std::max(open.end, closed));
      }
    }
    EXPECT_GT(whole, 5u);
    EXPECT_EQ(cut > 0, ramps);
  }
}

TEST_F(BinnedStreamTest, TablesAreKept) {
  const DataOptions chosen = options();
  const PlanCache plans(*folder_ / "plans");
  const auto order = order_of(chosen);
  order->keep_plans(plans);
  const ShardedCorpus later(*folder_ / "c", Split::kTrain, Open::kWhenRead);
  const SampleOrder again({MixturePart(later.document_table())}, chosen, &plans);
  EXPECT_EQ(later.open_shards(), 0u);
  const LengthBins &a = *order->bins(0), &b = *again.bins(0);
  ASSERT_EQ(a.count(), b.count());
  for (std::size_t bin = 0; bin < a.count(); ++bin) {
    ASSERT_EQ(a.rows(bin), b.rows(bin));
    for (std::uint64_t i = 0; i < a.rows(bin); ++i) EXPECT_EQ(a.row(bin, i), b.row(bin, i));
  }
}

TEST_F(BinnedStreamTest, RefusesWhatItCannotDo) {
  const MixturePart part(corpus_->document_table());
  DataOptions chosen = options();
  EXPECT_EQ(message_of<std::invalid_argument>([&] {
              SampleOrder({part, part}, chosen);
            }),
            "length bins are for a single corpus, not for a mixture of 2");
  chosen.packing = Packing::kFull;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { SampleOrder({part}, chosen); }),
            "length bins are for rows that keep to one document each");
  chosen.length_bins = 257;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { SampleOrder({part}, chosen); }),
            "length bins are 0 to 256, not 257");
}

}  // namespace
}  // namespace tupelo::length_bins_test

// Which rows come when, on which rank.
#include "data/batch_stream.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "tests/data/sample_batches.h"

namespace tupelo::batch_stream_test {
namespace {

class BatchStreamTest : public SampleStreams {};

bool same_batch(const Batch& a, const Batch& b) {
  return torch::equal(a.input_ids, b.input_ids) &&
         a.attention_mask.defined() == b.attention_mask.defined() &&
         (!a.attention_mask.defined() || torch::equal(a.attention_mask, b.attention_mask)) &&
         a.documents.defined() == b.documents.defined() &&
         (!a.documents.defined() || torch::equal(a.documents, b.documents)) &&
         torch::equal(a.masked_positions, b.masked_positions) && torch::equal(a.labels, b.labels) &&
         a.rows == b.rows && a.epochs == b.epochs && a.tokens == b.tokens &&
         a.rows_hash == b.rows_hash && a.masks_hash == b.masks_hash;
}

TEST_F(BatchStreamTest, EveryRowOncePerEpochOverUnevenRanksAndASeek) {
  DataOptions chosen = options();
  const RowPlan plan(corpus_->document_offsets(), chosen.packing, chosen.sequence_length);
  const std::uint64_t epochs = 3;
  const std::int64_t steps = static_cast<std::int64_t>(
      (epochs * plan.rows() + 9) / static_cast<std::uint64_t>(chosen.global_batch));
  for (const int world_size : {1, 3, 4, 10}) {
    // The run stops in the middle and goes on with another number of ranks.
    std::vector<Batch> all = batches(chosen, world_size, steps / 2);
    for (Batch& batch : batches(chosen, 7, steps - steps / 2, steps / 2)) {
      all.push_back(std::move(batch));
    }
    std::map<std::uint64_t, std::uint64_t> hashes;
    std::map<std::uint64_t, std::multiset<std::uint64_t>> rows;
    for (const Batch& batch : all) {
      std::uint64_t hash = 0;
      for (std::size_t b = 0; b < batch.rows.size(); ++b) {
        hash += row_hash(batch.epochs[b], batch.rows[b]);
        hashes[batch.epochs[b]] += row_hash(batch.epochs[b], batch.rows[b]);
        rows[batch.epochs[b]].insert(batch.rows[b]);
      }
      EXPECT_EQ(batch.rows_hash, hash);
    }
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      EXPECT_EQ(hashes[epoch], complete_epoch_hash(epoch, plan.rows()));
      ASSERT_EQ(rows[epoch].size(), plan.rows());
      EXPECT_EQ(std::set<std::uint64_t>(rows[epoch].begin(), rows[epoch].end()).size(),
                plan.rows());
    }
  }
}

TEST_F(BatchStreamTest, AfterASeekComesWhatWouldHaveCome) {
  const std::vector<Batch> all = batches(options(), 1, 60);
  const std::vector<Batch> rest = batches(options(), 1, 23, 37);
  ASSERT_GT(all.size(), rest.size());
  const std::size_t skipped = all.size() - rest.size();
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_TRUE(same_batch(all[skipped + i], rest[i]));
}

TEST_F(BatchStreamTest, FarSeeksAreFree) {
  const RowPlan plan(corpus_->document_offsets(), Packing::kFull, 32);
  const auto stream = open_stream(*corpus_, options(), 0, 1, std::int64_t{1} << 50);
  EXPECT_EQ(stream->next().front().epochs.front(), (std::uint64_t{10} << 50) / plan.rows());
}

TEST_F(BatchStreamTest, AGlobalBatchMaySpanSeveralEpochs) {
  DataOptions chosen = options();
  const RowPlan plan(corpus_->document_offsets(), chosen.packing, chosen.sequence_length);
  chosen.global_batch = static_cast<std::int64_t>(2 * plan.rows());
  std::uint64_t hash = 0;
  for (const Batch& batch : batches(chosen, 2, 1)) hash += batch.rows_hash;
  EXPECT_EQ(hash, complete_epoch_hash(0, plan.rows()) + complete_epoch_hash(1, plan.rows()));
}

TEST_F(BatchStreamTest, RampsOfLengthAndBatchSplitOverRanksAlike) {
  DataOptions chosen = options();
  chosen.length_ramp = {{8, 6}, {16, 9}};
  chosen.batch_ramp = {{4, 2}, {7, 8}};
  const std::vector<std::size_t> expected_rows = {4, 4, 7, 7, 7, 7, 7, 7, 10, 10, 10};
  std::vector<std::uint64_t> alone;
  for (const int world_size : {1, 3}) {
    std::vector<std::unique_ptr<BatchStream>> streams;
    for (int rank = 0; rank < world_size; ++rank) {
      streams.push_back(open_stream(*corpus_, chosen, rank, world_size, 0));
    }
    for (std::size_t step = 0; step < expected_rows.size(); ++step) {
      const std::int64_t length = step < 6 ? 8 : step < 9 ? 16 : 32;
      std::size_t rows = 0;
      std::uint64_t masks = 0;
      for (const auto& stream : streams) {
        for (const Batch& batch : stream->next()) {
          EXPECT_LE(batch.input_ids.size(1), length);
          EXPECT_LE(batch.input_ids.size(0), chosen.micro_batch * 32 / length);
          rows += batch.rows.size();
          masks += batch.masks_hash + batch.rows_hash;
        }
      }
      EXPECT_EQ(rows, expected_rows[step]);
      if (world_size == 1) alone.push_back(masks);
      EXPECT_EQ(masks, alone[step]);
    }
  }
  // A seek into each phase.
  for (const std::int64_t step : {3, 7, 10}) {
    std::uint64_t masks = 0;
    for (const Batch& batch : open_stream(*corpus_, chosen, 0, 1, step)->next()) {
      masks += batch.masks_hash + batch.rows_hash;
    }
    EXPECT_EQ(masks, alone[static_cast<std::size_t>(step)]);
  }
  chosen.batch_ramp = {{2, 5}};
  EXPECT_THROW(open_stream(*corpus_, chosen, 0, 3, 0), std::invalid_argument);
}

// Nobody trains here, so batches are asked for faster than they can be made.
TEST_F(BatchStreamTest, CountsTheCallsThatWaited) {
  const auto stream = open_stream(*corpus_, options(), 0, 1, 0);
  EXPECT_EQ(stream->waits().steps, 0u);
  EXPECT_EQ(stream->waits().seconds, 0);
  BatchStream::Waits before;
  for (std::uint64_t call = 1; call <= 300; ++call) {
    stream->next();
    const BatchStream::Waits waits = stream->waits();
    EXPECT_LE(waits.steps - before.steps, 1u);
    EXPECT_EQ(waits.steps > before.steps, waits.seconds > before.seconds);
    before = waits;
  }
  EXPECT_GT(before.steps, 0u);
  EXPECT_LE(before.steps, 300u);
}

TEST_F(BatchStreamTest, MayBeLeftAtAnyTime) {
  for (int taken = 0; taken < 8; ++taken) {
    DataOptions chosen = options();
    chosen.prefetch_steps = 1 + taken % 3;
    const auto stream = open_stream(*corpus_, chosen, 0, 2, 0);
    for (int i = 0; i < taken; ++i) stream->next();
  }
}

TEST_F(BatchStreamTest, RefusesSettingsOutOfRange) {
  const auto refused = [](const DataOptions& chosen, int rank, int world_size,
                          std::int64_t step = 0) {
    EXPECT_THROW(open_stream(*corpus_, chosen, rank, world_size, step), std::invalid_argument);
  };
  refused(options(), 2, 2);
  refused(options(), -1, 2);
  refused(options(), 0, 0);
  refused(options(), 0, 1, -1);
  refused(options(), 0, 11);
  DataOptions chosen = options();
  chosen.sequence_length = 3;
  refused(chosen, 0, 1);
  chosen = options();
  chosen.micro_batch = 0;
  refused(chosen, 0, 1);
  chosen = options();
  chosen.prefetch_steps = 0;
  refused(chosen, 0, 1);
  chosen = options();
  chosen.mask_fraction = 2;
  refused(chosen, 0, 1);
}

TEST_F(BatchStreamTest, ASplitWithoutRowsIsRefused) {
  const ShardedCorpus empty(*folder_ / "c", Split::kHeldOut);
  EXPECT_THROW(open_stream(empty, options(), 0, 1, 0), CorpusError);
}

TEST_F(BatchStreamTest, WhatGoesWrongInTheBackgroundReachesTheConsumer) {
  std::vector<SampleDocument> documents = sample_documents(4, 200, 50);
  documents[150].ids[0] = 60000;
  write_sample_corpus(*folder_ / "bad", documents, 0, 1u << 20);
  const ShardedCorpus corpus(*folder_ / "bad", Split::kTrain);
  const auto stream = open_stream(corpus, options(), 0, 1, 0);
  const auto all_steps = [&stream] {
    for (int i = 0; i < 100; ++i) stream->next();
  };
  const std::string message = message_of<CorpusError>(all_steps);
  EXPECT_NE(message.find("dataset 'tokens' holds id 60000"), std::string::npos) << message;
  EXPECT_THROW(stream->next(), CorpusError);
}

}  // namespace
}  // namespace tupelo::batch_stream_test

#include "data/batch_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "data/hdf5.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {
namespace {

// (epoch, document, offset, replacement).
using MaskTuple = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;

constexpr std::int64_t kCls = 2, kSep = 3;

// What stands at every position of a row: a token of a document, or a special one.
struct Origin {
  std::uint64_t document = 0, offset = 0;
  std::int64_t special = 0;   // its id, 0 for a token of a document
  std::int64_t sequence = 0;  // of the row
};
std::vector<Origin> origins_of(const RowPlan& plan, std::uint64_t row) {
  std::vector<Origin> origins;
  std::int64_t sequence = 0;
  const auto add_special = [&](std::int64_t id) { origins.push_back({0, 0, id, sequence}); };
  add_special(kCls);
  const std::vector<RowPlan::Piece> pieces = plan.pieces(row);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (p > 0 && plan.pieces_are_sequences()) {
      add_special(kSep);
      ++sequence;
      add_special(kCls);
    }
    for (std::uint64_t i = 0; i < pieces[p].count; ++i) {
      origins.push_back({pieces[p].document, pieces[p].first + i, 0, sequence});
    }
    if (pieces[p].separator) add_special(kSep);
  }
  add_special(kSep);
  return origins;
}

std::vector<MaskTuple> masks_of(const RowPlan& plan, const Batch& batch) {
  const std::int64_t width = batch.input_ids.size(1);
  const std::int64_t* ids = batch.input_ids.data_ptr<std::int64_t>();
  const std::int64_t* positions = batch.masked_positions.data_ptr<std::int64_t>();
  std::vector<MaskTuple> masks;
  for (std::int64_t m = 0; m < batch.masked_positions.size(0); ++m) {
    const auto b = static_cast<std::size_t>(positions[m] / width);
    const Origin origin =
        origins_of(plan, batch.rows[b]).at(static_cast<std::size_t>(positions[m] % width));
    EXPECT_EQ(origin.special, 0);
    masks.emplace_back(batch.epochs[b], origin.document, origin.offset, ids[positions[m]]);
  }
  return masks;
}

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

std::unique_ptr<BatchStream> open_stream(const ShardedCorpus& corpus, const DataOptions& options,
                                         int rank, int world_size, std::int64_t first_step) {
  const std::vector<MixturePart> parts = {{&corpus.document_offsets()}};
  return std::make_unique<BatchStream>(std::vector<const ShardedCorpus*>{&corpus}, options,
                                       std::make_shared<SampleOrder>(parts, options), rank,
                                       world_size, first_step);
}

class BatchStreamTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    documents_ = sample_documents(1, 150, 90);
    write_sample_corpus(*folder_ / "c", documents_, 0, 1500);
    corpus_ = new ShardedCorpus(*folder_ / "c", Split::kTrain);
  }
  static void TearDownTestSuite() {
    delete corpus_;
    delete folder_;
  }

  static DataOptions options() {
    DataOptions options;
    options.sequence_length = 32;
    options.global_batch = 10;
    options.micro_batch = 3;
    return options;
  }

  // All ranks' micro-batches of steps [first, first + steps), step by step and rank by rank.
  static std::vector<Batch> batches(const DataOptions& options, int world_size, std::int64_t steps,
                                    std::int64_t first = 0) {
    std::vector<std::unique_ptr<BatchStream>> streams;
    for (int rank = 0; rank < world_size; ++rank) {
      streams.push_back(open_stream(*corpus_, options, rank, world_size, first));
    }
    std::vector<Batch> result;
    for (std::int64_t step = 0; step < steps; ++step) {
      std::int64_t rows = 0;
      for (auto& stream : streams) {
        std::vector<Batch> next = stream->next();
        EXPECT_FALSE(next.empty());
        for (Batch& batch : next) {
          EXPECT_LE(batch.rows.size(), static_cast<std::size_t>(options.micro_batch));
          rows += static_cast<std::int64_t>(batch.rows.size());
          result.push_back(std::move(batch));
        }
      }
      EXPECT_EQ(rows, options.global_batch);
    }
    return result;
  }

  static std::vector<MaskTuple> sorted_masks(const DataOptions& options, int world_size,
                                             std::int64_t steps) {
    const RowPlan plan(corpus_->document_offsets(), options.packing, options.sequence_length);
    std::vector<MaskTuple> masks;
    for (const Batch& batch : batches(options, world_size, steps)) {
      const std::vector<MaskTuple> more = masks_of(plan, batch);
      masks.insert(masks.end(), more.begin(), more.end());
    }
    std::sort(masks.begin(), masks.end());
    return masks;
  }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline std::vector<SampleDocument> documents_;
  static inline ShardedCorpus* corpus_ = nullptr;
};

TEST_F(BatchStreamTest, RowsAreTheDocumentsBetweenSpecialTokens) {
  for (const Packing packing : {Packing::kFull, Packing::kDocument, Packing::kBestFit}) {
    DataOptions chosen = options();
    chosen.packing = packing;
    const RowPlan plan(corpus_->document_offsets(), packing, 32);
    for (std::uint64_t row = 0; row + 1 < plan.rows(); row += 2) {
      const Batch batch = make_batch(*corpus_, plan, chosen, {row, row + 1}, {0, 5});
      auto restored = batch.input_ids.clone();
      restored.view(-1).index_put_({batch.masked_positions}, batch.labels);
      std::int64_t tokens = 0;
      for (std::int64_t b = 0; b < 2; ++b) {
        const std::vector<Origin> origins = origins_of(plan, row + static_cast<std::uint64_t>(b));
        const auto length = static_cast<std::int64_t>(origins.size());
        tokens += length;
        for (std::int64_t t = 0; t < restored.size(1); ++t) {
          const std::int64_t id = restored[b][t].item<std::int64_t>();
          if (t >= length) {
            EXPECT_EQ(id, 0);
          } else if (const Origin& origin = origins[static_cast<std::size_t>(t)]; origin.special) {
            EXPECT_EQ(id, origin.special);
          } else {
            EXPECT_EQ(id, documents_[origin.document].ids[origin.offset]);
          }
          EXPECT_EQ(batch.documents.defined(), packing == Packing::kBestFit);
          if (batch.documents.defined()) {
            const std::int64_t sequence =
                t < length ? origins[static_cast<std::size_t>(t)].sequence : -1;
            EXPECT_EQ(batch.documents[b][t].item<std::int64_t>(), sequence);
            EXPECT_FALSE(batch.attention_mask.defined());
          } else if (batch.attention_mask.defined()) {
            EXPECT_EQ(batch.attention_mask[b][t].item<bool>(), t < length);
          } else {
            EXPECT_EQ(length, restored.size(1));
          }
        }
      }
      EXPECT_EQ(batch.tokens, tokens);
    }
  }
}

TEST_F(BatchStreamTest, MaskedPositionsRise) {
  for (const Batch& batch : batches(options(), 1, 20)) {
    const auto positions = batch.masked_positions;
    if (positions.size(0) < 2) continue;
    EXPECT_TRUE((positions.slice(0, 1) > positions.slice(0, 0, -1)).all().item<bool>());
  }
}

constexpr Masking kAllMaskings[] = {Masking::kToken, Masking::kWholeWord, Masking::kSpan,
                                    Masking::kNgram};

TEST_F(BatchStreamTest, MasksDoNotDependOnWorldSizeOrMicroBatch) {
  for (const Masking masking : kAllMaskings) {
    DataOptions chosen = options();
    chosen.masking = masking;
    const std::vector<MaskTuple> expected = sorted_masks(chosen, 1, 40);
    EXPECT_GT(expected.size(), 1000u);
    for (const int world_size : {2, 3, 4}) {
      for (const std::int64_t micro_batch : {1, 2, 7, 100}) {
        chosen.micro_batch = micro_batch;
        EXPECT_EQ(sorted_masks(chosen, world_size, 40), expected) << world_size << micro_batch;
      }
    }
  }
}

TEST_F(BatchStreamTest, MasksDoNotDependOnPackingOrSequenceLength) {
  for (const Masking masking : kAllMaskings) {
    DataOptions chosen = options();
    chosen.longest_word_tokens = 3;  // words of four are in the sample
    chosen.masking = masking;
    std::vector<MaskTuple> expected;
    std::uint64_t expected_hash = 0;
    for (const Packing packing : {Packing::kFull, Packing::kDocument, Packing::kBestFit}) {
      for (const std::int64_t sequence_length : {5, 32, 200}) {
        chosen.packing = packing;
        chosen.sequence_length = sequence_length;
        const RowPlan plan(corpus_->document_offsets(), packing, sequence_length);
        std::vector<MaskTuple> masks;
        std::uint64_t hash = 0;
        for (std::uint64_t row = 0; row < plan.rows(); ++row) {
          const Batch batch = make_batch(*corpus_, plan, chosen, {row}, {7});
          const std::vector<MaskTuple> more = masks_of(plan, batch);
          masks.insert(masks.end(), more.begin(), more.end());
          hash += batch.masks_hash;
        }
        std::sort(masks.begin(), masks.end());
        if (expected.empty()) {
          expected = masks;
          expected_hash = hash;
        }
        EXPECT_EQ(masks, expected);
        EXPECT_EQ(hash, expected_hash);
      }
    }
  }
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

TEST_F(BatchStreamTest, EpochsDifferInOrderAndMasks) {
  DataOptions chosen = options();
  const RowPlan plan(corpus_->document_offsets(), chosen.packing, chosen.sequence_length);
  chosen.global_batch = static_cast<std::int64_t>(plan.rows());
  const auto order_of = [](const std::vector<Batch>& batches_of_epoch) {
    std::vector<std::uint64_t> rows;
    for (const Batch& batch : batches_of_epoch) {
      rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
    }
    return rows;
  };
  EXPECT_NE(order_of(batches(chosen, 1, 1, 0)), order_of(batches(chosen, 1, 1, 1)));
  const Batch first = make_batch(*corpus_, plan, chosen, {0, 1, 2}, {0, 0, 0});
  const Batch second = make_batch(*corpus_, plan, chosen, {0, 1, 2}, {1, 1, 1});
  EXPECT_NE(first.masks_hash, second.masks_hash);
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
  EXPECT_NE(message.find("document 150 has token id 60000"), std::string::npos) << message;
  EXPECT_THROW(stream->next(), CorpusError);
}

}  // namespace
}  // namespace tupelo

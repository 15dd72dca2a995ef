// Batches of a small corpus, and where each of their tokens comes from.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "data/batch_stream.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {

// (epoch, document, offset, replacement).
using MaskTuple = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;

inline constexpr std::int64_t kCls = 2, kSep = 3;

// What stands at every position of a row: a token of a document, or a special one.
struct Origin {
  std::uint64_t document = 0, offset = 0;
  std::int64_t special = 0;   // its id, 0 for a token of a document
  std::int64_t sequence = 0;  // of the row
};
inline std::vector<Origin> origins_of(const RowPlan& plan, std::uint64_t row) {
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

inline std::vector<MaskTuple> masks_of(const RowPlan& plan, const Batch& batch) {
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

inline std::unique_ptr<BatchStream> open_stream(const ShardedCorpus& corpus,
                                                const DataOptions& options, int rank,
                                                int world_size, std::int64_t first_step) {
  const std::vector<MixturePart> parts = {{&corpus.document_offsets()}};
  return std::make_unique<BatchStream>(std::vector<const ShardedCorpus*>{&corpus}, options,
                                       std::make_shared<SampleOrder>(parts, options), rank,
                                       world_size, first_step);
}

// Streams over a corpus of short documents.
class SampleStreams : public testing::Test {
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

}  // namespace tupelo

// What batches hold: rows of documents, masked.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/sample_batches.h"

namespace tupelo::make_batch_test {
namespace {

class MakeBatchTest : public SampleStreams {};

TEST_F(MakeBatchTest, RowsAreTheDocumentsBetweenSpecialTokens) {
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

TEST_F(MakeBatchTest, MaskedPositionsRise) {
  for (const Batch& batch : batches(options(), 1, 20)) {
    const auto positions = batch.masked_positions;
    if (positions.size(0) < 2) continue;
    EXPECT_TRUE((positions.slice(0, 1) > positions.slice(0, 0, -1)).all().item<bool>());
  }
}

constexpr Masking kAllMaskings[] = {Masking::kToken, Masking::kWholeWord, Masking::kSpan,
                                    Masking::kNgram};

TEST_F(MakeBatchTest, MasksDoNotDependOnWorldSizeOrMicroBatch) {
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

TEST_F(MakeBatchTest, MasksDoNotDependOnPackingOrSequenceLength) {
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

TEST_F(MakeBatchTest, EpochsDifferInOrderAndMasks) {
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

}  // namespace
}  // namespace tupelo::make_batch_test

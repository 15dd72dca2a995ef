// Rows, order, masks and batches: what a rank trains on, as pure functions of
// (seed, epoch, global sample).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/corpus.h"

namespace tupelo {

enum class Packing { kFull, kDocument };
enum class Masking { kToken, kWholeWord };

struct DataOptions {
  std::int64_t sequence_length = 512;  // tokens of a row, [CLS] and final [SEP] included; >= 4
  Packing packing = Packing::kFull;
  Masking masking = Masking::kToken;
  double mask_fraction = 0.15;     // of content tokens
  double mask_token_share = 0.8;   // of chosen tokens: replaced by [MASK]
  double random_token_share = 0.1; // of chosen tokens: replaced by a random ordinary token
  std::uint64_t seed = 1;
  std::int64_t global_batch = 32;  // rows per optimizer step over all ranks
  std::int64_t micro_batch = 8;    // rows per forward pass of a rank, at most
  int prefetch_steps = 4;
};

// One micro-batch of a rank. T is the longest row of the batch, at most sequence_length.
struct Batch {
  torch::Tensor input_ids;         // [B,T] int64, masks applied
  torch::Tensor attention_mask;    // [B,T] bool, true = real token; undefined when no row is padded
  torch::Tensor masked_positions;  // [M] int64, ascending, b * T + t
  torch::Tensor labels;            // [M] int64, original ids
  std::vector<std::uint64_t> rows;    // [B]
  std::vector<std::uint64_t> epochs;  // [B]
  std::int64_t tokens = 0;         // real tokens
  // Order-independent (wrapping sums over rows): which (epoch, row) were used, and which
  // (epoch, document, offset, replacement) were masked.
  std::uint64_t rows_hash = 0;
  std::uint64_t masks_hash = 0;
};

// Where rows begin: a pure function of the document lengths.
// kFull (RoBERTa's FULL-SENTENCES): documents follow each other with one [SEP] after each, cut every
// sequence_length - 2 tokens; kDocument: rows never cross a document. Every row is
// [CLS] content [SEP]; only a last row may be short (kFull) or any document's last (kDocument).
class RowPlan {
 public:
  RowPlan(const std::vector<std::uint64_t>& document_offsets, Packing packing,
          std::int64_t sequence_length);
  std::uint64_t rows() const;

  struct Piece {  // document tokens [first, first + count), then a [SEP] when `separator`
    std::uint64_t document, first, count;
    bool separator;
  };
  // Pieces of row `row` in order (the [SEP] that ends the row is not among them).
  std::vector<Piece> pieces(std::uint64_t row) const;

 private:
  Packing packing_;
  std::uint64_t content_;  // tokens of a row without [CLS] and final [SEP]
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> lengths_;
};

// Keyed permutation of [0, size) by a Feistel network with cycle walking: O(1) memory, random access.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t size_, key_;
  int half_bits_;
};

// Hash whose wrapping sum over the rows of an epoch proves that each was used exactly once.
std::uint64_t row_hash(std::uint64_t epoch, std::uint64_t row);
// Sum of row_hash over all rows of an epoch.
std::uint64_t complete_epoch_hash(std::uint64_t epoch, std::uint64_t rows);

// Builds the batch of the given rows; pure. Masks depend on (seed, epoch, document, token offset) only:
// not on rank, world size, batch composition, sequence length or packing. Special tokens are never
// masked and never drawn as replacements.
Batch make_batch(const ShardedCorpus& corpus, const RowPlan& plan, const DataOptions& options,
                 const std::vector<std::uint64_t>& rows, const std::vector<std::uint64_t>& epochs);

// The micro-batches of one rank, step after step, prepared by a background thread. Global sample g is
// row permutation(g mod rows) of epoch g / rows; step s (from 0) consists of samples
// [s * global_batch, (s + 1) * global_batch), of which rank r takes the contiguous share
// [r * global_batch / world_size, (r + 1) * global_batch / world_size), cut into micro-batches.
// So seeking is free, and no state is needed to resume.
class BatchStream {
 public:
  // `corpus` must outlive the stream. Throws std::invalid_argument on settings out of range
  // (including fewer rows per step than ranks) and CorpusError when the corpus has no row.
  BatchStream(const ShardedCorpus& corpus, const DataOptions& options, int rank, int world_size,
              std::int64_t first_step);
  ~BatchStream();

  // The rank's micro-batches of the next step; at least one. One consumer thread. Rethrows what went
  // wrong in the background.
  std::vector<Batch> next();

  const RowPlan& plan() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

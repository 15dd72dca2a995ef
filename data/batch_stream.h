// Batches: what a rank trains on, as pure functions of (seed, epoch, global sample).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/keyed_permutation.h"
#include "data/row_plan.h"
#include "data/sample_order.h"

namespace tupelo {

// One micro-batch of a rank. T is the longest row of the batch, at most sequence_length.
struct Batch {
  torch::Tensor input_ids;       // [B,T] int64, masks applied, [PAD] after a short row's end
  torch::Tensor attention_mask;  // [B,T] bool, true = real token; undefined when no row is padded,
                                 // and when there are documents
  torch::Tensor documents;       // kBestFit: [B,T] int64, the sequence of its row that a token is
                                 // of, from 0, -1 for padding; else undefined
  torch::Tensor masked_positions;  // [M] int64, ascending, b * T + t
  torch::Tensor labels;            // [M] int64, original ids
  // With sentence pairs, else undefined. Rows that are no pair are left out.
  torch::Tensor pair_rows;            // [P] int64, ascending: b
  torch::Tensor pair_labels;          // [P] int64: 1 when the segments of the row were swapped
  std::vector<std::size_t> corpora;   // [B], of the mixture
  std::vector<std::uint64_t> rows;    // [B]
  std::vector<std::uint64_t> epochs;  // [B]
  std::int64_t tokens = 0;            // real tokens, [CLS] and [SEP] included
  // Order-independent (wrapping sums over rows): which (epoch, row) were used, and which
  // (epoch, document, offset, replacement) were masked.
  std::uint64_t rows_hash = 0;
  std::uint64_t masks_hash = 0;
};

// A corpus that rows are taken from. Both outlive what is made with it.
struct RowSource {
  const ShardedCorpus* corpus;
  const RowPlan* plan;
};

struct RowOfCorpus {
  std::size_t corpus;
  std::uint64_t row, epoch;
};

// Builds the batch of the given rows; pure. Masks depend on (seed, epoch, document, token offset)
// only: not on rank, world size, batch composition, sequence length or packing. Special tokens are
// never masked and never drawn as replacements. Segments of pairs depend on (seed, epoch, document,
// where the row begins). Throws CorpusError when a token id lies outside the vocabulary.
Batch make_batch(const ShardedCorpus& corpus, const RowPlan& plan, const DataOptions& options,
                 const std::vector<std::uint64_t>& rows, const std::vector<std::uint64_t>& epochs);
// The same of several corpora with one tokenizer and one packing. Of more than one, the seed of
// each corpus's masks is mixed with its digest.
Batch make_batch(const std::vector<RowSource>& sources, const DataOptions& options,
                 const std::vector<RowOfCorpus>& rows);

// The micro-batches of one rank, step after step, prepared by a background thread. A step consists
// of the global_batch samples that the order says, of which rank r takes the contiguous share [r *
// global_batch / world_size, (r + 1) * global_batch / world_size), cut into micro-batches of
// micro_batch rows, or of as many tokens while rows are shorter. So seeking is free, and no state
// is needed to resume.
class BatchStream {
 public:
  // The corpora must outlive the stream; `order` is that of their documents under `options`. With
  // `copied_to`, a CUDA device, all tensors but `documents` are in page-locked memory, from which
  // that device copies while the host goes on. Throws std::invalid_argument on settings out of
  // range (including fewer rows per step than ranks) and CorpusError when a corpus has no row.
  BatchStream(const std::vector<const ShardedCorpus*>& corpora, const DataOptions& options,
              std::shared_ptr<const SampleOrder> order, int rank, int world_size,
              std::int64_t first_step, std::optional<torch::Device> copied_to = {});
  ~BatchStream();

  // The rank's micro-batches of the next step; at least one. One consumer thread. Rethrows what
  // went wrong in the background, at every call from then on.
  std::vector<Batch> next();
  // Once next() has thrown a BadShard: such an error for each shard that one of the rank's rows of
  // that step fails at, each row tried by itself. So over all ranks they are those of the step's
  // rows, however these are shared out.
  std::vector<std::exception_ptr> bad_shards() const;

  // The calls of next() so far that found no batch ready, and how long these took.
  struct Waits {
    std::uint64_t steps = 0;
    double seconds = 0;
  };
  Waits waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

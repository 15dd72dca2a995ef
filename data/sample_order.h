// Which rows a step consumes: of one corpus or of a mixture, also while rows get longer and batches
// larger.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/data_options.h"
#include "data/mixture.h"
#include "data/row_plan.h"

namespace tupelo {

// Document lengths of a corpus, and its share of the samples.
struct MixturePart {
  const std::vector<std::uint64_t>* document_offsets;  // not kept
  double weight = 1;
};

// A pure function of the document lengths and the options, so seeking is free.
//
// A phase is a stretch of steps with one sequence length. Its samples are numbered from 0, and the
// mixture says which corpus each comes from. Sample g of a corpus is row permutation(g mod rows) of
// its epoch g / rows in the phase. Epochs of a corpus are numbered through all phases: the one that
// a phase's end cuts short is followed by the first of the next phase.
class SampleOrder {
 public:
  // Throws std::invalid_argument for a ramp whose steps do not rise, and for values out of range.
  SampleOrder(const std::vector<MixturePart>& corpora, const DataOptions& options);
  SampleOrder(const SampleOrder&) = delete;
  SampleOrder& operator=(const SampleOrder&) = delete;

  std::size_t corpora() const { return corpora_; }

  struct Step {
    std::size_t phase;
    std::int64_t sequence_length;
    std::int64_t global_batch;
    std::uint64_t first_sample;  // of the phase
  };
  // Step `step` >= 0.
  Step step(std::int64_t step) const;

  struct Sample {
    std::size_t corpus;
    std::uint64_t epoch;
    std::uint64_t index;  // within the epoch, before permutation
  };
  // Gives out the samples of steps; quick when they come in order. One thread each.
  class Reader {
   public:
    // `order` outlives the reader.
    explicit Reader(const SampleOrder& order) : order_(order) {}
    // Sample `sample` < global_batch of the step.
    Sample sample(const Step& step, std::uint64_t sample);

   private:
    Mixture::Draw draw(const Step& step, std::uint64_t sample);

    const SampleOrder& order_;
    std::size_t phase_ = 0;
    std::uint64_t block_ = 0;
    std::vector<Mixture::Draw> draws_;  // of that block
  };
  const RowPlan& plan(std::size_t phase, std::size_t corpus) const {
    return phases_[phase].parts[corpus].plan;
  }

  // The epoch that the corpus would begin, or be in the middle of, after `steps` steps: all before
  // it are over.
  std::uint64_t epoch_after(std::size_t corpus, std::int64_t steps) const;
  struct Epoch {
    std::uint64_t rows;      // of the phase's row plan
    std::uint64_t consumed;  // fewer than `rows` when the phase ends before the epoch does
  };
  Epoch epoch(std::size_t corpus, std::uint64_t epoch) const;

  // Rows consumed by `steps` steps, relative to all rows of all corpora.
  double epochs_after(std::int64_t steps) const;
  std::int64_t smallest_batch() const;

 private:
  struct Stage {  // steps with one batch size
    std::int64_t first_step, global_batch;
    std::uint64_t first_sample;
  };
  struct Part {  // a corpus in a phase
    RowPlan plan;
    std::uint64_t first_epoch = 0;
  };
  struct Phase {
    std::int64_t first_step, sequence_length;
    Mixture mixture;
    std::vector<Part> parts;
    std::vector<Stage> stages;
    std::uint64_t samples;  // of the whole phase; of the last one: without end
    std::uint64_t rows = 0;
    double epochs_before = 0;
  };
  void add_phase(Phase phase);
  const Phase& phase_of_step(std::int64_t step) const;
  static std::uint64_t samples_before(const Phase& phase, std::int64_t step);

  std::size_t corpora_;
  std::vector<Phase> phases_;
};

}  // namespace tupelo

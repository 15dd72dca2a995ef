// Which rows a step consumes: of one corpus or of a mixture, also while rows get longer and batches
// larger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/data_options.h"
#include "data/length_bins.h"
#include "data/mixture.h"
#include "data/plan_cache.h"
#include "data/row_plan.h"

namespace tupelo {

// Documents of a corpus, and its share of the samples.
struct MixturePart {
  MixturePart(std::shared_ptr<const DocumentTable> table, double share = 1)
      : documents(std::move(table)), weight(share) {}
  // Of offsets as DocumentOffsets takes them.
  MixturePart(const std::vector<std::uint64_t>* document_offsets, double share = 1)
      : MixturePart(std::make_shared<DocumentOffsets>(*document_offsets), share) {}

  std::shared_ptr<const DocumentTable> documents;
  double weight;
  // Digest and split, to find tables of row plans by.
  std::string name = {};
};

// Where an order begins that follows another one, of other documents, in the middle of a run.
struct OrderStart {
  std::int64_t step = 0;                   // its first; the steps before are not its own
  std::vector<std::uint64_t> epochs = {};  // the first one of each corpus; none: 0 of each
  double epochs_before = 0;                // what epochs_after() is there

  bool operator==(const OrderStart&) const = default;
};

// A pure function of the document lengths, the options and the start, so seeking is free.
//
// A phase is a stretch of steps with one sequence length. Its samples are numbered from 0, and the
// mixture says which corpus each comes from. Sample g of a corpus is row permutation(g mod rows) of
// its epoch g / rows in the phase. Epochs of a corpus are numbered through all phases: the one that
// a phase's end cuts short is followed by the first of the next phase.
//
// With length bins (data/length_bins.h) a step takes its samples from one bin. Which one is drawn
// by a mixture of the bins, each as often as it has rows, and the samples of each bin are numbered
// from 0 through the phase: sample g of a bin is row permutation(g mod its rows) of its epoch g /
// its rows. So all bins come to the end of an epoch at about the same time, and one may begin the
// next before another has ended the last.
class SampleOrder {
 public:
  // Tables of row plans that `plans`, where it is given, does not have are made: see RowPlan.
  // Throws std::invalid_argument for a ramp whose steps do not rise, and for values out of range;
  // what DocumentTable::offset() does.
  SampleOrder(const std::vector<MixturePart>& corpora, const DataOptions& options,
              const PlanCache* plans = nullptr, const OrderStart& start = {});
  SampleOrder(const SampleOrder&) = delete;
  SampleOrder& operator=(const SampleOrder&) = delete;

  std::size_t corpora() const { return corpora_.size(); }
  const OrderStart& start() const { return start_; }
  // That of an order which takes over after `steps` steps: it begins epochs of its own.
  OrderStart start_after(std::int64_t steps) const;

  // Keeps the tables of the row plans, so that they need not be made again. Throws
  // std::system_error.
  void keep_plans(const PlanCache& plans) const;

  struct Step {
    std::size_t phase;
    std::int64_t sequence_length;
    std::int64_t global_batch;
    std::uint64_t first_sample;  // of the phase, or of the bin in the phase
    std::size_t bin = 0;
    std::int64_t longest_row = sequence_length;  // in tokens; fewer in a bin of short rows
  };
  // Step `step` >= that of the start; throws std::out_of_range for one before it.
  Step step(std::int64_t step) const;

  struct Sample {
    std::size_t corpus;
    std::uint64_t epoch;
    std::uint64_t index;  // within the epoch (of the step's bin), before permutation
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

  // Null without length bins.
  const LengthBins* bins(std::size_t phase) const {
    const auto& bins = phases_[phase].bins;
    return bins ? &*bins : nullptr;
  }

  // The epoch that the corpus would begin, or be in the middle of, after `steps` steps: all before
  // it are over.
  std::uint64_t epoch_after(std::size_t corpus, std::int64_t steps) const {
    return open_epochs(corpus, steps).first;
  }
  // Epochs that may have begun and are not over after `steps` steps: [first, end).
  struct OpenEpochs {
    std::uint64_t first, end;
  };
  OpenEpochs open_epochs(std::size_t corpus, std::int64_t steps) const;
  struct Epoch {
    std::uint64_t rows;      // of the phase's row plan
    std::uint64_t consumed;  // fewer than `rows` when the phase ends before the epoch does
  };
  // An epoch of the order, of a corpus.
  Epoch epoch(std::size_t corpus, std::uint64_t epoch) const;
  // The same, as it stands after `steps` steps.
  Epoch epoch_after_steps(std::size_t corpus, std::uint64_t epoch, std::int64_t steps) const;

  // Rows consumed by `steps` steps, relative to all rows of all corpora. Before the start it is
  // taken to have grown evenly.
  double epochs_after(std::int64_t steps) const;
  std::int64_t smallest_batch() const;

 private:
  struct Stage {  // steps with one batch size
    std::int64_t first_step, global_batch;
    std::uint64_t first_sample;
    // Of each bin, before the stage: steps and samples of the phase that came from it.
    std::vector<std::uint64_t> bin_steps = {}, bin_samples = {};
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
    std::uint64_t samples;      // of the whole phase; of the last one: without end
    std::int64_t end_step = 0;  // but for the last one
    std::uint64_t rows = 0;
    double epochs_before = 0;
    std::optional<LengthBins> bins = {};
    std::optional<Mixture> bin_of_step = {};
  };
  Part make_part(const MixturePart& corpus, Phase& phase, const DataOptions& options,
                 const PlanCache* plans) const;
  void add_phase(Phase phase);
  const Phase& phase_of_epoch(std::size_t corpus, std::uint64_t epoch) const;
  static void add_stage(Phase& phase, std::int64_t first_step, std::int64_t global_batch);
  const Phase& phase_of_step(std::int64_t step) const;
  static const Stage& stage_of_step(const Phase& phase, std::int64_t step);
  static std::uint64_t samples_before(const Phase& phase, std::int64_t step);
  // Of each bin.
  static std::vector<std::uint64_t> bin_samples_before(const Phase& phase, std::int64_t step);
  // Epochs of a corpus that `step` steps, up to the end of the phase, have ended and begun.
  static OpenEpochs epochs_before(const Phase& phase, std::size_t corpus, std::int64_t step);

  PlanKey key_of(const MixturePart& part, std::int64_t sequence_length) const;

  std::vector<MixturePart> corpora_;
  Packing packing_;
  bool sentence_pairs_;
  std::int64_t length_bins_;
  OrderStart start_;
  std::vector<Phase> phases_;
};

}  // namespace tupelo

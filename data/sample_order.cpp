#include "data/sample_order.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/mixing.h"

namespace tupelo {
namespace {

// Tells the order of the bins from that of a mixture.
constexpr std::uint64_t kBinOrder = 1;
constexpr std::uint64_t kWithoutEnd = std::numeric_limits<std::uint64_t>::max();

struct Stretch {
  std::int64_t first_step, value;
};

// The ramp as what begins when; neighbours of one value are one stretch.
std::vector<Stretch> stretches(const Ramp& ramp, std::int64_t last, const std::string& name) {
  std::vector<Stretch> result;
  const auto add = [&](std::int64_t first_step, std::int64_t value) {
    if (result.empty() || result.back().value != value) result.push_back({first_step, value});
  };
  std::int64_t first_step = 0;
  for (const RampPart& part : ramp) {
    if (part.until_step <= first_step) {
      throw std::invalid_argument(name + ": step " + std::to_string(part.until_step) +
                                  " does not come after step " + std::to_string(first_step));
    }
    if (part.value < 1) throw std::invalid_argument(name + ": a value is less than 1");
    add(first_step, part.value);
    first_step = part.until_step;
  }
  add(first_step, last);
  return result;
}

std::uint64_t rounded_up(std::uint64_t samples, std::uint64_t rows) {
  return (samples + rows - 1) / rows;
}

void check_length_bins(const DataOptions& options, std::size_t corpora) {
  if (options.length_bins == 0) return;
  if (options.length_bins < 0 || options.length_bins > 256) {
    throw std::invalid_argument("length bins are 0 to 256, not " +
                                std::to_string(options.length_bins));
  }
  if (options.packing != Packing::kDocument) {
    throw std::invalid_argument("length bins are for rows that keep to one document each");
  }
  if (corpora > 1) {
    throw std::invalid_argument("length bins are for a single corpus, not for a mixture of " +
                                std::to_string(corpora));
  }
}

// The last of `parts` that begins at or before `value`.
template <typename Parts, typename Value, typename Begin>
auto part_at(const Parts& parts, Value value, Begin begin) {
  const auto after =
      std::upper_bound(parts.begin(), parts.end(), value,
                       [&](Value wanted, const auto& part) { return wanted < begin(part); });
  return std::prev(after);
}

}  // namespace

SampleOrder::SampleOrder(const std::vector<MixturePart>& corpora, const DataOptions& options,
                         const PlanCache* plans, const OrderStart& start)
    : corpora_(corpora),
      packing_(options.packing),
      sentence_pairs_(options.sentence_pairs),
      length_bins_(options.length_bins),
      start_(start) {
  start_.epochs.resize(corpora.size());
  check_length_bins(options, corpora.size());
  const auto lengths = stretches(options.length_ramp, options.sequence_length, "length ramp");
  const auto batches = stretches(options.batch_ramp, options.global_batch, "batch ramp");
  std::vector<double> weights;
  for (const MixturePart& part : corpora) weights.push_back(part.weight);
  for (std::size_t p = 0; p < lengths.size(); ++p) {
    const bool last = p + 1 == lengths.size();
    if (!last && lengths[p + 1].first_step <= start_.step) continue;  // over before the start
    const std::int64_t begin = std::max(lengths[p].first_step, start_.step);
    Phase phase{begin, lengths[p].value, Mixture(weights, options.seed), {}, {}, kWithoutEnd};
    for (const MixturePart& part : corpora) {
      phase.parts.push_back(make_part(part, phase, options, plans));
      phase.rows += phase.parts.back().plan.rows();
    }
    const auto batch_at_begin =
        part_at(batches, begin, [](const Stretch& stretch) { return stretch.first_step; });
    add_stage(phase, begin, batch_at_begin->value);
    for (auto next = std::next(batch_at_begin);
         next != batches.end() && (last || next->first_step < lengths[p + 1].first_step); ++next) {
      add_stage(phase, next->first_step, next->value);
    }
    if (!last) {
      phase.end_step = lengths[p + 1].first_step;
      phase.samples = samples_before(phase, phase.end_step);
    }
    add_phase(std::move(phase));
  }
}

SampleOrder::Part SampleOrder::make_part(const MixturePart& corpus, Phase& phase,
                                         const DataOptions& options, const PlanCache* plans) const {
  const auto tables = plans != nullptr
                          ? plans->find(key_of(corpus, phase.sequence_length), *corpus.documents)
                          : std::optional<PlanTables>();
  RowPlan plan(corpus.documents, packing_, phase.sequence_length, sentence_pairs_, tables);
  if (length_bins_ > 0 && plan.rows() > 0) {
    phase.bins.emplace(corpus.documents, plan, static_cast<std::size_t>(length_bins_),
                       tables ? &*tables : nullptr);
    std::vector<double> rows;
    for (std::size_t bin = 0; bin < phase.bins->count(); ++bin) {
      rows.push_back(static_cast<double>(phase.bins->rows(bin)));
    }
    phase.bin_of_step.emplace(rows, hash_numbers(options.seed, kBinOrder));
  }
  return {std::move(plan)};
}

void SampleOrder::add_stage(Phase& phase, std::int64_t first_step, std::int64_t global_batch) {
  Stage stage{first_step, global_batch, 0};
  if (!phase.stages.empty()) stage.first_sample = samples_before(phase, first_step);
  if (phase.bins) {
    stage.bin_steps =
        phase.bin_of_step->drawn(static_cast<std::uint64_t>(first_step - phase.first_step));
    stage.bin_samples = phase.stages.empty() ? std::vector<std::uint64_t>(phase.bins->count())
                                             : bin_samples_before(phase, first_step);
  }
  phase.stages.push_back(std::move(stage));
}

PlanKey SampleOrder::key_of(const MixturePart& part, std::int64_t sequence_length) const {
  return {part.name, packing_, sequence_length, sentence_pairs_, length_bins_};
}

void SampleOrder::keep_plans(const PlanCache& plans) const {
  for (const Phase& phase : phases_) {
    for (std::size_t i = 0; i < corpora_.size(); ++i) {
      PlanTables tables = phase.parts[i].plan.tables();
      if (phase.bins) phase.bins->add_to(tables);
      plans.keep(key_of(corpora_[i], phase.sequence_length), *corpora_[i].documents, tables);
    }
  }
}

void SampleOrder::add_phase(Phase phase) {
  if (phases_.empty()) {
    phase.epochs_before = start_.epochs_before;
    for (std::size_t corpus = 0; corpus < corpora_.size(); ++corpus) {
      phase.parts[corpus].first_epoch = start_.epochs[corpus];
    }
  } else if (phase.rows > 0) {
    const Phase& before = phases_.back();
    phase.epochs_before = before.epochs_before +
                          static_cast<double>(before.samples) / static_cast<double>(before.rows);
    for (std::size_t corpus = 0; corpus < corpora_.size(); ++corpus) {
      phase.parts[corpus].first_epoch = epochs_before(before, corpus, before.end_step).end;
    }
  }
  phases_.push_back(std::move(phase));
}

OrderStart SampleOrder::start_after(std::int64_t steps) const {
  OrderStart next{steps, {}, epochs_after(steps)};
  for (std::size_t corpus = 0; corpus < corpora_.size(); ++corpus) {
    next.epochs.push_back(open_epochs(corpus, steps).end);
  }
  return next;
}

const SampleOrder::Phase& SampleOrder::phase_of_step(std::int64_t step) const {
  if (step < start_.step) {
    throw std::out_of_range("step " + std::to_string(step) + " comes before the order's start");
  }
  return *part_at(phases_, step, [](const Phase& phase) { return phase.first_step; });
}

const SampleOrder::Stage& SampleOrder::stage_of_step(const Phase& phase, std::int64_t step) {
  return *part_at(phase.stages, step, [](const Stage& candidate) { return candidate.first_step; });
}

std::uint64_t SampleOrder::samples_before(const Phase& phase, std::int64_t step) {
  const Stage& stage = stage_of_step(phase, step);
  return stage.first_sample + static_cast<std::uint64_t>(step - stage.first_step) *
                                  static_cast<std::uint64_t>(stage.global_batch);
}

std::vector<std::uint64_t> SampleOrder::bin_samples_before(const Phase& phase, std::int64_t step) {
  const Stage& stage = stage_of_step(phase, step);
  std::vector<std::uint64_t> samples = stage.bin_samples;
  const auto steps = phase.bin_of_step->drawn(static_cast<std::uint64_t>(step - phase.first_step));
  for (std::size_t bin = 0; bin < samples.size(); ++bin) {
    samples[bin] +=
        (steps[bin] - stage.bin_steps[bin]) * static_cast<std::uint64_t>(stage.global_batch);
  }
  return samples;
}

SampleOrder::OpenEpochs SampleOrder::epochs_before(const Phase& phase, std::size_t corpus,
                                                   std::int64_t step) {
  const Part& part = phase.parts[corpus];
  if (!phase.bins) {
    const std::uint64_t drawn = phase.mixture.drawn(corpus, samples_before(phase, step));
    const std::uint64_t rows = part.plan.rows();
    return {part.first_epoch + drawn / rows, part.first_epoch + rounded_up(drawn, rows)};
  }
  OpenEpochs epochs{kWithoutEnd, 0};
  const std::vector<std::uint64_t> drawn = bin_samples_before(phase, step);
  for (std::size_t bin = 0; bin < drawn.size(); ++bin) {
    const std::uint64_t rows = phase.bins->rows(bin);
    epochs.first = std::min(epochs.first, part.first_epoch + drawn[bin] / rows);
    epochs.end = std::max(epochs.end, part.first_epoch + rounded_up(drawn[bin], rows));
  }
  return epochs;
}

SampleOrder::Step SampleOrder::step(std::int64_t step) const {
  const Phase& phase = phase_of_step(step);
  const Stage& stage = stage_of_step(phase, step);
  Step result{static_cast<std::size_t>(&phase - phases_.data()), phase.sequence_length,
              stage.global_batch, samples_before(phase, step)};
  if (!phase.bins) return result;
  const auto number = static_cast<std::uint64_t>(step - phase.first_step);
  const Mixture::Draw drawn =
      phase.bin_of_step->block(number / Mixture::kBlock)[number % Mixture::kBlock];
  result.bin = drawn.part;
  result.first_sample =
      stage.bin_samples[drawn.part] +
      (drawn.index - stage.bin_steps[drawn.part]) * static_cast<std::uint64_t>(stage.global_batch);
  // [CLS] and [SEP]; in pairs another [SEP] and what may come before the row's place.
  const RowPlan& plan = phase.parts.front().plan;
  const auto longest = static_cast<std::int64_t>(phase.bins->longest(drawn.part) + plan.slack()) +
                       (sentence_pairs_ ? 3 : 2);
  result.longest_row = std::min(longest, phase.sequence_length);
  return result;
}

Mixture::Draw SampleOrder::Reader::draw(const Step& step, std::uint64_t sample) {
  if (order_.corpora() == 1) return {0, sample};
  const std::uint64_t block = sample / Mixture::kBlock;
  if (draws_.empty() || phase_ != step.phase || block_ != block) {
    draws_ = order_.phases_[step.phase].mixture.block(block);
    phase_ = step.phase;
    block_ = block;
  }
  return draws_[sample % Mixture::kBlock];
}

SampleOrder::Sample SampleOrder::Reader::sample(const Step& step, std::uint64_t sample) {
  const Mixture::Draw drawn = draw(step, step.first_sample + sample);
  const Phase& phase = order_.phases_[step.phase];
  const Part& part = phase.parts[drawn.part];
  const std::uint64_t rows = phase.bins ? phase.bins->rows(step.bin) : part.plan.rows();
  return {drawn.part, part.first_epoch + drawn.index / rows, drawn.index % rows};
}

SampleOrder::OpenEpochs SampleOrder::open_epochs(std::size_t corpus, std::int64_t steps) const {
  return epochs_before(phase_of_step(steps), corpus, steps);
}

const SampleOrder::Phase& SampleOrder::phase_of_epoch(std::size_t corpus,
                                                      std::uint64_t epoch) const {
  if (epoch < start_.epochs[corpus]) {
    throw std::out_of_range("epoch " + std::to_string(epoch) + " comes before the order's start");
  }
  return *part_at(phases_, epoch,
                  [corpus](const Phase& candidate) { return candidate.parts[corpus].first_epoch; });
}

SampleOrder::Epoch SampleOrder::epoch(std::size_t corpus, std::uint64_t epoch) const {
  const Phase& phase = phase_of_epoch(corpus, epoch);
  if (phase.samples != kWithoutEnd) return epoch_after_steps(corpus, epoch, phase.end_step);
  const std::uint64_t rows = phase.parts[corpus].plan.rows();
  return {rows, rows};
}

SampleOrder::Epoch SampleOrder::epoch_after_steps(std::size_t corpus, std::uint64_t epoch,
                                                  std::int64_t steps) const {
  const Phase& phase = phase_of_epoch(corpus, epoch);
  if (phase.samples != kWithoutEnd) steps = std::min(steps, phase.end_step);
  const Part& part = phase.parts[corpus];
  const std::uint64_t rows = part.plan.rows();
  if (steps <= phase.first_step) return {rows, 0};
  const std::uint64_t number = epoch - part.first_epoch;
  const auto consumed = [number](std::uint64_t drawn, std::uint64_t of) {
    return std::min(of, drawn - std::min(drawn, number * of));
  };
  if (!phase.bins) {
    return {rows, consumed(phase.mixture.drawn(corpus, samples_before(phase, steps)), rows)};
  }
  Epoch result{rows, 0};
  const std::vector<std::uint64_t> drawn = bin_samples_before(phase, steps);
  for (std::size_t bin = 0; bin < drawn.size(); ++bin) {
    result.consumed += consumed(drawn[bin], phase.bins->rows(bin));
  }
  return result;
}

double SampleOrder::epochs_after(std::int64_t steps) const {
  if (steps < start_.step) {
    return start_.epochs_before * static_cast<double>(steps) / static_cast<double>(start_.step);
  }
  const Phase& phase = phase_of_step(steps);
  return phase.epochs_before +
         static_cast<double>(samples_before(phase, steps)) / static_cast<double>(phase.rows);
}

std::int64_t SampleOrder::smallest_batch() const {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (const Phase& phase : phases_) {
    for (const Stage& stage : phase.stages) smallest = std::min(smallest, stage.global_batch);
  }
  return smallest;
}

}  // namespace tupelo

#include "data/sample_order.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

namespace tupelo {
namespace {

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

// The last of `parts` that begins at or before `value`.
template <typename Parts, typename Value, typename Begin>
auto part_at(const Parts& parts, Value value, Begin begin) {
  const auto after =
      std::upper_bound(parts.begin(), parts.end(), value,
                       [&](Value wanted, const auto& part) { return wanted < begin(part); });
  return std::prev(after);
}

}  // namespace

SampleOrder::SampleOrder(const std::vector<MixturePart>& corpora, const DataOptions& options)
    : corpora_(corpora.size()) {
  const auto lengths = stretches(options.length_ramp, options.sequence_length, "length ramp");
  const auto batches = stretches(options.batch_ramp, options.global_batch, "batch ramp");
  std::vector<double> weights;
  for (const MixturePart& part : corpora) weights.push_back(part.weight);
  for (std::size_t p = 0; p < lengths.size(); ++p) {
    const std::int64_t begin = lengths[p].first_step;
    const bool last = p + 1 == lengths.size();
    Phase phase{begin, lengths[p].value, Mixture(weights, options.seed), {}, {}, kWithoutEnd};
    for (const MixturePart& part : corpora) {
      phase.parts.push_back({RowPlan(*part.document_offsets, options.packing, lengths[p].value,
                                     options.sentence_pairs)});
      phase.rows += phase.parts.back().plan.rows();
    }
    const auto batch_at_begin =
        part_at(batches, begin, [](const Stretch& stretch) { return stretch.first_step; });
    phase.stages.push_back({begin, batch_at_begin->value, 0});
    for (auto next = std::next(batch_at_begin);
         next != batches.end() && (last || next->first_step < lengths[p + 1].first_step); ++next) {
      phase.stages.push_back(
          {next->first_step, next->value, samples_before(phase, next->first_step)});
    }
    if (!last) phase.samples = samples_before(phase, lengths[p + 1].first_step);
    add_phase(std::move(phase));
  }
}

void SampleOrder::add_phase(Phase phase) {
  if (!phases_.empty() && phase.rows > 0) {
    const Phase& before = phases_.back();
    phase.epochs_before = before.epochs_before +
                          static_cast<double>(before.samples) / static_cast<double>(before.rows);
    for (std::size_t corpus = 0; corpus < corpora_; ++corpus) {
      const Part& part = before.parts[corpus];
      const std::uint64_t rows = part.plan.rows();
      const std::uint64_t drawn = before.mixture.drawn(corpus, before.samples);
      phase.parts[corpus].first_epoch = part.first_epoch + (drawn + rows - 1) / rows;
    }
  }
  phases_.push_back(std::move(phase));
}

const SampleOrder::Phase& SampleOrder::phase_of_step(std::int64_t step) const {
  return *part_at(phases_, step, [](const Phase& phase) { return phase.first_step; });
}

std::uint64_t SampleOrder::samples_before(const Phase& phase, std::int64_t step) {
  const auto stage =
      part_at(phase.stages, step, [](const Stage& candidate) { return candidate.first_step; });
  return stage->first_sample + static_cast<std::uint64_t>(step - stage->first_step) *
                                   static_cast<std::uint64_t>(stage->global_batch);
}

SampleOrder::Step SampleOrder::step(std::int64_t step) const {
  const Phase& phase = phase_of_step(step);
  const auto stage =
      part_at(phase.stages, step, [](const Stage& candidate) { return candidate.first_step; });
  return {static_cast<std::size_t>(&phase - phases_.data()), phase.sequence_length,
          stage->global_batch, samples_before(phase, step)};
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
  const Part& part = order_.phases_[step.phase].parts[drawn.part];
  const std::uint64_t rows = part.plan.rows();
  return {drawn.part, part.first_epoch + drawn.index / rows, drawn.index % rows};
}

std::uint64_t SampleOrder::epoch_after(std::size_t corpus, std::int64_t steps) const {
  const Phase& phase = phase_of_step(steps);
  const Part& part = phase.parts[corpus];
  return part.first_epoch +
         phase.mixture.drawn(corpus, samples_before(phase, steps)) / part.plan.rows();
}

SampleOrder::Epoch SampleOrder::epoch(std::size_t corpus, std::uint64_t epoch) const {
  const Phase& phase = *part_at(phases_, epoch, [corpus](const Phase& candidate) {
    return candidate.parts[corpus].first_epoch;
  });
  const Part& part = phase.parts[corpus];
  const std::uint64_t rows = part.plan.rows();
  if (phase.samples == kWithoutEnd) return {rows, rows};
  const std::uint64_t drawn = phase.mixture.drawn(corpus, phase.samples);
  return {rows, std::min(rows, drawn - (epoch - part.first_epoch) * rows)};
}

double SampleOrder::epochs_after(std::int64_t steps) const {
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

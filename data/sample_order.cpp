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

SampleOrder::SampleOrder(const std::vector<std::uint64_t>& document_offsets,
                         const DataOptions& options) {
  const auto lengths = stretches(options.length_ramp, options.sequence_length, "length ramp");
  const auto batches = stretches(options.batch_ramp, options.global_batch, "batch ramp");
  for (std::size_t p = 0; p < lengths.size(); ++p) {
    const std::int64_t begin = lengths[p].first_step;
    const bool last = p + 1 == lengths.size();
    Phase phase{
        begin, lengths[p].value, RowPlan(document_offsets, options.packing, lengths[p].value), {},
        0,     kWithoutEnd};
    const auto batch_at_begin =
        part_at(batches, begin, [](const Stretch& stretch) { return stretch.first_step; });
    phase.stages.push_back({begin, batch_at_begin->value, 0});
    for (auto next = std::next(batch_at_begin);
         next != batches.end() && (last || next->first_step < lengths[p + 1].first_step); ++next) {
      phase.stages.push_back(
          {next->first_step, next->value, samples_before(phase, next->first_step)});
    }
    if (!last) phase.samples = samples_before(phase, lengths[p + 1].first_step);
    if (p > 0 && phases_.back().plan.rows() > 0) {
      const Phase& before = phases_.back();
      const std::uint64_t rows = before.plan.rows();
      phase.first_epoch = before.first_epoch + (before.samples + rows - 1) / rows;
    }
    phases_.push_back(std::move(phase));
  }
}

const SampleOrder::Phase& SampleOrder::phase_of_step(std::int64_t step) const {
  return *part_at(phases_, step, [](const Phase& phase) { return phase.first_step; });
}

const SampleOrder::Phase& SampleOrder::phase_of_epoch(std::uint64_t epoch) const {
  return *part_at(phases_, epoch, [](const Phase& phase) { return phase.first_epoch; });
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
  return {&phase.plan, phase.sequence_length, stage->global_batch, samples_before(phase, step),
          phase.first_epoch};
}

std::uint64_t SampleOrder::epoch_after(std::int64_t steps) const {
  const Phase& phase = phase_of_step(steps);
  return phase.first_epoch + samples_before(phase, steps) / phase.plan.rows();
}

double SampleOrder::epochs_after(std::int64_t steps) const {
  const Phase& phase = phase_of_step(steps);
  return static_cast<double>(phase.first_epoch) +
         static_cast<double>(samples_before(phase, steps)) / static_cast<double>(phase.plan.rows());
}

SampleOrder::Epoch SampleOrder::epoch(std::uint64_t epoch) const {
  const Phase& phase = phase_of_epoch(epoch);
  const std::uint64_t rows = phase.plan.rows();
  if (phase.samples == kWithoutEnd) return {rows, rows};
  return {rows, std::min(rows, phase.samples - (epoch - phase.first_epoch) * rows)};
}

std::int64_t SampleOrder::smallest_batch() const {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (const Phase& phase : phases_) {
    for (const Stage& stage : phase.stages) smallest = std::min(smallest, stage.global_batch);
  }
  return smallest;
}

}  // namespace tupelo

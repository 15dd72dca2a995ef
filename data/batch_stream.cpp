#include "data/batch_stream.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "data/masker.h"
#include "data/mixing.h"
#include "data/sentence_pairs.h"

namespace tupelo {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

void check_settings(const DataOptions& options, const SampleOrder& order, int rank, int world_size,
                    std::int64_t first_step) {
  const std::int64_t smallest = order.smallest_batch();
  require(world_size >= 1 && rank >= 0 && rank < world_size, "rank " + std::to_string(rank) +
                                                                 " does not exist in a world of " +
                                                                 std::to_string(world_size));
  require(smallest >= world_size,
          "global batch " + std::to_string(smallest) + " is smaller than the number of ranks, " +
              std::to_string(world_size) + ": every rank needs at least one row per step");
  require(options.micro_batch >= 1, "micro-batch " + std::to_string(options.micro_batch) +
                                        " is not a positive number of rows");
  require(options.prefetch_steps >= 1,
          "prefetch steps " + std::to_string(options.prefetch_steps) + " is less than 1");
  require(first_step >= 0, "step " + std::to_string(first_step) + " is negative");
}

// The samples of a step that belong to one rank: [begin, end) within [0, global_batch).
struct Share {
  std::uint64_t begin, end;
};

Share share_of(std::int64_t global_batch, int rank, int world_size) {
  const std::uint64_t rows = static_cast<std::uint64_t>(global_batch);
  const std::uint64_t ranks = static_cast<std::uint64_t>(world_size);
  const std::uint64_t r = static_cast<std::uint64_t>(rank);
  return {r * rows / ranks, (r + 1) * rows / ranks};
}

// All but documents, which the host makes a TokenLayout of.
void lock_pages(Batch& batch) {
  for (torch::Tensor* tensor : {&batch.input_ids, &batch.attention_mask, &batch.masked_positions,
                                &batch.labels, &batch.pair_rows, &batch.pair_labels}) {
    if (tensor->defined()) *tensor = tensor->pin_memory();
  }
}

}  // namespace

struct BatchStream::State {
  const std::vector<const ShardedCorpus*> corpora;
  const DataOptions options;
  const std::shared_ptr<const SampleOrder> order;
  const int rank, world_size;
  const std::optional<torch::Device> copied_to;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<std::vector<Batch>> ready;
  std::exception_ptr failure;
  std::vector<std::exception_ptr> bad_shards;
  Waits waits;
  // Of each corpus's epoch and bin last asked for; only the producer uses it.
  struct EpochPermutation {
    std::uint64_t epoch = 0;
    std::size_t bin = 0;
    std::optional<KeyedPermutation> permutation;
  };
  std::vector<EpochPermutation> permutations;
  SampleOrder::Reader reader;

  std::jthread producer;  // last, so that it ends before what it uses

  State(const std::vector<const ShardedCorpus*>& opened, const DataOptions& chosen,
        std::shared_ptr<const SampleOrder> order_of_rows, int own_rank, int ranks,
        std::optional<torch::Device> device_of_batches)
      : corpora(opened),
        options(chosen),
        order(std::move(order_of_rows)),
        rank(own_rank),
        world_size(ranks),
        copied_to(device_of_batches),
        permutations(opened.size()),
        reader(*order) {}

  RowOfCorpus row_of(const SampleOrder::Step& step, std::uint64_t number) {
    const SampleOrder::Sample sample = reader.sample(step, number);
    EpochPermutation& known = permutations[sample.corpus];
    const LengthBins* bins = order->bins(step.phase);
    if (!known.permutation || known.epoch != sample.epoch || known.bin != step.bin) {
      known.epoch = sample.epoch;
      known.bin = step.bin;
      const std::uint64_t seed = bins ? hash_numbers(options.seed, step.bin) : options.seed;
      known.permutation.emplace(
          bins ? bins->rows(step.bin) : order->plan(step.phase, sample.corpus).rows(), seed,
          sample.epoch);
    }
    const std::uint64_t place = (*known.permutation)(sample.index);
    return {sample.corpus, bins ? bins->row(step.bin, place) : place, sample.epoch};
  }

  std::vector<RowSource> sources(std::size_t phase) const {
    std::vector<RowSource> result;
    for (std::size_t i = 0; i < corpora.size(); ++i) {
      result.push_back({corpora[i], &order->plan(phase, i)});
    }
    return result;
  }

  std::uint64_t micro_batch(const SampleOrder::Step& step) const {
    const std::int64_t tokens = options.micro_batch * options.sequence_length;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, tokens / step.longest_row));
  }

  std::vector<Batch> batches_of(std::int64_t number) {
    const SampleOrder::Step step = order->step(number);
    const std::uint64_t most = micro_batch(step);
    const Share share = share_of(step.global_batch, rank, world_size);
    std::vector<Batch> batches;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += most) {
      std::vector<RowOfCorpus> rows;
      for (std::uint64_t i = begin; i < std::min(begin + most, share.end); ++i) {
        rows.push_back(row_of(step, i));
      }
      batches.push_back(make_batch(sources(step.phase), options, rows));
      if (copied_to) lock_pages(batches.back());
    }
    return batches;
  }

  // The error in flight and those of single rows of the step: one for each shard.
  std::vector<std::exception_ptr> bad_shards_of(std::int64_t number, const ShardName& in_flight) {
    std::vector<std::exception_ptr> errors{std::current_exception()};
    std::set<ShardName> blamed{in_flight};
    const SampleOrder::Step step = order->step(number);
    const Share share = share_of(step.global_batch, rank, world_size);
    for (std::uint64_t i = share.begin; i < share.end; ++i) {
      try {
        make_batch(sources(step.phase), options, {row_of(step, i)});
      } catch (const BadShard& bad) {
        if (blamed.insert(bad.shard()).second) errors.push_back(std::current_exception());
      }
    }
    return errors;
  }

  void fail(std::exception_ptr error, std::vector<std::exception_ptr> of_shards) {
    const std::lock_guard lock(mutex);
    failure = std::move(error);
    bad_shards = std::move(of_shards);
    changed.notify_all();
  }

  void produce(const std::stop_token& stop, std::int64_t step) {
    try {
      // Or else this thread would make a context on the first device.
      const c10::OptionalDeviceGuard on_device(copied_to);
      produce_from(stop, step);
    } catch (...) {
      fail(std::current_exception(), {});
    }
  }

  void produce_from(const std::stop_token& stop, std::int64_t step) {
    try {
      for (; !stop.stop_requested(); ++step) {
        std::vector<Batch> batches = batches_of(step);
        std::unique_lock lock(mutex);
        const bool room = changed.wait(lock, stop, [this] {
          return ready.size() < static_cast<std::size_t>(options.prefetch_steps);
        });
        if (!room) return;
        ready.push_back(std::move(batches));
        changed.notify_all();
      }
    } catch (const BadShard& bad) {
      const std::exception_ptr first = std::current_exception();
      fail(first, bad_shards_of(step, bad.shard()));
    }
  }
};

BatchStream::BatchStream(const std::vector<const ShardedCorpus*>& corpora,
                         const DataOptions& options, std::shared_ptr<const SampleOrder> order,
                         int rank, int world_size, std::int64_t first_step,
                         std::optional<torch::Device> copied_to) {
  check_settings(options, *order, rank, world_size, first_step);
  TORCH_CHECK(order->corpora() == corpora.size(), "an order of other corpora");
  for (std::size_t i = 0; i < corpora.size(); ++i) {
    const Masker checks_shares(corpora[i]->info(), options);
    if (options.sentence_pairs) require_sentence_starts(corpora[i]->info());
    if (order->plan(0, i).rows() == 0) throw CorpusError("the corpus has no rows in this split");
  }
  state_ = std::make_unique<State>(corpora, options, std::move(order), rank, world_size, copied_to);
  state_->producer = std::jthread([state = state_.get(), first_step](std::stop_token stop) {
    state->produce(stop, first_step);
  });
}

BatchStream::~BatchStream() = default;

std::vector<Batch> BatchStream::next() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(state_->mutex);
  if (state_->ready.empty()) {
    const Clock::time_point start = Clock::now();
    state_->changed.wait(lock, [this] { return !state_->ready.empty() || state_->failure; });
    ++state_->waits.steps;
    state_->waits.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (state_->ready.empty()) std::rethrow_exception(state_->failure);
  std::vector<Batch> batches = std::move(state_->ready.front());
  state_->ready.pop_front();
  state_->changed.notify_all();
  return batches;
}

std::vector<std::exception_ptr> BatchStream::bad_shards() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bad_shards;
}

BatchStream::Waits BatchStream::waits() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waits;
}

}  // namespace tupelo

#include "data/batch_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "data/masker.h"

namespace tupelo {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

void check_settings(const DataOptions& options, int rank, int world_size, std::int64_t first_step) {
  require(world_size >= 1 && rank >= 0 && rank < world_size, "rank " + std::to_string(rank) +
                                                                 " does not exist in a world of " +
                                                                 std::to_string(world_size));
  require(options.global_batch >= world_size,
          "global batch " + std::to_string(options.global_batch) +
              " is smaller than the number of ranks, " + std::to_string(world_size) +
              ": every rank needs at least one row per step");
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

}  // namespace

struct BatchStream::State {
  const ShardedCorpus& corpus;
  const DataOptions options;
  const RowPlan plan;
  const Share share;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<std::vector<Batch>> ready;
  std::exception_ptr failure;
  std::jthread producer;  // last, so that it ends before what it uses

  // Order of the epoch last asked for; only the producer uses it.
  std::uint64_t epoch = 0;
  std::optional<KeyedPermutation> order;

  State(const ShardedCorpus& opened, const DataOptions& chosen, Share rows_of_rank)
      : corpus(opened),
        options(chosen),
        plan(opened.document_offsets(), chosen.packing, chosen.sequence_length),
        share(rows_of_rank) {}

  std::uint64_t row_of(std::uint64_t sample) {
    const std::uint64_t wanted = sample / plan.rows();
    if (!order || wanted != epoch) {
      epoch = wanted;
      order.emplace(plan.rows(), options.seed, epoch);
    }
    return (*order)(sample % plan.rows());
  }

  std::vector<Batch> batches_of(std::uint64_t step) {
    const std::uint64_t first = step * static_cast<std::uint64_t>(options.global_batch);
    const std::uint64_t most = static_cast<std::uint64_t>(options.micro_batch);
    std::vector<Batch> batches;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += most) {
      std::vector<std::uint64_t> rows, epochs;
      for (std::uint64_t i = begin; i < std::min(begin + most, share.end); ++i) {
        rows.push_back(row_of(first + i));
        epochs.push_back((first + i) / plan.rows());
      }
      batches.push_back(make_batch(corpus, plan, options, rows, epochs));
    }
    return batches;
  }

  void produce(const std::stop_token& stop, std::uint64_t step) {
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
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      changed.notify_all();
    }
  }
};

BatchStream::BatchStream(const ShardedCorpus& corpus, const DataOptions& options, int rank,
                         int world_size, std::int64_t first_step) {
  check_settings(options, rank, world_size, first_step);
  const Masker checks_shares(corpus.info(), options);
  const Share share = share_of(options.global_batch, rank, world_size);
  state_ = std::make_unique<State>(corpus, options, share);
  if (state_->plan.rows() == 0) throw CorpusError("the corpus has no rows in this split");
  state_->producer = std::jthread([state = state_.get(), first_step](std::stop_token stop) {
    state->produce(stop, static_cast<std::uint64_t>(first_step));
  });
}

BatchStream::~BatchStream() = default;

std::vector<Batch> BatchStream::next() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->ready.empty() || state_->failure; });
  if (state_->ready.empty()) std::rethrow_exception(state_->failure);
  std::vector<Batch> batches = std::move(state_->ready.front());
  state_->ready.pop_front();
  state_->changed.notify_all();
  return batches;
}

const RowPlan& BatchStream::plan() const { return state_->plan; }

}  // namespace tupelo

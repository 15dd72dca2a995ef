// Which rows a run trains on: the shards that it uses, and the order of their rows.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/plan_cache.h"
#include "data/sample_order.h"
#include "launcher/agreement.h"
#include "launcher/open_corpora.h"
#include "launcher/run_config.h"
#include "launcher/run_state.h"

namespace tupelo {

// The same on all ranks. A training shard that turns out bad on any rank is left out by all, as
// long as these are no more than data.max-bad-shards over the whole run. Then an order over the
// rows of the other shards takes over, with epochs of its own (SampleOrder, OrderStart): which
// rows come when from there on depends on the set of shards, the step and the settings alone.
//
// Members that take a communicator are collective. They throw AgreedError: with the exit code of
// the shard's error, and all bad shards named, when there are more of them; else for whatever else
// went wrong on a rank.
class TrainingRows {
 public:
  // `corpora` outlives it; what is left out leaves corpora.train, whose elements keep their places.
  TrainingRows(OpenCorpora& corpora, const RunConfig& config, PlanCache plans);

  // The run goes on from here. Before any of the following. Throws std::invalid_argument when it
  // goes without more shards than are allowed.
  void take_up(const RunState& saved);
  // Hashes every shard, each on one rank. One that is held out must be sound.
  void verify(Communicator& communicator);
  // Makes order(), where there is none.
  void arrange(Communicator& communicator);
  // After `steps` steps: these errors of this rank, each a BadShard, and those of others. Nobody
  // may read the corpora meanwhile. Then there is no order() before arrange().
  void leave_out(const std::vector<std::exception_ptr>& own, std::int64_t steps,
                 Communicator& communicator);

  std::shared_ptr<const SampleOrder> order() const { return order_; }
  const std::vector<ExcludedShard>& excluded() const { return excluded_; }

 private:
  struct BadShardFound {
    ShardName shard;
    Failure failure;
  };
  using Found = std::vector<BadShardFound>;
  void note_bad_shard(const Communicator& communicator, Found& found,
                      const std::function<void()>& action) const;
  void verify_share(const Communicator& communicator, Found& found) const;
  std::shared_ptr<const SampleOrder> make_order() const;
  Found agree(const Found& own, Communicator& communicator) const;
  void exclude(const Found& found);
  void require_allowed(const Found& found) const;
  void require_shards_left() const;
  void take_out_of_corpora();
  std::vector<ExcludedShard> excluded_of(const ShardedCorpus& corpus) const;
  struct ShardPlace {
    const ShardedCorpus& corpus;
    std::size_t index;
  };
  ShardPlace place_of(const ShardName& shard) const;
  std::size_t allowed() const {
    return static_cast<std::size_t>(most_bad_shards_) - excluded_.size();
  }

  OpenCorpora& corpora_;
  DataOptions options_;
  std::int64_t most_bad_shards_;
  PlanCache plans_;
  std::vector<ExcludedShard> excluded_;
  OrderStart start_;
  // Of the order that takes over if a shard is left out before the run goes on.
  std::optional<OrderStart> next_ = OrderStart();
  std::shared_ptr<const SampleOrder> order_;
};

}  // namespace tupelo

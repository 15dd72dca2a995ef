#include "launcher/training_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/mixture.h"
#include "distributed/communicator.h"

namespace tupelo {
namespace {

std::vector<std::string> reasons_of(const std::vector<ExcludedShard>& shards) {
  std::vector<std::string> reasons;
  for (const ExcludedShard& shard : shards) reasons.push_back(shard.reason);
  return reasons;
}

std::string one_after_another(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

}  // namespace

TrainingRows::TrainingRows(OpenCorpora& corpora, const RunConfig& config, PlanCache plans)
    : corpora_(corpora),
      options_(config.data),
      most_bad_shards_(config.train.max_bad_shards),
      plans_(std::move(plans)) {}

void TrainingRows::take_up(const RunState& saved) {
  const auto count = static_cast<std::int64_t>(saved.excluded_shards.size());
  if (count > most_bad_shards_) {
    throw std::invalid_argument("data.max-bad-shards is " + std::to_string(most_bad_shards_) +
                                ", but this run already goes without " + std::to_string(count) +
                                "; set it to that or more, or use another --run folder");
  }
  excluded_ = saved.excluded_shards;
  start_ = saved.order_start;
  next_ = saved.next_order;
  take_out_of_corpora();
}

// Runs `action`; when that fails for a bad shard, the shard is added to `found`. No shard is left
// out for what an index says of it wrongly.
void TrainingRows::note_bad_shard(const Communicator& communicator, Found& found,
                                  const std::function<void()>& action) const {
  try {
    action();
  } catch (const std::exception& error) {
    const auto* bad = dynamic_cast<const BadShard*>(&error);
    if (bad == nullptr) throw;
    if (most_bad_shards_ > 0 && dynamic_cast<const CorpusError*>(&error) != nullptr) {
      const ShardPlace place = place_of(bad->shard());
      if (place.corpus.shard_has_its_digest(place.index)) throw;
    }
    found.push_back({bad->shard(), failure_of(error, communicator)});
  }
}

void TrainingRows::verify(Communicator& communicator) {
  Found own;
  together(communicator, [&] { verify_share(communicator, own); });
  const Found found = agree(own, communicator);
  if (!found.empty()) exclude(found);
}

void TrainingRows::verify_share(const Communicator& communicator, Found& found) const {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const auto world = static_cast<std::size_t>(communicator.world_size());
  for (const ShardedCorpus& half : corpora_.train) {
    for (std::size_t shard = rank; shard < half.shards().size(); shard += world) {
      note_bad_shard(communicator, found, [&] { half.verify_shard(shard); });
    }
  }
  for (const ShardedCorpus& half : corpora_.held_out) {
    for (std::size_t shard = rank; shard < half.shards().size(); shard += world) {
      half.verify_shard(shard);
    }
  }
}

// Making an order may read all shards, and each time fail at the first bad one.
void TrainingRows::arrange(Communicator& communicator) {
  while (!order_) {
    Found own;
    std::shared_ptr<const SampleOrder> order;
    together(communicator,
             [&] { note_bad_shard(communicator, own, [&] { order = make_order(); }); });
    const Found found = agree(own, communicator);
    if (found.empty()) {
      order_ = std::move(order);
    } else {
      exclude(found);
    }
  }
}

std::shared_ptr<const SampleOrder> TrainingRows::make_order() const {
  std::vector<std::uint64_t> tokens;
  for (const ShardedCorpus& corpus : corpora_.train) tokens.push_back(corpus.tokens());
  const std::vector<double> weights = mixture_weights(options_.mixture, tokens);
  std::vector<MixturePart> parts;
  for (std::size_t i = 0; i < corpora_.train.size(); ++i) {
    const ShardedCorpus& corpus = corpora_.train[i];
    parts.emplace_back(corpus.document_table(), weights[i]);
    std::string& name = parts.back().name;
    name = corpus.info().digest + " train";
    for (const ExcludedShard& excluded : excluded_of(corpus)) {
      name += " without " + excluded.shard.file;
    }
  }
  return std::make_shared<SampleOrder>(parts, options_, &plans_, start_);
}

void TrainingRows::leave_out(const std::vector<std::exception_ptr>& own, std::int64_t steps,
                             Communicator& communicator) {
  Found found;
  together(communicator, [&] {
    for (const std::exception_ptr& error : own) {
      note_bad_shard(communicator, found, [&] { std::rethrow_exception(error); });
    }
  });
  next_ = order_->start_after(steps);
  exclude(agree(found, communicator));
}

// What any rank found, in the order of corpora and their shards: the same on all ranks.
TrainingRows::Found TrainingRows::agree(const Found& own, Communicator& communicator) const {
  if (!communicator.any(!own.empty())) return {};
  std::map<ShardName, Failure> failures;
  for (const BadShardFound& found : own) failures.emplace(found.shard, found.failure);
  std::vector<ShardName> shards;
  std::vector<double> bad;
  for (const ShardedCorpus& corpus : corpora_.train) {
    for (const ShardSummary& shard : corpus.shards()) {
      shards.push_back({corpus.info().digest, shard.file});
      bad.push_back(failures.count(shards.back()) > 0 ? 1 : 0);
    }
  }
  bad = communicator.sum(bad);
  Found all;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (bad[i] == 0) continue;
    const auto mine = failures.find(shards[i]);
    const auto failure = first_failure(
        mine == failures.end() ? std::nullopt : std::optional(mine->second), communicator);
    all.push_back({shards[i], *failure});
  }
  return all;
}

void TrainingRows::exclude(const Found& found) {
  require_allowed(found);
  for (const auto& [shard, failure] : found) {
    const ShardPlace place = place_of(shard);
    const ShardSummary& summary = place.corpus.shards()[place.index];
    excluded_.push_back({shard, failure.sentence, next_->step, summary.documents, summary.tokens});
  }
  take_out_of_corpora();
  require_shards_left();
  start_ = *next_;
  order_.reset();
}

void TrainingRows::require_allowed(const Found& found) const {
  const Failure& first = found.front().failure;
  if (found.size() > allowed()) {
    if (most_bad_shards_ == 0 && found.size() == 1) throw AgreedError(first.code, first.text());
    std::vector<std::string> reasons = reasons_of(excluded_);
    for (const BadShardFound& bad : found) reasons.push_back(bad.failure.text());
    throw AgreedError(first.code, std::to_string(reasons.size()) +
                                      " shards are bad, more than data.max-bad-shards " +
                                      std::to_string(most_bad_shards_) + ": " +
                                      one_after_another(reasons));
  }
  if (next_) return;
  throw AgreedError(first.code, first.text() +
                                    "; the checkpoint is of a version of tupelo that left out no "
                                    "shards, and does not say how to go on without it");
}

void TrainingRows::require_shards_left() const {
  for (std::size_t i = 0; i < corpora_.train.size(); ++i) {
    if (!corpora_.train[i].shards().empty()) continue;
    const std::vector<ExcludedShard> excluded = excluded_of(corpora_.train[i]);
    if (excluded.empty()) continue;
    throw AgreedError(ExitCode::kCorrupt, "corpus " + corpora_.folders[i] +
                                              " has no sound training shard left: " +
                                              one_after_another(reasons_of(excluded)));
  }
}

std::vector<ExcludedShard> TrainingRows::excluded_of(const ShardedCorpus& corpus) const {
  std::vector<ExcludedShard> result;
  std::copy_if(excluded_.begin(), excluded_.end(), std::back_inserter(result),
               [&](const ExcludedShard& excluded) {
                 return excluded.shard.corpus_digest == corpus.info().digest;
               });
  return result;
}

void TrainingRows::take_out_of_corpora() {
  for (ShardedCorpus& corpus : corpora_.train) {
    std::set<std::string> files;
    for (const ExcludedShard& excluded : excluded_of(corpus)) files.insert(excluded.shard.file);
    if (!files.empty()) corpus = corpus.without(files);
  }
}

TrainingRows::ShardPlace TrainingRows::place_of(const ShardName& shard) const {
  for (const ShardedCorpus& corpus : corpora_.train) {
    if (corpus.info().digest != shard.corpus_digest) continue;
    const std::vector<ShardSummary>& shards = corpus.shards();
    for (std::size_t i = 0; i < shards.size(); ++i) {
      if (shards[i].file == shard.file) return {corpus, i};
    }
  }
  throw std::logic_error("no shard " + shard.file + " in the corpora");
}

}  // namespace tupelo

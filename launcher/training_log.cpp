#include "launcher/training_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/console.h"
#include "launcher/value_text.h"

namespace tupelo {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void TrainingLog::open(const std::filesystem::path& metrics, std::int64_t step) {
  metrics_ = std::make_unique<MetricsLog>(metrics, step);
}

void TrainingLog::start(const RunProgress& progress) {
  recorded_at_seconds_ = now_seconds();
  recorded_tokens_ = progress.tokens;
}

void TrainingLog::step(const RunProgress& progress, const StepRecord& step, double epoch,
                       std::uint64_t masks_hash) {
  const double elapsed = now_seconds() - recorded_at_seconds_;
  const auto tokens_since = static_cast<double>(progress.tokens - recorded_tokens_);
  const double rate = tokens_since / elapsed;
  if (metrics_) {
    nlohmann::ordered_json object = {{"step", progress.step},
                                     {"epoch", epoch},
                                     {"loss", step.loss},
                                     {"masked_accuracy", step.masked_accuracy},
                                     {"masked_tokens", step.masked_tokens},
                                     {"learning_rate", step.learning_rate},
                                     {"grad_norm", step.grad_norm},
                                     {"tokens", progress.tokens},
                                     {"tokens_per_second", rate},
                                     {"loader_wait_ms", step.loader_wait_ms},
                                     {"loader_late_steps", step.loader_late_steps},
                                     {"peak_memory_bytes", step.peak_memory_bytes},
                                     {"masks_hash", hex_text(masks_hash)}};
    if (step.sentence_order) object.update(sentence_order_json(*step.sentence_order));
    if (step.position_grad_norm) object["position_grad_norm"] = *step.position_grad_norm;
    if (step.skipped) object["skipped"] = true;
    metrics_->append(object.dump());
  }
  const double steps_since =
      tokens_since / static_cast<double>(std::max<std::int64_t>(step.tokens, 1));
  const double eta = elapsed / steps_since * static_cast<double>(total_steps_ - progress.step);
  const std::string order =
      step.sentence_order ? "  sop " + sentence_order_text(*step.sentence_order) : "";
  console_.milestone(
      "step " + std::to_string(progress.step) + "/" + std::to_string(total_steps_) + "  loss " +
      significant(step.loss, 5) + "  accuracy " + significant(100 * step.masked_accuracy, 3) + "%" +
      order + "  lr " + significant(step.learning_rate, 3) + "  |g| " +
      (std::isfinite(step.grad_norm) ? significant(step.grad_norm, 3) : "not finite") + "  " +
      grouped(static_cast<std::int64_t>(rate)) + " tokens/s  ETA " + duration_text(eta));
  start(progress);
}

void TrainingLog::epoch(std::int64_t step, std::size_t corpus, const Ledger::ClosedEpoch& epoch) {
  if (!metrics_) return;
  const nlohmann::ordered_json record = {{"step", step},       {"event", "epoch"},
                                         {"corpus", corpus},   {"finished_epoch", epoch.epoch},
                                         {"rows", epoch.rows}, {"ledger", hex_text(epoch.hash)},
                                         {"cut", epoch.cut},   {"complete", epoch.complete}};
  metrics_->append(record.dump());
}

void TrainingLog::validation(std::int64_t step, const std::vector<Evaluation>& results,
                             const std::optional<Evaluation>& of_average, double seconds) {
  const Evaluation result = combined(results);
  if (metrics_) {
    nlohmann::ordered_json record = {{"step", step},
                                     {"event", "validation"},
                                     {"validation_loss", result.loss},
                                     {"validation_perplexity", result.perplexity},
                                     {"validation_masked_accuracy", result.masked_accuracy},
                                     {"validation_masked_tokens", result.masked_tokens},
                                     {"validation_rows", result.rows},
                                     {"seconds", seconds}};
    if (result.sentence_order) {
      record.update(sentence_order_json(*result.sentence_order, "validation_"));
    }
    if (of_average) {
      record["validation_ema_loss"] = of_average->loss;
      record["validation_ema_masked_accuracy"] = of_average->masked_accuracy;
    }
    if (results.size() > 1) {
      for (const Evaluation& part : results) {
        record["corpora"].push_back({{"validation_loss", part.loss},
                                     {"validation_masked_accuracy", part.masked_accuracy},
                                     {"validation_masked_tokens", part.masked_tokens}});
        if (part.sentence_order) {
          record["corpora"].back().update(sentence_order_json(*part.sentence_order, "validation_"));
        }
      }
    }
    metrics_->append(record.dump());
  }
  console_.line(
      "step " + std::to_string(step) + "  held-out loss " + significant(result.loss, 5) +
      "  perplexity " + significant(result.perplexity, 4) + "  accuracy " +
      significant(100 * result.masked_accuracy, 3) + "%" +
      (result.sentence_order ? "  sop " + sentence_order_text(*result.sentence_order)
                             : std::string()) +
      (of_average ? "  of the average " + significant(of_average->loss, 5) : std::string()));
}

void TrainingLog::probe(std::int64_t step, const HeldOutProbe& probe, double seconds) {
  if (!metrics_) return;
  nlohmann::ordered_json record = {{"step", step}, {"event", "probe"}};
  record.update(probe_json(probe));
  record["seconds"] = seconds;
  metrics_->append(record.dump());
}

void TrainingLog::excluded(const ExcludedShard& shard, std::size_t corpus, const RowsLeft& rows,
                           std::size_t count, std::int64_t most) {
  if (metrics_) {
    nlohmann::ordered_json record = {{"step", shard.step},
                                     {"event", "excluded_shard"},
                                     {"corpus", corpus},
                                     {"corpus_digest", shard.shard.corpus_digest},
                                     {"shard", shard.shard.file},
                                     {"reason", shard.reason},
                                     {"documents", shard.documents},
                                     {"tokens", shard.tokens},
                                     {"rows", rows.left},
                                     {"bad_shards", count},
                                     {"max_bad_shards", most}};
    if (rows.before) record["rows_before"] = *rows.before;
    metrics_->append(record.dump());
  }
  const auto number = [](std::uint64_t value) { return grouped(static_cast<std::int64_t>(value)); };
  console_.notice("step " + std::to_string(shard.step) + ": all ranks go on without shard " +
                  shard.shard.file + ", bad shard " + std::to_string(count) + " of at most " +
                  std::to_string(most) + " (" + shard.reason + "): lost are " +
                  number(shard.documents) + " documents, " + number(shard.tokens) +
                  " tokens; an epoch has " + number(rows.left) + " rows" +
                  (rows.before ? " instead of " + number(*rows.before) : std::string()));
}

}  // namespace tupelo

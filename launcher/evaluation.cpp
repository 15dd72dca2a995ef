#include "launcher/evaluation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "distributed/communicator.h"
#include "launcher/device_batch.h"

namespace tupelo {
namespace {

constexpr std::uint64_t kEvaluationSeed = 20200628;  // any constant: it fixes the masks for good

// This rank's share of `count` rows spread evenly over [0, available).
std::vector<std::uint64_t> share_of_rows(std::uint64_t available, std::uint64_t count, int rank,
                                         int world_size) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t i = static_cast<std::uint64_t>(rank); i < count;
       i += static_cast<std::uint64_t>(world_size)) {
    // i * available / count without a product that could overflow.
    rows.push_back(i * (available / count) + i * (available % count) / count);
  }
  return rows;
}

// Rows and masks of the split, whatever a run's seed is.
struct HeldOutRows {
  HeldOutRows(const ShardedCorpus& corpus, const DataOptions& given)
      : options(given),
        plan(corpus.document_table(), given.packing, given.sequence_length, given.sentence_pairs) {
    options.seed = kEvaluationSeed;
    if (plan.rows() == 0) throw CorpusError("the held-out split has no row to evaluate on");
  }

  Batch batch(const ShardedCorpus& corpus, const std::vector<std::uint64_t>& rows) const {
    return make_batch(corpus, plan, options, rows, std::vector<std::uint64_t>(rows.size()));
  }
  std::uint64_t at_most(std::int64_t rows) const {
    return std::min<std::uint64_t>(plan.rows(), static_cast<std::uint64_t>(rows));
  }

  DataOptions options;
  RowPlan plan;
};

SentenceOrderFigures combined_order(const std::vector<Evaluation>& parts) {
  double loss = 0, correct = 0, pairs = 0, rows = 0;
  for (const Evaluation& part : parts) {
    const auto count = static_cast<double>(part.sentence_order->pairs);
    loss += part.sentence_order->loss * count;
    correct += part.sentence_order->accuracy * count;
    pairs += count;
    rows += static_cast<double>(part.rows);
  }
  return sentence_order_figures(loss, correct, pairs, rows);
}

}  // namespace

EvaluationMode::EvaluationMode(RobertaForMaskedLm& model)
    : model_(model), training_(model.is_training()) {
  model_.eval();
}

EvaluationMode::~EvaluationMode() { model_.train(training_); }

Batch held_out_batch(const ShardedCorpus& corpus, const DataOptions& options, std::int64_t rows) {
  const HeldOutRows held_out(corpus, options);
  return held_out.batch(corpus, share_of_rows(held_out.plan.rows(), held_out.at_most(rows), 0, 1));
}

Evaluation evaluate(RobertaForMaskedLm& model, const ShardedCorpus& corpus,
                    const DataOptions& options, std::int64_t max_rows, torch::Device device,
                    Communicator& communicator) {
  const torch::NoGradGuard no_gradients;
  const EvaluationMode mode(model);
  const HeldOutRows held_out(corpus, options);
  const std::uint64_t count = held_out.at_most(max_rows);
  const auto rows =
      share_of_rows(held_out.plan.rows(), count, communicator.rank(), communicator.world_size());

  double loss = 0, correct = 0, masked = 0, tokens = 0;
  double order_loss = 0, order_correct = 0, pairs = 0;
  const std::size_t step = static_cast<std::size_t>(options.micro_batch);
  for (std::size_t first = 0; first < rows.size(); first += step) {
    const std::vector<std::uint64_t> some(
        rows.begin() + static_cast<std::ptrdiff_t>(first),
        rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, rows.size())));
    const Batch batch = held_out.batch(corpus, some);
    const BatchLosses losses = batch_losses(model, batch, device);
    loss += losses.masked_lm.loss_sum.item<double>();
    correct += losses.masked_lm.correct.item<double>();
    if (losses.sentence_order) {
      order_loss += losses.sentence_order->loss_sum.item<double>();
      order_correct += losses.sentence_order->correct.item<double>();
      pairs += static_cast<double>(batch.pair_rows.numel());
    }
    masked += static_cast<double>(batch.labels.numel());
    tokens += static_cast<double>(batch.tokens);
  }
  const std::vector<double> sums = communicator.sum(
      std::vector<double>{loss, correct, masked, tokens, order_loss, order_correct, pairs});
  Evaluation result;
  result.loss = sums[0] / sums[2];
  result.perplexity = std::exp(result.loss);
  result.masked_accuracy = sums[1] / sums[2];
  result.masked_tokens = static_cast<std::int64_t>(sums[2]);
  result.tokens = static_cast<std::int64_t>(sums[3]);
  result.rows = static_cast<std::int64_t>(count);
  if (options.sentence_pairs) {
    result.sentence_order =
        sentence_order_figures(sums[4], sums[5], sums[6], static_cast<double>(count));
  }
  return result;
}

Evaluation combined(const std::vector<Evaluation>& parts) {
  if (parts.size() == 1) return parts.front();
  Evaluation sum;
  double correct = 0;
  for (const Evaluation& part : parts) {
    const auto masked = static_cast<double>(part.masked_tokens);
    sum.loss += part.loss * masked;
    correct += part.masked_accuracy * masked;
    sum.masked_tokens += part.masked_tokens;
    sum.tokens += part.tokens;
    sum.rows += part.rows;
  }
  sum.loss /= static_cast<double>(sum.masked_tokens);
  sum.perplexity = std::exp(sum.loss);
  sum.masked_accuracy = correct / static_cast<double>(sum.masked_tokens);
  if (parts.front().sentence_order) sum.sentence_order = combined_order(parts);
  return sum;
}

double unigram_entropy(const ShardedCorpus& corpus) {
  std::vector<std::uint64_t> counts(corpus.info().vocab_size);
  std::vector<std::uint32_t> tokens;
  for (std::uint64_t document = 0; document < corpus.documents(); ++document) {
    tokens.resize(corpus.length(document));
    corpus.read(document, 0, tokens.size(), tokens.data());
    for (std::uint32_t token : tokens) ++counts.at(token);
  }
  const double total = static_cast<double>(corpus.tokens());
  double entropy = 0;
  for (std::uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / total;
    entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace tupelo

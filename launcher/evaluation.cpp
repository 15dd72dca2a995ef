#include "launcher/evaluation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "distributed/communicator.h"
#include "launcher/device_batch.h"

namespace tupelo {
namespace {

constexpr std::uint64_t kEvaluationSeed = 20200628;  // any constant: it fixes the masks for good

class EvaluationMode {
 public:
  explicit EvaluationMode(RobertaForMaskedLm& model)
      : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  RobertaForMaskedLm& model_;
  bool training_;
};

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

}  // namespace

Evaluation evaluate(RobertaForMaskedLm& model, const ShardedCorpus& corpus,
                    const DataOptions& options, std::int64_t max_rows, torch::Device device,
                    Communicator& communicator) {
  const torch::NoGradGuard no_gradients;
  const EvaluationMode mode(model);
  DataOptions fixed = options;
  fixed.seed = kEvaluationSeed;
  const RowPlan plan(corpus.document_offsets(), fixed.packing, fixed.sequence_length);
  if (plan.rows() == 0) throw CorpusError("the held-out split has no row to evaluate on");
  const std::uint64_t count = std::min<std::uint64_t>(plan.rows(), max_rows);
  const auto rows =
      share_of_rows(plan.rows(), count, communicator.rank(), communicator.world_size());

  double loss = 0, correct = 0, masked = 0, tokens = 0;
  const std::size_t step = static_cast<std::size_t>(fixed.micro_batch);
  for (std::size_t first = 0; first < rows.size(); first += step) {
    const std::vector<std::uint64_t> some(
        rows.begin() + static_cast<std::ptrdiff_t>(first),
        rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, rows.size())));
    const Batch batch =
        make_batch(corpus, plan, fixed, some, std::vector<std::uint64_t>(some.size()));
    const MaskedLmOutput output = masked_lm_loss(model, batch, device);
    loss += output.loss_sum.item<double>();
    correct += output.correct.item<double>();
    masked += static_cast<double>(batch.labels.numel());
    tokens += static_cast<double>(batch.tokens);
  }
  const std::vector<double> sums =
      communicator.sum(std::vector<double>{loss, correct, masked, tokens});
  Evaluation result;
  result.loss = sums[0] / sums[2];
  result.perplexity = std::exp(result.loss);
  result.masked_accuracy = sums[1] / sums[2];
  result.masked_tokens = static_cast<std::int64_t>(sums[2]);
  result.tokens = static_cast<std::int64_t>(sums[3]);
  result.rows = static_cast<std::int64_t>(count);
  return result;
}

double unigram_entropy(const ShardedCorpus& corpus) {
  std::vector<std::uint64_t> counts(corpus.info().vocab_size);
  std::vector<std::uint32_t> tokens;
  const auto& offsets = corpus.document_offsets();
  for (std::uint64_t document = 0; document < corpus.documents(); ++document) {
    tokens.resize(offsets[document + 1] - offsets[document]);
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

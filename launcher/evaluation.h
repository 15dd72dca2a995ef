// Held-out quality of a model, on masks that never change.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "data/batch_stream.h"
#include "launcher/sentence_order_figures.h"
#include "model/roberta.h"

namespace tupelo {

class Communicator;

// A model without dropout, for as long as the object lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(RobertaForMaskedLm& model);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  RobertaForMaskedLm& model_;
  bool training_;
};

struct Evaluation {
  double loss = 0;  // mean over masked tokens, natural logarithm
  double perplexity = 0;
  double masked_accuracy = 0;
  std::int64_t masked_tokens = 0;
  std::int64_t tokens = 0;
  std::int64_t rows = 0;
  std::optional<SentenceOrderFigures> sentence_order;  // with options.sentence_pairs
};

// Masks, and segments of pairs, depend on the corpus alone, so that figures of different runs,
// seeds and steps compare. At most `max_rows` rows, spread evenly over the split, shared out over
// the ranks. Collective. Leaves the model in the mode (training or not) it was in. Throws
// CorpusError when the split has no row.
Evaluation evaluate(RobertaForMaskedLm& model, const ShardedCorpus& corpus,
                    const DataOptions& options, std::int64_t max_rows, torch::Device device,
                    Communicator& communicator);

// Of several corpora as one: each masked token counts alike, and each pair.
Evaluation combined(const std::vector<Evaluation>& parts);

// At most `rows` rows, spread evenly over the split, with the masks of evaluate(). Throws
// CorpusError when the split has no row.
Batch held_out_batch(const ShardedCorpus& corpus, const DataOptions& options, std::int64_t rows);

// Entropy, in nats, of the token frequencies of a split: the loss of the best predictor that
// ignores context.
double unigram_entropy(const ShardedCorpus& corpus);

}  // namespace tupelo

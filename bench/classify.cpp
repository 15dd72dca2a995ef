// What a pretrained encoder is worth: fine-tuned on labelled texts, and measured on others.
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "data/corpus.h"
#include "launcher/model_parameters.h"
#include "launcher/saved_model.h"
#include "model/roberta.h"
#include "optim/schedule.h"

namespace tupelo::bench {
namespace {

struct Example {
  std::vector<std::int64_t> ids;  // [CLS] text [SEP]
  std::int64_t label = 0;
};

// Labels are numbered in the order of their first example.
class Labels {
 public:
  std::int64_t number_of(const std::string& name) {
    return numbers_.emplace(name, static_cast<std::int64_t>(numbers_.size())).first->second;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size()); }

 private:
  std::map<std::string, std::int64_t> numbers_;
};

// Lines of a label, a tab and a text, cut off behind `tokens` tokens.
std::vector<Example> read_examples(const std::string& file, const Tokenizer& tokenizer,
                                   std::size_t tokens, Labels& labels) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file);
  const SpecialTokens& special = tokenizer.special_tokens();
  std::vector<Example> examples;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      throw std::runtime_error(file + ": line " + std::to_string(examples.size() + 1) +
                               " has no tab; valid is a label, a tab and a text");
    }
    std::vector<std::uint32_t> ids = {special.cls};
    tokenizer.encode(std::string_view(line).substr(tab + 1), ids);
    ids.resize(std::min(ids.size(), tokens - 1));
    ids.push_back(special.sep);
    examples.push_back({{ids.begin(), ids.end()}, labels.number_of(line.substr(0, tab))});
  }
  if (examples.empty()) throw std::runtime_error(file + " holds no example");
  return examples;
}

struct PaddedRows {
  torch::Tensor ids, real, labels;  // [B,T] int64, [B,T] bool, [B] int64
};

PaddedRows padded(const std::vector<Example>& examples, std::span<const std::size_t> chosen,
                  std::int64_t pad_id) {
  std::size_t longest = 0;
  for (const std::size_t i : chosen) longest = std::max(longest, examples[i].ids.size());
  const auto rows = static_cast<std::int64_t>(chosen.size());
  PaddedRows batch;
  batch.ids = torch::full({rows, static_cast<std::int64_t>(longest)}, pad_id, torch::kInt64);
  batch.labels = torch::empty({rows}, torch::kInt64);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Example& example = examples[chosen[static_cast<std::size_t>(row)]];
    std::copy(example.ids.begin(), example.ids.end(), batch.ids[row].data_ptr<std::int64_t>());
    batch.labels[row] = example.label;
  }
  batch.real = batch.ids.ne(pad_id);
  return batch;
}

// BERT's classifier on the first token's hidden state: dense, tanh, dropout, linear.
class Classifier {
 public:
  Classifier(RobertaForMaskedLm& encoder, std::int64_t labels) : encoder_(encoder) {
    const std::int64_t hidden = encoder.options().hidden_size;
    const double range = encoder.options().initializer_range;
    const auto drawn = [&](std::int64_t rows) {
      return (torch::randn({rows, hidden}) * range).requires_grad_();
    };
    dense_ = drawn(hidden);
    dense_bias_ = torch::zeros({hidden}).requires_grad_();
    output_ = drawn(labels);
    output_bias_ = torch::zeros({labels}).requires_grad_();
  }

  torch::Tensor logits(const PaddedRows& rows) {  // [B,labels]
    const torch::Tensor first = encoder_.hidden_states(rows.ids, rows.real).select(1, 0);
    const torch::Tensor pooled = at::linear(first, dense_, dense_bias_).tanh();
    const double dropout = encoder_.options().dropout;
    return at::linear(at::dropout(pooled, dropout, encoder_.is_training()), output_, output_bias_);
  }

  // The encoder's, with those of the heads, which get no gradients, and the classifier's own.
  std::vector<ParameterGroup> groups() const {
    std::vector<ParameterGroup> all = parameter_groups(encoder_, {}, 0);
    ParameterGroup own;
    own.name = "classifier";
    own.parameters = {{"dense", dense_},
                      {"dense_bias", dense_bias_},
                      {"output", output_},
                      {"output_bias", output_bias_}};
    all.push_back(std::move(own));
    return all;
  }

 private:
  RobertaForMaskedLm& encoder_;
  torch::Tensor dense_, dense_bias_, output_, output_bias_;
};

class FineTuning {
 public:
  // `fingerprint`: of the tokenizer that the encoder knows.
  FineTuning(const Arguments& arguments, RobertaForMaskedLm& encoder,
             const std::string& fingerprint)
      : arguments_(arguments), encoder_(encoder), rows_(arguments.number("--rows")) {
    const auto tokenizer = ShardedCorpus::load_tokenizer(arguments.text("--corpus"));
    if (tokenizer->fingerprint() != fingerprint) {
      throw std::invalid_argument("the run was trained with another tokenizer than that of " +
                                  arguments.text("--corpus"));
    }
    const auto tokens = static_cast<std::size_t>(
        std::min(arguments.number("--tokens"), encoder.options().max_positions));
    Labels labels;
    training_ = read_examples(arguments.text("--train"), *tokenizer, tokens, labels);
    test_ = read_examples(arguments.text("--test"), *tokenizer, tokens, labels);
    torch::manual_seed(static_cast<std::uint64_t>(arguments.number("--seed")));
    classifier_ = std::make_unique<Classifier>(encoder, labels.count());
    optimizer_ = make_optimizer({.beta2 = 0.999}, classifier_->groups());
    for (const ParameterGroup& group : optimizer_->groups()) {
      for (const NamedParameter& parameter : group.parameters) {
        parameters_.push_back(parameter.tensor);
      }
    }
    const auto size = static_cast<std::int64_t>(training_.size());
    steps_ = arguments.number("--epochs") * ((size + rows_ - 1) / rows_);
    schedule_ = make_schedule({.name = "linear",
                               .peak = arguments.decimal("--learning-rate", 0),
                               .warmup_steps = parse_steps("6%", steps_),
                               .total_steps = steps_});
  }

  // Share of the test's examples that are told right, after the last epoch.
  double run() {
    std::mt19937_64 random(static_cast<std::uint64_t>(arguments_.number("--seed")));
    std::vector<std::size_t> order(training_.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t epoch = 0; epoch < arguments_.number("--epochs"); ++epoch) {
      std::shuffle(order.begin(), order.end(), random);
      encoder_.train();
      for_batches(order, [&](std::span<const std::size_t> chosen) { step(chosen); });
    }
    return accuracy();
  }

  std::size_t training_examples() const { return training_.size(); }
  std::size_t test_examples() const { return test_.size(); }

 private:
  template <typename Use>
  void for_batches(std::span<const std::size_t> order, Use use) const {
    const auto rows = static_cast<std::size_t>(rows_);
    for (; !order.empty(); order = order.subspan(std::min(order.size(), rows))) {
      use(order.first(std::min(order.size(), rows)));
    }
  }

  void step(std::span<const std::size_t> chosen) {
    const PaddedRows rows = padded(training_, chosen, encoder_.options().pad_id);
    for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    at::cross_entropy_loss(classifier_->logits(rows), rows.labels).backward();
    clip_global_norm(parameters_, 1.0);
    optimizer_->step(schedule_(done_), done_ + 1);
    ++done_;
  }

  double accuracy() {
    const torch::NoGradGuard no_gradients;
    encoder_.eval();
    std::vector<std::size_t> order(test_.size());
    std::iota(order.begin(), order.end(), 0);
    std::int64_t right = 0;
    for_batches(order, [&](std::span<const std::size_t> chosen) {
      const PaddedRows rows = padded(test_, chosen, encoder_.options().pad_id);
      right += classifier_->logits(rows).argmax(1).eq(rows.labels).sum().item<std::int64_t>();
    });
    return static_cast<double>(right) / static_cast<double>(test_.size());
  }

  const Arguments& arguments_;
  RobertaForMaskedLm& encoder_;
  std::int64_t rows_;
  std::vector<Example> training_, test_;
  std::unique_ptr<Classifier> classifier_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<torch::Tensor> parameters_;
  LearningRateSchedule schedule_;
  std::int64_t steps_ = 0, done_ = 0;
};

void run(const Arguments& arguments) {
  const auto tell = [](const std::string& sentence) { std::cerr << sentence << "\n"; };
  const SavedModel saved = load_saved_model(arguments.text("--run"), 0, "last", tell);
  const bool anew = arguments.text("--weights") == "random";
  if (!anew && arguments.text("--weights") != "pretrained") {
    throw std::invalid_argument("--weights are pretrained or random");
  }
  if (anew) saved.model->initialize(static_cast<std::uint64_t>(arguments.number("--seed")));
  FineTuning fine_tuning(arguments, *saved.model, saved.state.tokenizer_fingerprint);
  const double accuracy = fine_tuning.run();
  std::printf(arguments.json() ? "{\"bench\": \"classify\", \"weights\": \"%s\", \"train\": %zu, "
                                 "\"test\": %zu, \"accuracy\": %.4f}\n"
                               : "%s weights: trained on %zu, right of %zu: %.4f\n",
              arguments.text("--weights").c_str(), fine_tuning.training_examples(),
              fine_tuning.test_examples(), accuracy);
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("classify", argc, argv,
                                  {{"--run", ""},
                                   {"--corpus", ""},
                                   {"--train", ""},
                                   {"--test", ""},
                                   {"--weights", "pretrained"},
                                   {"--epochs", "3"},
                                   {"--rows", "32"},
                                   {"--tokens", "128"},
                                   {"--learning-rate", "1e-4"},
                                   {"--seed", "1"}},
                                  tupelo::bench::run);
}

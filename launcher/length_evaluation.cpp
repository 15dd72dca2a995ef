#include "launcher/length_evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "distributed/communicator.h"
#include "launcher/console.h"
#include "launcher/extension_options.h"
#include "launcher/model_loading.h"
#include "launcher/nearest_name.h"
#include "launcher/text_table.h"
#include "launcher/value_text.h"
#include "model/attention_entropy.h"
#include "model/position/rotation_frequencies.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;
constexpr std::int64_t kShortestRow = 4;
constexpr std::int64_t kLongestRow = 1 << 24;
const std::vector<std::string> kTemperatures = {"off", "plain", "clip16", "max1"};

std::vector<std::int64_t> parse_lengths(const std::string& text) {
  std::vector<std::int64_t> lengths;
  std::set<std::int64_t> seen;
  std::istringstream words(text + ",");
  std::string word;
  while (std::getline(words, word, ',')) {
    lengths.push_back(parse_integer(word, kShortestRow, kLongestRow));
    if (!seen.insert(lengths.back()).second) {
      throw std::invalid_argument(word + " is named twice");
    }
  }
  return lengths;
}

// Open at the lower end.
double positive(const std::string& text, double most) {
  const double value = parse_number(text, 0, most);
  if (value == 0) throw std::invalid_argument("'" + text + "' is not above 0");
  return value;
}

ModelOptions extended_options(const SavedModel& saved, const LengthSettings& settings) {
  ModelOptions options = saved.model->options();
  options.extension = settings.extension;
  if (!settings.logn.empty()) options.logn = settings.logn;
  return options;
}

// The same weights under other rules.
std::shared_ptr<RobertaForMaskedLm> with_options(const RobertaForMaskedLm& model,
                                                 const ModelOptions& options,
                                                 torch::Device device) {
  auto other = std::make_shared<RobertaForMaskedLm>(options);
  NamedTensors tensors;
  for (const auto& parameter : model.named_parameters()) {
    tensors.emplace_back(parameter.key(), parameter.value().detach());
  }
  other->to(device);
  load_parameters(*other, tensors);
  return other;
}

void check_rotation(const RobertaForMaskedLm& model, const LengthSettings& settings) {
  if (settings.extension.rotation.method.empty()) return;
  for (const AttentionTerms& terms : model.terms_of_layers(1)) {
    if (terms.rotation_cos.defined()) return;
  }
  throw std::invalid_argument("--rope-scaling: no layer of the model rotates (" +
                              model.position_plan() + ")");
}

// The policies under which a model with these options covers `length` tokens: "align, scale".
std::string reaching_policies(ModelOptions options, std::int64_t length) {
  std::string names;
  for (const std::string& name : table_extension_names()) {
    options.extension.tables = parse_table_extension(name);
    if (RobertaForMaskedLm(options).longest() < length) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

void check_covered(const RobertaForMaskedLm& extended, std::int64_t trained,
                   const LengthSettings& settings) {
  const std::int64_t longest = extended.longest();
  for (const std::int64_t length : settings.lengths) {
    if (length <= trained || length <= longest) continue;
    std::string sentence = "--lengths: " + std::to_string(length) + " tokens are more than the " +
                           std::to_string(longest) +
                           (extended.options().extension.tables == TableExtension::kError
                                ? " that the model covers"
                                : " that this --extend-policy reaches");
    const std::string reaching = reaching_policies(extended.options(), length);
    throw std::invalid_argument(sentence + (reaching.empty()
                                                ? "; no --extend-policy reaches them"
                                                : "; --extend-policy " + reaching + " would do"));
  }
}

// Batches of about as many tokens as in training.
DataOptions rows_of(const DataOptions& data, std::int64_t length) {
  DataOptions options = data;
  options.sequence_length = length;
  options.micro_batch = std::max<std::int64_t>(1, data.micro_batch * data.sequence_length / length);
  return options;
}

// Options that say what happens beyond the trained length need such a length.
void check_some_longer(const SavedModel& saved, const LengthSettings& settings) {
  const std::int64_t trained = saved.config.model.max_positions;
  const bool longer = std::any_of(settings.lengths.begin(), settings.lengths.end(),
                                  [&](std::int64_t length) { return length > trained; });
  if (longer) return;
  const LengthExtension& extension = settings.extension;
  for (const auto& [given, option] :
       {std::pair(extension.tables != TableExtension::kError, "--extend-policy"),
        std::pair(!extension.rotation.method.empty(), "--rope-scaling"),
        std::pair(!settings.logn.empty(), "--logn")}) {
    if (!given) continue;
    throw std::invalid_argument(std::string(option) +
                                " has no effect: none of --lengths is above "
                                "the trained length of " +
                                std::to_string(trained));
  }
}

}  // namespace

std::vector<VerbOption> length_options() {
  std::vector<VerbOption> options = {
      {"lengths", Takes::kOneValue, "T,T,...",
       "measure rows of each of these lengths, and the entropy of attention"}};
  for (const VerbOption& option : extension_options(
           "rows longer than model.max-positions: error, or position tables extended by align, "
           "scale, hier or copy (error)")) {
    options.push_back(option);
  }
  const std::vector<VerbOption> others = {
      {"rope-scaling", Takes::kOneValue, "NAME",
       "rotations of such rows: none, pi, ntk, ntk-dynamic, ntk-fixed, ntk-mixed, yarn or "
       "yarn-notrunc (the model's own)"},
      {"rope-factor", Takes::kOneValue, "S", "for them (length / trained length)"},
      {"logn", Takes::kOneValue, "NAME",
       "model.logn for such rows: off, plain, clip16 or max1 (the model's own)"}};
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

LengthSettings length_settings(const CommandLine& line) {
  LengthSettings settings;
  if (!line.has("lengths")) {
    for (const VerbOption& option : length_options()) {
      if (line.has(option.name)) {
        throw std::invalid_argument("--" + option.name + " belongs to --lengths");
      }
    }
    return settings;
  }
  const auto given = [&](const std::string& option, auto read) {
    if (line.has(option)) reading_option(option, [&] { read(line.value(option)); });
  };
  settings.extension = extension_from(line);
  LengthExtension& extension = settings.extension;
  given("lengths", [&](const std::string& text) { settings.lengths = parse_lengths(text); });
  given("rope-scaling", [&](const std::string& text) {
    extension.rotation.method = one_of(text, rotation_scaling_names());
  });
  given("rope-factor", [&](const std::string& text) {
    extension.rotation.factor = positive(text, 1e6);
    if (extension.rotation.method.empty() || extension.rotation.method == "none") {
      throw std::invalid_argument("needs a --rope-scaling other than none");
    }
    if (extension.rotation.factor == 1 && extension.rotation.method != "ntk-dynamic") {
      throw std::invalid_argument("1 stretches nothing");
    }
  });
  given("logn", [&](const std::string& text) { settings.logn = one_of(text, kTemperatures); });
  return settings;
}

std::shared_ptr<RobertaForMaskedLm> extended_model(const SavedModel& saved,
                                                   const LengthSettings& settings,
                                                   torch::Device device) {
  check_some_longer(saved, settings);
  auto extended = with_options(*saved.model, extended_options(saved, settings), device);
  extended->eval();
  check_rotation(*extended, settings);
  check_covered(*extended, saved.config.model.max_positions, settings);
  return extended;
}

std::vector<LengthResult> evaluate_lengths(const SavedModel& saved, RobertaForMaskedLm& extended,
                                           const ShardedCorpus& corpus,
                                           const std::vector<std::int64_t>& lengths,
                                           std::int64_t max_rows, torch::Device device,
                                           Communicator& communicator) {
  const std::int64_t shortest = *std::min_element(lengths.begin(), lengths.end());
  std::vector<LengthResult> results;
  for (const std::int64_t length : lengths) {
    LengthResult result;
    result.length = length;
    result.extended = length > saved.config.model.max_positions;
    RobertaForMaskedLm& model = result.extended ? extended : *saved.model;
    // In floating point, since "all rows" times a length is more than an integer holds.
    const auto rows =
        static_cast<std::int64_t>(static_cast<double>(max_rows) * static_cast<double>(shortest) /
                                  static_cast<double>(length));
    AttentionEntropy entropy;
    model.observe(&entropy);
    result.evaluation = evaluate(model, corpus, rows_of(saved.config.data, length),
                                 std::max<std::int64_t>(1, rows), device, communicator);
    model.observe(nullptr);
    const auto mean = AttentionEntropy::mean(communicator.sum(entropy.sums()));
    result.entropy = mean.nats;
    result.relative_entropy = mean.relative;
    results.push_back(result);
  }
  return results;
}

std::string length_table(const std::vector<LengthResult>& results) {
  std::vector<std::string> columns = {
      "length",  "model<", "loss",  "perplexity", "masked accuracy", "attention entropy",
      "of ln n", "rows",   "tokens"};
  const bool pairs = !results.empty() && results.front().evaluation.sentence_order.has_value();
  if (pairs) columns.insert(columns.end(), {"order loss", "order accuracy", "pairs"});
  TextTable table(columns);
  for (const LengthResult& result : results) {
    const Evaluation& evaluation = result.evaluation;
    std::vector<std::string> cells = {grouped(result.length),
                                      result.extended ? "extended" : "as trained",
                                      significant(evaluation.loss, 5),
                                      significant(evaluation.perplexity, 5),
                                      significant(100 * evaluation.masked_accuracy, 4) + "%",
                                      significant(result.entropy, 4),
                                      significant(100 * result.relative_entropy, 4) + "%",
                                      grouped(evaluation.rows),
                                      grouped(evaluation.tokens)};
    if (pairs) {
      const SentenceOrderFigures& order = *evaluation.sentence_order;
      cells.insert(cells.end(), {significant(order.loss, 4),
                                 significant(100 * order.accuracy, 4) + "%", grouped(order.pairs)});
    }
    table.add(cells);
  }
  return table.text();
}

nlohmann::ordered_json length_json(const LengthSettings& settings,
                                   const std::vector<LengthResult>& results) {
  nlohmann::ordered_json lengths = nlohmann::ordered_json::array();
  for (const LengthResult& result : results) {
    const Evaluation& evaluation = result.evaluation;
    lengths.push_back({{"length", result.length},
                       {"extended", result.extended},
                       {"loss", evaluation.loss},
                       {"perplexity", evaluation.perplexity},
                       {"masked_accuracy", evaluation.masked_accuracy},
                       {"masked_tokens", evaluation.masked_tokens},
                       {"attention_entropy", result.entropy},
                       {"relative_attention_entropy", result.relative_entropy},
                       {"rows", evaluation.rows},
                       {"tokens", evaluation.tokens}});
    if (evaluation.sentence_order) {
      lengths.back().update(sentence_order_json(*evaluation.sentence_order));
    }
  }
  const LengthExtension& extension = settings.extension;
  return {{"extend_policy", table_extension_names().at(static_cast<std::size_t>(extension.tables))},
          {"extend_alpha", extension.hierarchical_alpha},
          {"rope_scaling", extension.rotation.method},
          {"rope_factor", extension.rotation.factor},
          {"logn", settings.logn},
          {"lengths", lengths}};
}

}  // namespace tupelo

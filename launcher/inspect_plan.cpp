#include "launcher/inspect_plan.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "launcher/console.h"
#include "launcher/memory_forecast.h"
#include "launcher/plan_table.h"
#include "launcher/saved_model.h"
#include "launcher/settings.h"
#include "launcher/trained_parameters.h"
#include "launcher/value_text.h"
#include "model/plan_report.h"

namespace tupelo {
namespace {

// RoBERTa's: its size and the id of [PAD], which has a row in tables of positions.
constexpr std::int64_t kRobertaVocabulary = 50265, kRobertaPadId = 1;

struct PlannedModel {
  RunConfig config;
  std::shared_ptr<RobertaForMaskedLm> model;
};

std::int64_t integer_option(const CommandLine& line, const std::string& name,
                            std::int64_t fallback) {
  if (!line.has(name)) return fallback;
  return reading_option(name, [&] { return parse_integer(line.value(name), 1, 1 << 24); });
}

PlannedModel model_of_run(const CommandLine& line) {
  if (line.has("config") || line.has("vocab-size") || !line.settings().empty()) {
    throw std::invalid_argument(
        "tupelo inspect --plan: --run has settings of its own; leave out --config, --vocab-size "
        "and every --section.key");
  }
  SavedModel saved = load_saved_model(
      line.value("run", line.value("path")), 0, "last",
      [](const std::string& sentence) { Console(/*silent=*/false).notice(sentence); });
  return {saved.config, saved.model};
}

PlannedModel model_of_settings(const CommandLine& line) {
  PlannedModel planned;
  const ConfigBuilder builder = gather_settings(line);
  validate_model(builder);
  planned.config = builder.config();
  ModelOptions options = planned.config.model;
  options.vocab_size = integer_option(line, "vocab-size", kRobertaVocabulary);
  options.pad_id = std::min(kRobertaPadId, options.vocab_size - 1);
  planned.model = std::make_shared<RobertaForMaskedLm>(options);
  return planned;
}

void check_length(const RobertaForMaskedLm& model, std::int64_t tokens) {
  if (tokens <= model.longest()) return;
  throw std::invalid_argument("--tokens: a row of " + std::to_string(tokens) +
                              " tokens is longer than the " + std::to_string(model.longest()) +
                              " positions that the model covers (model.max-positions)");
}

}  // namespace

void inspect_plan(const CommandLine& line) {
  if (line.has("verify")) {
    throw std::invalid_argument("tupelo inspect: --verify belongs to a corpus, not to --plan");
  }
  const PlannedModel planned =
      line.has("run") || line.has("path") ? model_of_run(line) : model_of_settings(line);
  convert_parameters(*planned.model, planned.config.train.precision);
  const DataOptions& data = planned.config.data;
  const std::int64_t tokens = integer_option(
      line, "tokens", std::min(data.sequence_length, planned.config.model.max_positions));
  check_length(*planned.model, tokens);
  const PlanReport report =
      plan_report(*planned.model, tokens, /*padding=*/data.packing != Packing::kFull);
  const MemoryForecast memory =
      memory_forecast(*planned.model, planned.config, micro_batch_shape(planned.config, tokens));
  if (line.has("json")) {
    nlohmann::ordered_json object = plan_json(report);
    object["position"] = planned.model->position_plan();
    object["memory"] = memory_json(memory);
    std::cout << object.dump(1) << std::endl;
  } else {
    std::cout << plan_table(report) << "\n" << memory_table(memory) << std::flush;
  }
}

}  // namespace tupelo

#include "launcher/initial_weights.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/extension_options.h"
#include "launcher/model_loading.h"
#include "launcher/nearest_name.h"
#include "launcher/saved_model.h"
#include "launcher/value_text.h"
#include "model/position/encoding_call.h"
#include "model/position/input_encoding.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

const std::string kInputModule = "roberta.embeddings.position_embeddings";
const std::string kDecoderTable = "roberta.mask_decoder.position_embeddings.weight";

// The encoding at the input, or nullptr.
std::shared_ptr<InputEncoding> input_encoding(const RobertaForMaskedLm& model) {
  const auto modules = model.named_modules("", /*include_self=*/false);
  return modules.contains(kInputModule)
             ? std::dynamic_pointer_cast<InputEncoding>(modules[kInputModule])
             : nullptr;
}

std::map<std::string, ResizableTable> resizable_tables(const RobertaForMaskedLm& model) {
  std::map<std::string, ResizableTable> tables;
  const auto add = [&](const std::string& prefix, const std::vector<ResizableTable>& some) {
    for (const ResizableTable& table : some) tables[prefix + "." + table.parameter] = table;
  };
  for (std::size_t i = 0; i < model.encodings().size(); ++i) {
    add("roberta.position." + std::to_string(i), model.encodings()[i]->resizable_tables());
  }
  if (const auto input = input_encoding(model)) add(kInputModule, input->resizable_tables());
  tables[kDecoderTable] = {"position_embeddings.weight", ResizableTable::Rows::kPositions, 0};
  return tables;
}

// `options` and those of `pinned` that they do not have.
PositionOptions with_pinned(PositionOptions options, const PositionOptions& pinned) {
  for (const auto& pin : pinned) {
    const bool given = std::any_of(options.begin(), options.end(),
                                   [&](const auto& option) { return option.first == pin.first; });
    if (!given) options.push_back(pin);
  }
  return options;
}

std::string pinned_plan(const RobertaForMaskedLm& model) {
  PositionPlan plan = model.plan();
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    plan.groups[i].options =
        with_pinned(plan.groups[i].options, model.encodings()[i]->pinned_options());
  }
  return PositionPlan::parse(plan.to_string(), model.options().layers).to_string();
}

std::string pinned_input(const RobertaForMaskedLm& model) {
  InputPosition input = InputPosition::parse(model.options().input_position);
  if (const auto encoding = input_encoding(model)) {
    input.options = with_pinned(input.options, encoding->pinned_options());
  }
  return InputPosition::parse(input.to_string()).to_string();
}

std::string policies_hint(std::int64_t length) {
  return "; --extend-policy align, scale, hier or copy says how they get " + std::to_string(length);
}

// "model.position is all:rope here and all:none there, ..."; what follows --extend is left out.
std::string changed_settings(const ModelOptions& there, const ModelOptions& here) {
  RunConfig old_config, new_config;
  old_config.model = there;
  new_config.model = here;
  std::string text;
  for (const ConfigEntry& entry : config_entries()) {
    if (!entry.name.starts_with("model.") || entry.get(old_config) == entry.get(new_config))
      continue;
    text += (text.empty() ? "" : ", ") + entry.name + " is " + entry.get(new_config) +
            " here and " + entry.get(old_config) + " there";
  }
  return text;
}

bool is_of_sentence_order_head(const std::string& parameter) {
  return parameter.starts_with("roberta.pooler.") || parameter.starts_with("sop_classifier.");
}

// The objectives of two runs may differ: a head that only the old model has is left out, one that
// only the new one has keeps its initial values. Returns which, for people.
std::string fit_sentence_order_head(const RobertaForMaskedLm& model, NamedTensors& tensors) {
  const auto of_head = [](const auto& named) { return is_of_sentence_order_head(named.first); };
  const bool wanted = model.options().sentence_order_head;
  const bool there = std::any_of(tensors.begin(), tensors.end(), of_head);
  if (wanted == there) return "";
  if (there) {
    std::erase_if(tensors, of_head);
    return "left out";
  }
  for (const auto& parameter : model.named_parameters()) {
    if (!is_of_sentence_order_head(parameter.key())) continue;
    tensors.emplace_back(parameter.key(), parameter.value().detach().clone());
  }
  return "new";
}

}  // namespace

std::vector<VerbOption> initial_weights_options() {
  std::vector<VerbOption> options = {
      {"init-from", Takes::kOneValue, "RUN",
       "start a new run from the weights, and the model settings, of this run or checkpoint"},
      {"init-weights", Takes::kOneValue, "WHICH",
       "with --init-from: last, or ema: the average that train.ema-decay kept (last)"},
      {"extend", Takes::kOneValue, "N",
       "with --init-from: rewrite its position tables for N positions"}};
  for (const VerbOption& option :
       extension_options("how they get more: align, scale, hier or copy")) {
    options.push_back(option);
  }
  return options;
}

void check_initial_weights_options(const CommandLine& line) {
  for (const VerbOption& option : initial_weights_options()) {
    if (line.has(option.name) && !line.has("init-from")) {
      throw std::invalid_argument("--" + option.name + " belongs to --init-from");
    }
  }
  for (const char* name : {"extend-policy", "extend-alpha"}) {
    if (line.has(name) && !line.has("extend")) {
      throw std::invalid_argument("--" + std::string(name) + " belongs to --extend");
    }
  }
}

InitialWeights InitialWeights::load(const CommandLine& line, Communicator& communicator,
                                    Console& console) {
  InitialWeights initial;
  together(communicator, [&] {
    if (line.has("extend")) {
      initial.length_ =
          reading_option("extend", [&] { return parse_integer(line.value("extend"), 1, 1 << 24); });
    }
    initial.extension_ = extension_from(line);
    initial.weights_ = reading_option("init-weights", [&] {
      return one_of(line.value("init-weights", "last"), weights_names());
    });
  });
  std::string state;
  on_rank_zero(communicator, [&] {
    const CheckpointPlace place = checkpoint_place(line.value("init-from"));
    Checkpoint checkpoint = load_checkpoint(
        place, [&](const std::string& sentence) { console.notice("--init-from: " + sentence); });
    initial.checkpoint_ = checkpoint_folder(place, checkpoint.step);
    initial.tensors_ = take_weights(checkpoint, initial.weights_, initial.checkpoint_);
    state = checkpoint.state_json;
  });
  initial.checkpoint_ = communicator.broadcast(initial.checkpoint_, 0);
  state = communicator.broadcast(state, 0);
  together(communicator, [&] {
    initial.state_ = run_state_from_json(state);
    initial.config_ = config_of(initial.state_);
  });
  return initial;
}

InheritedSettings InitialWeights::settings() const { return model_settings(config_, checkpoint_); }

void InitialWeights::extend(ConfigBuilder& builder) const {
  const std::int64_t trained = config_.model.max_positions;
  const std::int64_t configured = builder.config().model.max_positions;
  const std::int64_t length = length_ > 0 ? length_ : configured;
  const bool truncates = builder.config().optim.positions == "truncate";
  const std::string lengths =
      std::to_string(length) + " positions instead of " + std::to_string(trained);
  if (configured != trained && configured != length_) {
    throw std::invalid_argument("model.max-positions is " + std::to_string(configured) +
                                ", but the run of --init-from has " + std::to_string(trained) +
                                "; --extend N rewrites its position tables for N");
  }
  if (truncates && length >= trained) {
    throw std::invalid_argument("--positions truncate: " + lengths +
                                " are not fewer; --extend says how many are left");
  }
  if (length < trained && !truncates) {
    throw std::invalid_argument("--extend: " + lengths +
                                " are fewer; --positions truncate cuts the position tables");
  }
  if (length_ == trained) {
    throw std::invalid_argument("--extend: the run has " + std::to_string(trained) +
                                " positions already");
  }
  if (truncates && extension_.tables != TableExtension::kError) {
    throw std::invalid_argument(
        "--extend-policy says how tables get longer, and --positions "
        "truncate cuts them");
  }
  if (length == trained) return;
  const std::string origin = "--extend";
  builder.set("model.max-positions", std::to_string(length), origin);
  ModelOptions options = config_.model;
  options.vocab_size = state_.vocab_size;
  options.pad_id = state_.pad_id;
  options.extension = extension_;
  const RobertaForMaskedLm model(options);
  if (extension_.tables == TableExtension::kHierarchical && length > model.longest()) {
    throw std::invalid_argument("--extend: " + lengths + " are more than the " +
                                std::to_string(model.longest()) +
                                " that --extend-policy hier reaches");
  }
  // What the user sets otherwise is the user's.
  if (builder.config().model.position == options.position) {
    builder.set("model.position", pinned_plan(model), origin);
  }
  if (builder.config().model.input_position == options.input_position) {
    builder.set("model.input-position", pinned_input(model), origin);
  }
  if (builder.config().model.logn_length == 0 && builder.config().model.logn != "off") {
    builder.set("model.logn-length", std::to_string(trained), origin);
  }
}

void InitialWeights::load_into(RobertaForMaskedLm& model) {
  const auto tables = resizable_tables(model);
  const auto parameters = model.named_parameters();
  NamedTensors fitting;
  for (auto& [name, tensor] : tensors_) {
    const auto table = tables.find(name);
    const torch::Tensor* wanted = parameters.find(name);
    const bool resizes = table != tables.end() && wanted != nullptr &&
                         wanted->size(0) != tensor.size(0) && wanted->size(1) == tensor.size(1);
    if (resizes) {
      const bool grows = table->second.rows == ResizableTable::Rows::kPositions &&
                         wanted->size(0) > tensor.size(0);
      if (grows && extension_.tables == TableExtension::kError) {
        throw std::invalid_argument("--extend: the model has position tables (" + name + ") of " +
                                    std::to_string(config_.model.max_positions) + " positions" +
                                    policies_hint(model.options().max_positions));
      }
      tensor = reading_option("extend", [&] {
        return resized_table(tensor, table->second, wanted->size(0), extension_);
      });
      resized_.push_back(name);
    }
    fitting.emplace_back(name, tensor);
  }
  sentence_order_head_ = fit_sentence_order_head(model, fitting);
  try {
    load_parameters(model, fitting);
  } catch (const std::invalid_argument& error) {
    const std::string changed = changed_settings(config_.model, model.options());
    if (changed.empty()) throw;
    throw std::invalid_argument("--init-from: its weights do not fit, because " + changed + ": " +
                                error.what());
  }
  tensors_.clear();
}

std::string InitialWeights::summary() const {
  return std::string(weights_ == "ema" ? "the average at " : "") + "step " +
         std::to_string(state_.step) + " of " + checkpoint_ +
         (resized_.empty() ? ""
                           : ", " + std::to_string(resized_.size()) + " position tables resized") +
         (sentence_order_head_.empty() ? "" : ", sentence-order head " + sentence_order_head_);
}

nlohmann::ordered_json InitialWeights::description() const {
  nlohmann::ordered_json object = {
      {"checkpoint", std::filesystem::absolute(checkpoint_).lexically_normal().string()},
      {"step", state_.step},
      {"max_positions", config_.model.max_positions},
      {"resized_tables", resized_}};
  if (weights_ != "last") object["weights"] = weights_;
  if (!sentence_order_head_.empty()) object["sentence_order_head"] = sentence_order_head_;
  if (length_ > 0) {
    object["extended_to"] = length_;
    object["extend_policy"] =
        table_extension_names().at(static_cast<std::size_t>(extension_.tables));
    object["extend_alpha"] = extension_.hierarchical_alpha;
  }
  return object;
}

}  // namespace tupelo

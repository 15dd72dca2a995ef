#include <ATen/Context.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tuple>

#include "data/corpus.h"
#include "launcher/agreement.h"
#include "launcher/attention_kernels.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/cuda_graphs.h"
#include "launcher/determinism.h"
#include "launcher/extension_options.h"
#include "launcher/initial_weights.h"
#include "launcher/network_choice.h"
#include "launcher/open_corpora.h"
#include "launcher/rank_facts.h"
#include "launcher/rank_map.h"
#include "launcher/run_config.h"
#include "launcher/run_folder.h"
#include "launcher/saved_model.h"
#include "launcher/session.h"
#include "launcher/settings.h"
#include "launcher/stop_signal.h"
#include "launcher/trainer.h"
#include "launcher/training_rows.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Takes = VerbOption::Takes;

const char* const kOrigin = "initialized_from";  // in run.json

Facts corpus_facts(const OpenCorpora& corpora) {
  Facts facts = {{"the number of corpora", std::to_string(corpora.folders.size()),
                  "give every rank the same --corpus"}};
  for (const ShardedCorpus& half : corpora.train) {
    facts.push_back({"the digest of corpus " + std::to_string(facts.size()), half.info().digest,
                     "give every rank the same --corpus, on a file system that all hosts share"});
  }
  return facts;
}

std::unique_ptr<RunClaim> claim_folder(const RunFolder& folder, const CommandLine& line) {
  auto claim = std::make_unique<RunClaim>(folder);
  if (line.has("fresh") && folder.holds_a_run()) {
    if (!line.has("force")) {
      throw std::invalid_argument("run folder " + folder.root().string() +
                                  " already holds a run; --fresh --force deletes it, and without "
                                  "--fresh it is resumed");
    }
    folder.clear();
  }
  return claim;
}

// Where the run that the folder already describes got its weights from; null when it had none.
nlohmann::ordered_json recorded_origin(const RunFolder& folder) {
  if (!fs::exists(folder.description())) return nullptr;
  const auto object =
      nlohmann::ordered_json::parse(read_file(folder.description()), nullptr, false);
  return object.is_object() && object.contains(kOrigin) ? object[kOrigin]
                                                        : nlohmann::ordered_json();
}

// A table extension as it is recorded, "hier with alpha 0.4".
std::string extension_text(const std::string& policy, double alpha) {
  return policy == "hier" ? policy + " with alpha " + number_text(alpha) : policy;
}

// A run that goes on under --init-from must have begun from what that names, and its tables must
// have been extended as the options say.
void check_same_origin(const RunFolder& folder, const CommandLine& line) {
  const std::string given = line.value("init-from");
  if (!fs::exists(folder.description())) return;
  const nlohmann::ordered_json origin = recorded_origin(folder);
  const std::string refusal = "--init-from: run folder " + folder.root().string() +
                              " already holds a run, which began from ";
  const std::string advice = "; use another --run folder, or go on with --config " +
                             folder.config().string() + " and without --init-from";
  if (!origin.is_object()) throw std::invalid_argument(refusal + "no other one" + advice);
  const std::string recorded = origin.value("checkpoint", "");
  const CheckpointPlace wanted = checkpoint_place(given), old = checkpoint_place(recorded);
  const bool same_run = fs::weakly_canonical(wanted.run) == fs::weakly_canonical(old.run);
  if (!same_run || (wanted.step > 0 && wanted.step != old.step)) {
    throw std::invalid_argument(refusal + recorded + advice);
  }
  if (!line.has("extend-policy")) return;
  const LengthExtension wanted_extension = extension_from(line);
  const std::string policy =
      table_extension_names().at(static_cast<std::size_t>(wanted_extension.tables));
  const std::string now = extension_text(policy, wanted_extension.hierarchical_alpha);
  const std::string then =
      extension_text(origin.value("extend_policy", "error"), origin.value("extend_alpha", 0.0));
  if (now != then) {
    throw std::invalid_argument("--extend-policy is " + now + ", but this run already began with " +
                                then + "; use another --run folder");
  }
}

// `origin`: of the run's weights, or null.
void describe_run(const RunFolder& folder, const ConfigBuilder& builder,
                  const std::vector<std::string>& corpora, const nlohmann::ordered_json& origin,
                  Session& session) {
  write_atomically(folder.config(), builder.to_ini(false));
  nlohmann::ordered_json origins;
  for (const ConfigEntry& entry : config_entries()) {
    const auto from = builder.origins().find(entry.name);
    origins[entry.name] = {{"value", entry.get(builder.config())},
                           {"from", from == builder.origins().end() ? "default" : from->second}};
  }
  std::vector<std::string> full_paths;
  for (const std::string& corpus : corpora) full_paths.push_back(fs::absolute(corpus).string());
  nlohmann::ordered_json description = {{"tupelo", TUPELO_VERSION},
                                        {"corpora", full_paths},
                                        {"world_size", session.runtime().world_size()},
                                        {"hosts", session.runtime().hosts()},
                                        {"threads_per_rank", session.threads()},
                                        {"device", session.device().str()},
                                        {"config", origins}};
  if (!origin.is_null()) description[kOrigin] = origin;
  write_atomically(folder.description(), description.dump(1) + "\n");
}

void introduce(const ConfigBuilder& builder, const OpenCorpora& corpora, Session& session,
               Console& console) {
  const RunConfig& config = builder.config();
  for (std::size_t i = 0; i < corpora.folders.size(); ++i) {
    console.line(
        "corpus    " + (corpora.folders.size() > 1 ? corpora.folders[i] + ": " : std::string()) +
        grouped(static_cast<std::int64_t>(corpora.train[i].documents())) + " documents, " +
        grouped(static_cast<std::int64_t>(corpora.train[i].tokens())) + " tokens; held out " +
        grouped(static_cast<std::int64_t>(corpora.held_out[i].tokens())) + " tokens");
  }
  console.line(
      "ranks     " + std::to_string(session.runtime().world_size()) + " (" +
      session.data().route() + ", " + session.device().str() + ", " +
      std::to_string(session.threads()) + " threads each" +
      (at::globalContext().deterministicAlgorithms() ? ", deterministic kernels alone" : "") + ")");
  if (session.runtime().world_size() > 1) {
    std::string heading = "hosts     ";
    for (const std::string& line :
         rank_map(session.runtime().hosts(), session.device().is_cuda())) {
      console.line(heading + line);
      heading.assign(heading.size(), ' ');
    }
  }
  console.line("model     " + std::to_string(config.model.layers) + " layers, hidden " +
               std::to_string(config.model.hidden_size) + ", input " + config.model.input_position +
               ", attention " + config.model.position);
}

// The model settings that a run which goes on was started with.
InheritedSettings settings_of_run(const RunFolder& folder, Communicator& communicator) {
  std::string text;
  on_rank_zero(communicator, [&] { text = read_file(folder.config()); });
  text = communicator.broadcast(text, 0);
  ConfigBuilder builder;
  together(communicator, [&] { builder.apply_text(text, folder.config().string()); });
  return model_settings(builder.config(), folder.config().string());
}

void check_same_length(const CommandLine& line, const RunConfig& config) {
  const std::string length = std::to_string(config.model.max_positions);
  if (line.has("extend") && line.value("extend") != length) {
    throw std::invalid_argument("--extend is " + line.value("extend") +
                                ", but this run already began with " + length +
                                " positions; use another --run folder");
  }
}

// In a new run there is nothing to cut.
void check_truncation(const CommandLine& line, const ConfigBuilder& builder, bool goes_on) {
  if (goes_on || line.has("init-from") || builder.config().optim.positions != "truncate") return;
  throw std::invalid_argument(builder.place_of("optim.positions") +
                              " is truncate, which belongs to --init-from with --extend");
}

// Every setting of the run. `initial` is there when the run is a new one that starts from another
// one's weights; such a run goes on under the model settings that it began with.
ConfigBuilder resolve(const CommandLine& line, Communicator& control, Console& console,
                      std::optional<InitialWeights>& initial) {
  together(control, [&] {
    check_initial_weights_options(line);
    if (line.has("force") && !line.has("fresh")) {
      throw std::invalid_argument("--force belongs to --fresh");
    }
    if (line.has("print-config")) return;
    line.required("corpus");
    line.required("run");
  });
  InheritedSettings inherited;
  const RunFolder folder(line.value("run"));
  bool goes_on = false;
  on_rank_zero(control, [&] {
    goes_on = line.has("run") && !line.has("fresh") && folder.holds_a_checkpoint();
  });
  goes_on = control.any(goes_on);
  if (line.has("init-from")) {
    if (goes_on) {
      on_rank_zero(control, [&] { check_same_origin(folder, line); });
      inherited = settings_of_run(folder, control);
    } else {
      initial = InitialWeights::load(line, control, console);
      inherited = initial->settings();
    }
  }
  ConfigBuilder builder;
  together(control, [&] {
    builder = gather_settings(line, inherited);
    if (initial) initial->extend(builder);
    check_same_length(line, builder.config());
    check_truncation(line, builder, goes_on);
    validate(builder);
  });
  return builder;
}

void check_held_out(const OpenCorpora& corpora, const TrainOptions& train) {
  for (std::size_t i = 0; i < corpora.folders.size(); ++i) {
    if (corpora.held_out[i].documents() > 0) continue;
    for (const auto& [every, name, purpose] :
         {std::tuple(train.validate_every, "validate-every", "validate"),
          std::tuple(train.probe_every, "probe-every", "probe attention")}) {
      if (every == 0) continue;
      throw CorpusError("corpus " + corpora.folders[i] + " has no held-out documents to " +
                        purpose + " on; prepare it with a larger --held-out, or set train." + name +
                        " to 0");
    }
  }
}

void check_sentences(const OpenCorpora& corpora) {
  for (std::size_t i = 0; i < corpora.folders.size(); ++i) {
    if (corpora.train[i].info().sentence_rules > 0) continue;
    throw CorpusError("corpus " + corpora.folders[i] +
                      " does not say where sentences begin, which objective.sop-weight needs; "
                      "prepare it with --sentences");
  }
}

void check_vocabulary(const OpenCorpora& corpora, const InitialWeights& initial) {
  const std::string& fingerprint = corpora.train.front().info().tokenizer_fingerprint;
  if (fingerprint == initial.tokenizer_fingerprint()) return;
  throw CorpusError("corpus " + corpora.folders.front() + " was made with another vocabulary (" +
                    fingerprint.substr(0, 12) + "...) than the run of --init-from (" +
                    initial.tokenizer_fingerprint().substr(0, 12) + "...)");
}

// The checkpoint that the run goes on from, if there is one. Its tensors are on rank 0.
Resumption find_resumption(const RunFolder& folder, bool fresh, Communicator& control,
                           Console& console) {
  Resumption resumption;
  on_rank_zero(control, [&] {
    if (fresh || !folder.holds_a_checkpoint()) return;
    const CheckpointStore reader(folder.checkpoints(), {});
    resumption.steps = reader.steps();
    resumption.checkpoint = reader.load_newest([&](std::int64_t step, const std::string& reason) {
      console.notice("checkpoint of step " + std::to_string(step) + " is not used: " + reason);
    });
  });
  const auto& checkpoint = resumption.checkpoint;
  const std::string text = control.broadcast(checkpoint ? checkpoint->state_json : "", 0);
  together(control, [&] {
    if (!text.empty()) resumption.state = run_state_from_json(text);
  });
  return resumption;
}

void tell_excluded(std::span<const ExcludedShard> shards, Console& console) {
  for (const ExcludedShard& excluded : shards) {
    console.line("without   shard " + excluded.shard.file + ", since step " +
                 std::to_string(excluded.step) + " (" + excluded.reason + ")");
  }
}

ExitCode train_in(Session& session, const CommandLine& line) {
  Communicator& control = session.control();
  Console console(/*silent=*/!session.is_first());
  std::optional<InitialWeights> initial;
  if (control.world_size() > 1) {
    require_same(control, session.runtime().hosts(), program_facts());
  }
  const ConfigBuilder builder = resolve(line, control, console, initial);
  if (line.has("print-config")) {
    console.line(builder.to_ini(/*with_origins=*/true));
    return ExitCode::kDone;
  }
  require_same(control, session.runtime().hosts(), setting_facts(builder.config()));
  const TrainOptions& train = builder.config().train;
  if (train.deterministic) require_determinism();
  session.configure(train.device, static_cast<int>(train.threads),
                    static_cast<int>(train.timeout_seconds), train.collectives,
                    train.shard_optimizer);
  together(control, [&] {
    if (train.cuda_graphs) require_graphs(builder.place_of("train.cuda-graphs"), session.device());
  });
  if (builder.config().data.packing != Packing::kFull) take_any_shape();

  OpenCorpora corpora;
  corpora.folders = line.values("corpus");
  open_corpora(control, corpora);
  require_same(control, session.runtime().hosts(), corpus_facts(corpora));
  const RunFolder folder(line.value("run"));
  Resumption resumption = find_resumption(folder, line.has("fresh"), control, console);
  TrainingRows rows(corpora, builder.config(), PlanCache(folder.plans()));
  together(control, [&] {
    if (resumption.state) rows.take_up(*resumption.state);
  });
  const std::vector<ExcludedShard> excluded_before = rows.excluded();
  if (!line.has("no-verify")) rows.verify(control);
  together(control, [&] {
    check_held_out(corpora, train);
    if (builder.config().data.sentence_pairs) check_sentences(corpora);
    if (initial) check_vocabulary(corpora, *initial);
  });
  rows.arrange(control);
  StopSignal stop(/*speaks=*/session.is_first());
  std::optional<Trainer> trainer;
  together(control, [&] {
    trainer.emplace(TrainerContext{builder.config(), corpora.pointers(corpora.train),
                                   corpora.pointers(corpora.held_out), corpora.folders, rows,
                                   session.device(), session.threads(), session.data(),
                                   session.shard_groups(), folder, stop, console,
                                   std::move(resumption), initial ? &*initial : nullptr});
  });
  std::unique_ptr<RunClaim> claim;  // once nothing is wrong with the settings: it may replace a run
  on_rank_zero(control, [&] { claim = claim_folder(folder, line); });
  introduce(builder, corpora, session, console);
  tell_excluded(excluded_before, console);
  console.line(trainer->recompute_text());
  console.line(trainer->memory_text());
  trainer->restore();
  on_rank_zero(control, [&] {
    nlohmann::ordered_json origin;
    if (trainer->resumed()) {
      origin = recorded_origin(folder);
    } else if (initial) {
      origin = initial->description();
    }
    describe_run(folder, builder, corpora.folders, origin, session);
    claim->keep();
  });
  if (trainer->finished()) {  // else the training log tells
    tell_excluded(std::span(rows.excluded()).subspan(excluded_before.size()), console);
  }
  return trainer->train();
}

ExitCode run_train(const Verb& verb, const std::vector<std::string>& words) {
  return in_session(verb, words, train_in);
}

}  // namespace

Command train_command() {
  Verb verb;
  verb.name = "train";
  verb.usage =
      "[mpirun -np N] tupelo train --corpus CORPUS... --run RUN [--config FILE] [--section.key "
      "VALUE "
      "...]";
  verb.summary =
      "Trains a model, one process per device, alone or under mpirun or srun. Started again with "
      "the same "
      "--run it resumes\nfrom the newest checkpoint that verifies. SIGUSR1 or SIGTERM: saves, exit "
      "code 75; "
      "SIGINT: saves, exit code 130.";
  verb.options = {
      {"corpus", Takes::kManyValues, "CORPUS...",
       "folders made by tupelo prepare; several are mixed as data.mixture says"},
      {"run", Takes::kOneValue, "RUN", "folder of the run: configuration, metrics, checkpoints"},
      {"config", Takes::kOneValue, "FILE", "INI file with the sections below"},
      {"print-config", Takes::kNothing, "",
       "print every setting and where it comes from, then stop"},
      {"fresh", Takes::kNothing, "", "start anew; refuses a folder that holds a run"},
      {"force", Takes::kNothing, "", "with --fresh: delete the run that the folder holds"},
      {"no-verify", Takes::kNothing, "", "do not re-hash the shards at the start"}};
  verb.options.push_back(interface_option());
  for (const VerbOption& option : initial_weights_options()) verb.options.push_back(option);
  verb.options.push_back({"help", Takes::kNothing, "", "this text"});
  verb.configurable = true;
  verb.epilogue =
      "Precedence: defaults < model settings of --init-from < --config file < environment\n"
      "(TUPELO_TRAIN_STEPS for train.steps) < command line.";
  return {verb, run_train};
}

}  // namespace tupelo

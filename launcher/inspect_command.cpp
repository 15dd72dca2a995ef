#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoints/checkpoint_store.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/corpus_description.h"
#include "launcher/inspect_plan.h"
#include "launcher/run_folder.h"
#include "launcher/run_state.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Takes = VerbOption::Takes;

void print_pair(const std::string& name, const std::string& value) {
  std::string line = name;
  line.resize(std::max<std::size_t>(line.size() + 1, 20), ' ');
  std::cout << line << value << "\n";
}

void inspect_corpus(const std::string& folder, const CommandLine& line) {
  const ordered_json description = describe_corpus(folder, line.has("verify"));
  if (line.has("json")) {
    std::cout << description.dump(1) << std::endl;
  } else {
    print_corpus(description);
  }
}

ordered_json describe_checkpoint(const Checkpoint& checkpoint, const RunState& state) {
  ordered_json tensors = ordered_json::array();
  std::int64_t parameters = 0, position_parameters = 0;
  for (const auto& [name, tensor] : checkpoint.files.at("model")) {
    parameters += tensor.numel();
    if (name.find("position") != std::string::npos) position_parameters += tensor.numel();
    tensors.push_back(
        {{"name", name},
         {"shape", std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
         {"dtype", c10::toString(tensor.scalar_type())}});
  }
  ordered_json excluded = ordered_json::array();
  for (const ExcludedShard& shard : state.excluded_shards) excluded.push_back(excluded_json(shard));
  return {{"step", state.step},
          {"tokens", state.tokens},
          {"position_plan", state.position_plan},
          {"parameters", parameters},
          {"position_parameters", position_parameters},
          {"vocab_size", state.vocab_size},
          {"corpora", state.corpora},
          {"corpus_digests", state.corpus_digests},
          {"excluded_shards", excluded},
          {"world_size", state.world_size},
          {"torch", state.torch_version},
          {"config", state.config_ini},
          {"tensors", tensors}};
}

void print_checkpoint(const ordered_json& object) {
  print_pair("step", grouped(object["step"].get<std::int64_t>()) + " (" +
                         grouped(object["tokens"].get<std::int64_t>()) + " tokens seen)");
  print_pair("position plan", object["position_plan"].get<std::string>());
  print_pair("parameters", grouped(object["parameters"].get<std::int64_t>()) + " (" +
                               grouped(object["position_parameters"].get<std::int64_t>()) +
                               " of them for positions)");
  print_pair("vocabulary", grouped(object["vocab_size"].get<std::int64_t>()) + " tokens");
  for (const auto& corpus : object["corpora"]) print_pair("corpus", corpus.get<std::string>());
  for (const auto& shard : object["excluded_shards"]) {
    print_pair("without", shard["file"].get<std::string>() + ", since step " +
                              grouped(shard["step"].get<std::int64_t>()) + " (" +
                              shard["reason"].get<std::string>() + ")");
  }
  print_pair("written by", std::to_string(object["world_size"].get<int>()) + " ranks, LibTorch " +
                               object["torch"].get<std::string>());
  std::cout << "\n" << object["config"].get<std::string>();
}

void inspect_run(const std::string& run, const CommandLine& line) {
  const RunFolder folder(run);
  const CheckpointStore reader(folder.checkpoints(), {});
  ordered_json rejected = ordered_json::array();
  const auto newest = reader.load_newest([&](std::int64_t step, const std::string& reason) {
    rejected.push_back({{"step", step}, {"reason", reason}});
  });
  if (!newest) throw CorruptCheckpoint("no checkpoint in " + folder.checkpoints().string());
  ordered_json object = describe_checkpoint(*newest, run_state_from_json(newest->state_json));
  object["kind"] = "run";
  object["folder"] = run;
  object["checkpoint"] = reader.folder_of(newest->step).string();
  object["steps"] = reader.steps();
  object["rejected"] = rejected;
  if (line.has("json")) {
    std::cout << object.dump(1) << std::endl;
    return;
  }
  print_pair("checkpoint", object["checkpoint"].get<std::string>() + " (verified)");
  for (const auto& bad : rejected) {
    print_pair("rejected", "step " + std::to_string(bad["step"].get<std::int64_t>()) + ": " +
                               bad["reason"].get<std::string>());
  }
  print_checkpoint(object);
}

void refuse_options_of_plan(const CommandLine& line) {
  for (const char* name : {"run", "config", "tokens", "vocab-size"}) {
    if (line.has(name)) {
      throw std::invalid_argument("tupelo inspect: --" + std::string(name) + " belongs to --plan");
    }
  }
  if (!line.settings().empty()) {
    throw std::invalid_argument("tupelo inspect: --" + line.settings().front().first +
                                " belongs to --plan");
  }
}

ExitCode run_inspect(const Verb& verb, const std::vector<std::string>& words) {
  const CommandLine line(verb, words);
  if (line.values("path").size() > 1) {
    throw std::invalid_argument("tupelo inspect: one folder at a time");
  }
  if (line.has("plan")) {
    inspect_plan(line);
    return ExitCode::kDone;
  }
  refuse_options_of_plan(line);
  const std::string path = line.required("path");
  if (!fs::exists(path)) throw std::invalid_argument("tupelo inspect: there is no " + path);
  if (fs::exists(fs::path(path) / "index.json")) {
    inspect_corpus(path, line);
  } else if (fs::is_directory(RunFolder(path).checkpoints())) {
    inspect_run(path, line);
  } else {
    throw std::invalid_argument("tupelo inspect: " + path +
                                " is neither a corpus (index.json) nor a run (checkpoints/)");
  }
  return ExitCode::kDone;
}

}  // namespace

Command inspect_command() {
  Verb verb;
  verb.name = "inspect";
  verb.usage =
      "tupelo inspect CORPUS|RUN [--json] [--verify]\n"
      "       tupelo inspect --plan [--run RUN | --config FILE --section.key VALUE ...] [--json]";
  verb.summary =
      "Shows what a corpus or a run's newest checkpoint holds. With --plan: what the position "
      "encodings\nof a model cost and what a training step keeps in memory, layer by layer: of a "
      "run, or of a\nmodel that settings describe.";
  verb.options = {
      {"path", Takes::kOneValue, "PATH", "the folder (the word --path may be left out)"},
      {"json", Takes::kNothing, "", "print JSON"},
      {"verify", Takes::kNothing, "", "re-hash every shard of a corpus"},
      {"plan", Takes::kNothing, "", "the costs of the position encodings"},
      {"run", Takes::kOneValue, "RUN", "with --plan: a run's folder, or one of its checkpoints"},
      {"config", Takes::kOneValue, "FILE", "with --plan: INI file with the sections below"},
      {"tokens", Takes::kOneValue, "T",
       "with --plan: length of a row (data.sequence-length, at most model.max-positions)"},
      {"vocab-size", Takes::kOneValue, "V", "with --plan: size of the vocabulary (50265)"},
      {"help", Takes::kNothing, "", "this text"}};
  verb.positional = "path";
  verb.configurable = true;
  return {verb, run_inspect};
}

}  // namespace tupelo

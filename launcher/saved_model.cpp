#include "launcher/saved_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "launcher/model_loading.h"
#include "launcher/run_folder.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

void check_step(const CheckpointStore& store, const CheckpointPlace& place) {
  const std::vector<std::int64_t> steps = store.steps();
  if (std::find(steps.begin(), steps.end(), place.step) != steps.end()) return;
  std::string text;
  for (const std::int64_t step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  throw std::invalid_argument(place.run + " has no checkpoint of step " +
                              std::to_string(place.step) +
                              "; it has: " + (text.empty() ? "none" : text));
}

}  // namespace

CheckpointPlace checkpoint_place(const std::string& path) {
  fs::path folder = fs::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at the end
  const std::string name = folder.filename().string();
  if (name.starts_with(kStepPrefix) && folder.parent_path().filename() == "checkpoints") {
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kStepPrefix.size(), end, step);
    if (parsed.ptr == end && step > 0) {
      return {folder.parent_path().parent_path().string(), step};
    }
  }
  return {path, 0};
}

Checkpoint load_checkpoint(const CheckpointPlace& place, const PassedOver& passed_over) {
  const RunFolder folder(place.run);
  if (!fs::exists(place.run)) throw std::invalid_argument("there is no run " + place.run);
  if (!fs::is_directory(folder.checkpoints())) {
    throw std::invalid_argument(place.run +
                                " holds no folder checkpoints; give the folder of a training run, "
                                "or one of its checkpoints");
  }
  const CheckpointStore reader(folder.checkpoints(), {});
  if (place.step > 0) {
    check_step(reader, place);
    return reader.load(place.step);
  }
  auto newest = reader.load_newest([&](std::int64_t step, const std::string& reason) {
    passed_over("checkpoint of step " + std::to_string(step) + " is not used: " + reason);
  });
  if (!newest) throw CorruptCheckpoint("no checkpoint in " + folder.checkpoints().string());
  return std::move(*newest);
}

std::string checkpoint_folder(const CheckpointPlace& place, std::int64_t step) {
  return CheckpointStore(RunFolder(place.run).checkpoints(), {}).folder_of(step).string();
}

std::vector<std::string> weights_names() { return {"last", "ema"}; }

NamedTensors take_weights(Checkpoint& checkpoint, const std::string& weights,
                          const std::string& where) {
  const bool average = weights == "ema";
  const auto tensors = checkpoint.files.find(average ? "ema" : "model");
  if (tensors != checkpoint.files.end()) return std::move(tensors->second);
  if (!average) throw CorruptCheckpoint(where + " has no model.safetensors");
  throw std::invalid_argument(where +
                              " has no average of its weights (train.ema-decay was 0); valid "
                              "here: last");
}

SavedModel load_saved_model(const std::string& path, std::int64_t step, const std::string& weights,
                            const PassedOver& passed_over) {
  CheckpointPlace place = checkpoint_place(path);
  if (step > 0) place.step = step;
  Checkpoint checkpoint = load_checkpoint(place, passed_over);
  SavedModel saved;
  saved.state = run_state_from_json(checkpoint.state_json);
  saved.config = config_of(saved.state);
  saved.folder = checkpoint_folder(place, checkpoint.step);
  ModelOptions options = saved.config.model;
  options.vocab_size = saved.state.vocab_size;
  options.pad_id = saved.state.pad_id;
  saved.model = std::make_shared<RobertaForMaskedLm>(options);
  load_parameters(*saved.model, take_weights(checkpoint, weights, saved.folder));
  saved.model->eval();
  return saved;
}

}  // namespace tupelo

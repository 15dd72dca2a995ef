#include "launcher/saved_model.h"

#include <filesystem>

#include "checkpoints/checkpoint_store.h"
#include "launcher/model_loading.h"
#include "launcher/run_folder.h"

namespace tupelo {
namespace {

Checkpoint load_checkpoint(const std::string& run, std::int64_t step) {
  const RunFolder folder(run);
  if (!std::filesystem::is_directory(folder.checkpoints())) {
    throw CorruptCheckpoint(
        run + " holds no checkpoints folder; --run takes the folder of a training run");
  }
  const CheckpointStore reader(folder.checkpoints(), {});
  if (step > 0) return reader.load(step);
  auto newest = reader.load_newest({});
  if (!newest) throw CorruptCheckpoint("no checkpoint in " + folder.checkpoints().string());
  return std::move(*newest);
}

}  // namespace

SavedModel load_saved_model(const std::string& run, std::int64_t step) {
  Checkpoint checkpoint = load_checkpoint(run, step);
  SavedModel saved;
  saved.state = run_state_from_json(checkpoint.state_json);
  saved.config = config_of(saved.state);
  saved.folder =
      CheckpointStore(RunFolder(run).checkpoints(), {}).folder_of(checkpoint.step).string();
  ModelOptions options = saved.config.model;
  options.vocab_size = saved.state.vocab_size;
  options.pad_id = saved.state.pad_id;
  saved.model = std::make_shared<RobertaForMaskedLm>(options);
  const auto tensors = checkpoint.files.find("model");
  if (tensors == checkpoint.files.end()) {
    throw CorruptCheckpoint(saved.folder + " has no model.safetensors");
  }
  load_parameters(*saved.model, tensors->second);
  saved.model->eval();
  return saved;
}

}  // namespace tupelo

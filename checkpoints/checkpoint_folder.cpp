#include "checkpoints/checkpoint_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>

#include "checkpoints/durable_file.h"
#include "checkpoints/manifest.h"
#include "checkpoints/safetensors_stream.h"
#include "checkpoints/strict_json.h"

namespace tupelo {
namespace {

constexpr unsigned kFileMode = 0600;
constexpr std::uint64_t kMaximumTextBytes = std::uint64_t{16} << 20;

std::string state_text(const Checkpoint& checkpoint) {
  return checkpoint.state_json.empty() ? "{}" : checkpoint.state_json;
}

ManifestEntry write_text(const std::filesystem::path& path, const std::string& text) {
  OutputFile file(path, kFileMode, Hashing::kOn);
  file.write(text.data(), text.size());
  file.commit();
  return {file.size(), file.sha256()};
}

ManifestEntry write_tensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  OutputFile file(path, kFileMode, Hashing::kOn);
  // Readers of the Hugging Face world look for this entry.
  write_safetensors_to(file, tensors, {{"format", "pt"}});
  file.commit();
  return {file.size(), file.sha256()};
}

std::string read_text(InputFile& file) {
  if (file.size() > kMaximumTextBytes) {
    throw CorruptCheckpoint(quoted(file.file()) + " has " + std::to_string(file.size()) +
                            " bytes; valid is at most 16 MB");
  }
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size());
  return text;
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

void check_names(const std::filesystem::path& folder, const std::set<std::string>& present,
                 const Manifest& manifest) {
  for (const auto& [name, entry] : manifest.files) {
    if (present.count(name) == 0) {
      throw CorruptCheckpoint(quoted(folder) + " lacks " + name + ", which its manifest lists");
    }
  }
  for (const std::string& name : present) {
    if (name != kManifestFile && manifest.files.count(name) == 0) {
      throw CorruptCheckpoint(quoted(folder) + " holds " + name +
                              ", which its manifest does not list");
    }
  }
}

Manifest read_manifest(const std::filesystem::path& folder, std::int64_t step) {
  const std::set<std::string> present = names_in(folder);
  if (present.count(kManifestFile) == 0) {
    throw CorruptCheckpoint(quoted(folder) + " has no " + kManifestFile);
  }
  InputFile file(folder / kManifestFile, InputFile::Links::kRefuse, Hashing::kOff);
  const Manifest manifest = parse_manifest(read_text(file), quoted(file.file()));
  if (manifest.step != step) {
    throw CorruptCheckpoint(quoted(file.file()) + " is that of step " +
                            std::to_string(manifest.step) + ", not of step " +
                            std::to_string(step));
  }
  check_names(folder, present, manifest);
  return manifest;
}

InputFile open_listed(const std::filesystem::path& path, const ManifestEntry& entry) {
  InputFile file(path, InputFile::Links::kRefuse, Hashing::kOn);
  if (file.size() != entry.size_bytes) {
    throw CorruptCheckpoint(quoted(path) + " has " + std::to_string(file.size()) +
                            " bytes, but its manifest says " + std::to_string(entry.size_bytes));
  }
  return file;
}

void check_digest(InputFile& file, const ManifestEntry& entry) {
  const std::string digest = file.sha256();
  if (digest != entry.sha256) {
    throw CorruptCheckpoint(quoted(file.file()) + " has SHA-256 " + digest +
                            ", but its manifest says " + entry.sha256);
  }
}

NamedTensors read_tensors(InputFile& file) {
  SafetensorsFile content = read_safetensors_from(file);
  return NamedTensors(std::make_move_iterator(content.tensors.begin()),
                      std::make_move_iterator(content.tensors.end()));
}

}  // namespace

void check_saveable(const Checkpoint& checkpoint) {
  for (const auto& [stem, tensors] : checkpoint.files) {
    if (!is_tensor_file_stem(stem)) {
      throw std::invalid_argument("'" + stem +
                                  "' cannot name a file of a checkpoint; valid are 1 to 64 of the "
                                  "characters a-z 0-9 _ -");
    }
  }
  const std::string text = state_text(checkpoint);
  if (text.size() > kMaximumTextBytes) {
    throw std::invalid_argument("the state of a checkpoint exceeds 16 MB");
  }
  try {
    parse_strict_json(text, JsonNumbers::kAny, "the state of the checkpoint");
  } catch (const CorruptCheckpoint& error) {
    throw std::invalid_argument(error.what());
  }
}

void write_checkpoint_folder(const std::filesystem::path& folder, const Checkpoint& checkpoint) {
  Manifest manifest;
  manifest.step = checkpoint.step;
  for (const auto& [stem, tensors] : checkpoint.files) {
    const std::string name = stem + kTensorSuffix;
    manifest.files[name] = write_tensors(folder / name, tensors);
  }
  manifest.files[kStateFile] = write_text(folder / kStateFile, state_text(checkpoint));
  write_text(folder / kManifestFile, format_manifest(manifest));
  sync_folder(folder);
}

Checkpoint read_checkpoint_folder(const std::filesystem::path& folder, std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  for (const auto& [name, entry] : read_manifest(folder, step).files) {
    InputFile file = open_listed(folder / name, entry);
    if (name == kStateFile) {
      checkpoint.state_json = read_text(file);
    } else {
      checkpoint.files[name.substr(0, name.size() - std::string(kTensorSuffix).size())] =
          read_tensors(file);
    }
    check_digest(file, entry);
  }
  parse_strict_json(checkpoint.state_json, JsonNumbers::kAny, quoted(folder / kStateFile));
  return checkpoint;
}

void verify_checkpoint_folder(const std::filesystem::path& folder, std::int64_t step) {
  for (const auto& [name, entry] : read_manifest(folder, step).files) {
    InputFile file = open_listed(folder / name, entry);
    file.drop_cached_pages();
    file.skip_to_end();
    check_digest(file, entry);
  }
}

}  // namespace tupelo

// The safetensors file format: https://github.com/huggingface/safetensors (format section).
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/corrupt_checkpoint.h"

namespace tupelo {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

struct SafetensorsFile {
  std::map<std::string, torch::Tensor> tensors;  // own storage, CPU
  std::map<std::string, std::string> metadata;
};

// Writes `tensors` (any device, any strides; stored on disk row-major in the order given) into a
// temporary neighbour of `file`, makes it durable and renames it to `file`, which it replaces.
// Throws std::system_error with the file's name when the disk refuses, and std::invalid_argument
// for a duplicate name or an unsupported dtype; `file` is untouched then. Dtypes: F64 F32 BF16 F16
// I64 I32 U8 BOOL.
void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Reads strictly: header length within 16 MB and the file, strict JSON, no duplicate keys, offsets
// contiguous without holes or overlaps, exact file size, shape products checked for overflow, all
// of this before memory is taken for a tensor. Throws CorruptCheckpoint, or std::system_error when
// the file cannot be read.
SafetensorsFile read_safetensors(const std::filesystem::path& file);

}  // namespace tupelo

// The safetensors file format: https://github.com/huggingface/safetensors (format section).
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tupelo {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// A file or folder that is not what it claims to be: names the file and what is wrong with it.
class CorruptCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SafetensorsFile {
  std::map<std::string, torch::Tensor> tensors;  // own storage, CPU
  std::map<std::string, std::string> metadata;
};

// Writes `tensors` (any device, any strides; stored on disk row-major in the order given) and fsyncs
// the file. Throws std::system_error with the file's name when the disk refuses, and
// std::invalid_argument for a duplicate name or an unsupported dtype. Dtypes: F64 F32 BF16 F16 I64 I32
// U8 BOOL.
void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Reads strictly: header length within 100 MB and the file, no duplicate keys, offsets contiguous
// without holes or overlaps, exact file size; shape products checked for overflow. Throws
// CorruptCheckpoint, or std::system_error when the file cannot be read.
SafetensorsFile read_safetensors(const std::filesystem::path& file);

}  // namespace tupelo

// Safetensors through a file that is already open, so that its SHA-256 comes from the same pass.
#pragma once

#include <map>
#include <string>

#include "checkpoints/durable_file.h"
#include "checkpoints/safetensors.h"

namespace tupelo {

// As write_safetensors(), without committing `file`.
void write_safetensors_to(OutputFile& file, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata);

// As read_safetensors(); reads `file` from its start to its end.
SafetensorsFile read_safetensors_from(InputFile& file);

}  // namespace tupelo

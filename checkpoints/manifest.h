// The list of a checkpoint's files, which decides whether they are what was saved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tupelo {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kTensorSuffix[] = ".safetensors";

struct ManifestEntry {
  std::uint64_t size_bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits
};

struct Manifest {
  std::int64_t step = 0;
  std::map<std::string, ManifestEntry> files;  // by file name
};

// Whether a file of tensors may be called <stem>.safetensors: 1 to 64 of a-z 0-9 _ -
bool is_tensor_file_stem(std::string_view stem);

std::string format_manifest(const Manifest& manifest);

// Throws CorruptCheckpoint, beginning with `where`, unless `text` is a manifest of the version that
// this build writes, with valid file names, state.json among them.
Manifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace tupelo

// archive.json: what an archive holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tupelo {

inline constexpr const char* kArchiveIndex = "archive.json";

struct ArchivedFile {
  std::string name;  // within the corpus; the archive has NAME.zst
  std::uint64_t bytes = 0;
  std::string sha256 = {};
  std::uint64_t compressed_bytes = 0;
  std::string compressed_sha256 = {};
};

struct ArchiveIndex {
  std::string corpus_digest;
  int level = 0;
  std::vector<ArchivedFile> files;
};

std::string format_archive_index(const ArchiveIndex& index);

// Throws CorpusError that names the file and the key: names that lead elsewhere, too.
ArchiveIndex read_archive_index(const std::filesystem::path& archive);

}  // namespace tupelo

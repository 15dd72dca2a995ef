// Corpora compressed for keeping.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "data/corpus.h"

namespace tupelo {

struct ArchiveOptions {
  int level = 12;   // of zstd, 1 to 19
  int threads = 1;  // files at a time
  bool force = false;
  // Called now and then, from one thread at a time; may be empty.
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress = {};
};

struct ArchiveReport {
  std::uint64_t files = 0, bytes = 0, compressed_bytes = 0;
};

// Writes the folder `archive`: every file of the corpus under its name with .zst behind it, so that
// the zstd program reads it as well, and archive.json with sizes and SHA-256 digests of both forms.
// Shards are compared with the digests in index.json, and each file is decompressed again and
// compared before the folder gets its name. The same corpus and level give the same bytes for any
// number of threads. The folder appears whole or not at all. Memory: a few MiB a thread, tens at
// high levels. Throws CorpusError when the corpus is damaged, std::invalid_argument,
// std::system_error.
ArchiveReport archive_corpus(const std::filesystem::path& corpus,
                             const std::filesystem::path& archive, const ArchiveOptions& options);

// The corpus again, byte for byte; `level` means nothing. The archive may come from anyone: names
// must lead into the corpus, sizes and digests must be those that archive.json says, and what comes
// out must open as a corpus. It appears whole or not at all. Throws as above.
ArchiveReport restore_corpus(const std::filesystem::path& archive,
                             const std::filesystem::path& corpus, const ArchiveOptions& options);

}  // namespace tupelo

// Which text files a corpus is made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/input/byte_source.h"
#include "data/prepare.h"

namespace tupelo {

struct TextSource {
  std::filesystem::path file;
  TextFormat format = TextFormat::kBlankLine;  // never kAuto
  std::uint64_t bytes = 0;
  std::optional<FileState> state = {};  // in which the file was listed and must be read
};

// What lay in folders and was left out.
struct SkippedEntries {
  std::uint64_t special = 0;   // FIFOs, sockets, devices
  std::uint64_t dangling = 0;  // symbolic links to nothing
  std::uint64_t repeated = 0;  // files and folders that links lead to a second time
};

// The files that `inputs` name, in their order. A folder stands for every regular file below it,
// sorted by path; symbolic links are followed, and what they lead to is taken once. What is not
// there but has `*` or `?` in its name stands for the files and folders that match (expand_glob).
// kAuto goes by the extension, behind which .gz, .zst or .zstd may follow: .jsonl .json .ndjson,
// .tsv, .html .htm .xhtml, .rst, .mo, .1 to .9 (and such as .3pm in a folder man3). Throws
// std::invalid_argument for something that is neither file nor folder, a folder without files and a
// pattern without matches; std::system_error when there is nothing at a path or it cannot be looked
// into.
std::vector<TextSource> list_text_sources(const std::vector<std::filesystem::path>& inputs,
                                          TextFormat format, SkippedEntries* skipped = nullptr);

}  // namespace tupelo

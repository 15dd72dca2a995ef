// Which text files a corpus is made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/prepare.h"

namespace tupelo {

struct TextSource {
  std::filesystem::path file;
  TextFormat format = TextFormat::kBlankLine;  // never kAuto
  std::uint64_t bytes = 0;
};

// The files that `inputs` name, in their order; a folder stands for every regular file below it,
// sorted by path. Throws std::invalid_argument for something that is neither file nor folder and
// for a folder without files, std::system_error when there is nothing at a path or it cannot be
// looked into.
std::vector<TextSource> list_text_sources(const std::vector<std::filesystem::path>& inputs,
                                          TextFormat format);

}  // namespace tupelo

#include "data/text_source.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>

namespace tupelo {
namespace {

namespace fs = std::filesystem;

TextFormat format_of(const fs::path& file, TextFormat wanted) {
  if (wanted != TextFormat::kAuto) return wanted;
  const fs::path extension = file.extension();
  return extension == ".jsonl" || extension == ".json" ? TextFormat::kJsonLines
                                                       : TextFormat::kBlankLine;
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty()) throw std::invalid_argument("input " + folder.string() + " holds no files");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<TextSource> list_text_sources(const std::vector<fs::path>& inputs, TextFormat format) {
  std::vector<fs::path> files;
  for (const fs::path& input : inputs) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (!fs::status_known(status) || !fs::exists(status)) {
      throw std::system_error(error, "cannot read input " + input.string());
    }
    if (fs::is_directory(status)) {
      const std::vector<fs::path> below = files_below(input);
      files.insert(files.end(), below.begin(), below.end());
    } else if (fs::is_regular_file(status)) {
      files.push_back(input);
    } else {
      throw std::invalid_argument("input " + input.string() + " is neither a file nor a folder");
    }
  }
  std::vector<TextSource> sources;
  for (const fs::path& file : files) {
    sources.push_back({file, format_of(file, format), fs::file_size(file)});
  }
  return sources;
}

}  // namespace tupelo

#include "data/text_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "data/input/glob.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

bool is_one_of(const std::string& text, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(), [&](const char* entry) { return text == entry; });
}

// ".3", or ".3pm" in a folder "man3".
bool is_manual_section(const std::string& extension, const fs::path& file) {
  if (extension.size() < 2 || extension[1] < '1' || extension[1] > '9') return false;
  const std::string folder = file.parent_path().filename().string();
  return extension.size() == 2 || folder == std::string("man") + extension[1];
}

std::string extension_of(const fs::path& file) {
  std::string extension = file.extension();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return extension;
}

TextFormat format_by_name(fs::path file) {
  if (is_one_of(extension_of(file), {".gz", ".zst", ".zstd"})) file.replace_extension();
  const std::string extension = extension_of(file);
  if (is_one_of(extension, {".jsonl", ".json", ".ndjson"})) return TextFormat::kJsonLines;
  if (extension == ".tsv") return TextFormat::kTabSeparated;
  if (is_one_of(extension, {".html", ".htm", ".xhtml"})) return TextFormat::kHtml;
  if (extension == ".rst") return TextFormat::kRestructured;
  if (extension == ".mo") return TextFormat::kMessageCatalogue;
  if (is_manual_section(extension, file)) return TextFormat::kManual;
  return TextFormat::kBlankLine;
}

// Collects the files of one input.
class Listing {
 public:
  explicit Listing(SkippedEntries& skipped) : skipped_(skipped) {}

  std::vector<fs::path> files;

  // Throws when `path` is neither file nor folder.
  void add_named(const fs::path& path) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) {
      const int code = errno;
      throw std::system_error(code, std::generic_category(), "cannot read input " + path.string());
    }
    if (S_ISDIR(status.st_mode)) {
      add_folder(path, status);
    } else if (S_ISREG(status.st_mode)) {
      add_file(path, status);
    } else {
      throw std::invalid_argument("input " + path.string() + " is neither a file nor a folder");
    }
  }
  // What was found rather than named: other things than files and folders are counted.
  void add_entry(const fs::path& path);

 private:
  using Identity = std::pair<dev_t, ino_t>;

  bool is_new(const struct stat& status) {
    const bool fresh = seen_.insert({status.st_dev, status.st_ino}).second;
    if (!fresh) ++skipped_.repeated;
    return fresh;
  }
  void add_file(const fs::path& path, const struct stat& status) {
    if (is_new(status)) files.push_back(path);
  }
  void add_folder(const fs::path& folder, const struct stat& status);

  SkippedEntries& skipped_;
  std::set<Identity> seen_;
};

void Listing::add_folder(const fs::path& folder, const struct stat& status) {
  if (!is_new(status)) return;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) add_entry(entry);
}

void Listing::add_entry(const fs::path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    const int code = errno;
    if (code != ENOENT && code != ELOOP) {
      throw std::system_error(code, std::generic_category(), "cannot read input " + path.string());
    }
    ++skipped_.dangling;
  } else if (S_ISDIR(status.st_mode)) {
    add_folder(path, status);
  } else if (S_ISREG(status.st_mode)) {
    add_file(path, status);
  } else {
    ++skipped_.special;
  }
}

std::vector<fs::path> files_of(const fs::path& input, SkippedEntries& skipped) {
  Listing listing(skipped);
  std::error_code ignored;
  if (has_glob(input) && !fs::exists(fs::symlink_status(input, ignored))) {
    const std::vector<fs::path> found = expand_glob(input);
    if (found.empty()) {
      throw std::invalid_argument("input " + input.string() + " matches no file and no folder");
    }
    for (const fs::path& path : found) listing.add_entry(path);
  } else {
    listing.add_named(input);
  }
  if (listing.files.empty()) {
    throw std::invalid_argument("input " + input.string() + " holds no files");
  }
  return std::move(listing.files);
}

}  // namespace

std::vector<TextSource> list_text_sources(const std::vector<fs::path>& inputs, TextFormat format,
                                          SkippedEntries* skipped) {
  SkippedEntries uncounted;
  std::vector<TextSource> sources;
  for (const fs::path& input : inputs) {
    for (const fs::path& file : files_of(input, skipped == nullptr ? uncounted : *skipped)) {
      const FileState state = file_state(file);
      const TextFormat chosen = format == TextFormat::kAuto ? format_by_name(file) : format;
      sources.push_back({file, chosen, state.bytes, state});
    }
  }
  return sources;
}

}  // namespace tupelo

#include "data/input/glob.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Parts = std::vector<std::string>;

constexpr std::string_view kWild = "*?";

bool is_wild(std::string_view name) { return name.find_first_of(kWild) != std::string_view::npos; }

std::size_t character_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return bytes;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::string_view retry_pattern, retry_name;  // behind the last `*`, and where it may end next
  bool can_retry = false;
  while (!name.empty()) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      retry_pattern = pattern;
      retry_name = name;
      can_retry = true;
    } else if (!pattern.empty() && (pattern.front() == '?' || pattern.front() == name.front())) {
      name.remove_prefix(pattern.front() == '?' ? character_bytes(name) : 1);
      pattern.remove_prefix(1);
    } else if (can_retry) {
      retry_name.remove_prefix(1);
      name = retry_name;
      pattern = retry_pattern;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

bool visible_to(std::string_view pattern, std::string_view name) {
  return name.front() != '.' || pattern.front() == '.';
}

class Expansion {
 public:
  explicit Expansion(Parts parts) : parts_(std::move(parts)) {}

  std::vector<fs::path> found;

  void expand(const fs::path& folder, std::size_t part) {
    if (part == parts_.size()) {
      found.push_back(folder);
    } else if (parts_[part] == "**" && part + 1 == parts_.size()) {
      found.push_back(folder);
    } else if (parts_[part] == "**") {
      expand_any_depth(folder, part);
    } else if (is_wild(parts_[part])) {
      expand_names(folder, part);
    } else if (fs::exists(fs::symlink_status(folder / parts_[part]))) {
      expand(folder / parts_[part], part + 1);
    }
  }

 private:
  static fs::directory_iterator entries_of(const fs::path& folder) {
    const fs::path place = folder.empty() ? fs::path(".") : folder;
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) return {};
    return fs::directory_iterator(place);
  }
  void expand_names(const fs::path& folder, std::size_t part) {
    for (const auto& entry : entries_of(folder)) {
      const std::string name = entry.path().filename().string();
      if (visible_to(parts_[part], name) && matches(parts_[part], name)) {
        expand(folder / name, part + 1);
      }
    }
  }
  void expand_any_depth(const fs::path& folder, std::size_t part) {
    expand(folder, part + 1);
    for (const auto& entry : entries_of(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.front() == '.' || entry.is_symlink()) continue;
      if (entry.is_directory()) expand_any_depth(folder / name, part);
    }
  }

  const Parts parts_;
};

}  // namespace

bool has_glob(const fs::path& path) { return is_wild(path.string()); }

std::vector<fs::path> expand_glob(const fs::path& pattern) {
  Parts parts;
  for (const fs::path& part : pattern.relative_path()) {
    if (!part.empty()) parts.push_back(part.string());
  }
  Expansion expansion(std::move(parts));
  expansion.expand(pattern.root_path(), 0);
  std::sort(expansion.found.begin(), expansion.found.end());
  const auto last = std::unique(expansion.found.begin(), expansion.found.end());
  expansion.found.erase(last, expansion.found.end());
  return expansion.found;
}

}  // namespace tupelo

#include "data/preparation/part_folder.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "data/preparation/patience.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

std::string name_of(const PartKey& key, bool last) {
  char name[64];
  std::snprintf(name, sizeof name, "g%08llu-p%06llu%s", static_cast<unsigned long long>(key.group),
                static_cast<unsigned long long>(key.part), last ? "-last" : "");
  return name;
}

struct NamedPart {
  PartKey key;
  bool last;
};

std::optional<NamedPart> part_of(const std::string& name) {
  unsigned long long group = 0, part = 0;
  if (std::sscanf(name.c_str(), "g%8llu-p%6llu", &group, &part) != 2) return std::nullopt;
  const PartKey key = {group, part};
  for (const bool last : {false, true}) {
    if (name == name_of(key, last)) return NamedPart{key, last};
  }
  return std::nullopt;  // not yet finished
}

}  // namespace

PartFolder::PartFolder(fs::path folder, std::size_t groups)
    : folder_(std::move(folder)), groups_(groups) {}

void PartFolder::look() {
  fs::create_directory(folder_);
  std::map<PartKey, bool> there;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto part = part_of(entry.path().filename().string());
    if (part && part->key.group < groups_.size()) there[part->key] |= part->last;
  }
  std::fill(groups_.begin(), groups_.end(), Group{});
  for (const auto& [key, last] : there) {
    Group& group = groups_[key.group];
    if (key.part != group.parts) continue;
    ++group.parts;
    group.complete = last;
  }
}

std::optional<std::uint64_t> PartFolder::incomplete_group() const {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [](const Group& group) { return !group.complete; });
  if (found == groups_.end()) return std::nullopt;
  return static_cast<std::uint64_t>(found - groups_.begin());
}

void PartFolder::wait_until_complete() {
  be_patient(
      [&] {
        look();
        return !incomplete_group();
      },
      [&] {
        return new_file({*incomplete_group(), 0}, true);
      });
}

fs::path PartFolder::new_file(const PartKey& key, bool last) const {
  return folder_ / name_of(key, last);
}

std::vector<PartKey> PartFolder::all() const {
  std::vector<PartKey> keys;
  for (std::uint64_t group = 0; group < groups_.size(); ++group) {
    for (std::uint64_t part = 0; part < groups_[group].parts; ++part) keys.push_back({group, part});
  }
  return keys;
}

fs::path PartFolder::file(const PartKey& key) const {
  return new_file(key, key.part + 1 == groups_[key.group].parts);
}

}  // namespace tupelo

// The results of a phase, a file for each part of each group of documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace tupelo {

struct PartKey {
  std::uint64_t group = 0, part = 0;  // each from 0
  auto operator<=>(const PartKey&) const = default;
};

class PartFolder {
 public:
  PartFolder(std::filesystem::path folder, std::size_t groups);

  // Looks what is there now; makes the folder if it is not.
  void look();
  // Looks until every group is complete, up to a minute, as a network file system may show late
  // what another host wrote. Throws CorpusError when some group stays incomplete.
  void wait_until_complete();

  // As of the last look: the parts 0 to n - 1 of the group are there.
  std::uint64_t parts(std::uint64_t group) const { return groups_[group].parts; }
  bool is_complete(std::uint64_t group) const { return groups_[group].complete; }

  // Where a part is to be written. The name says whether it is the last of its group.
  std::filesystem::path new_file(const PartKey& key, bool last) const;
  // Of a complete folder: all parts in the order of their documents, and their files.
  std::vector<PartKey> all() const;
  std::filesystem::path file(const PartKey& key) const;

 private:
  struct Group {
    std::uint64_t parts = 0;
    bool complete = false;
  };
  std::optional<std::uint64_t> incomplete_group() const;

  std::filesystem::path folder_;
  std::vector<Group> groups_;
};

}  // namespace tupelo

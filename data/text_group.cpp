#include "data/text_group.h"

#include <algorithm>

#include "data/input/divisible_file.h"

namespace tupelo {
namespace {

void add_parts(const std::vector<TextSource>& sources, std::size_t source,
               std::uint64_t group_bytes, std::vector<TextGroup>& groups) {
  std::uint64_t begin = 0;
  const std::uint64_t end = sources[source].bytes;
  while (begin < end) {
    const std::uint64_t wanted = begin + group_bytes;
    // Rather one that is half as large again than a small one behind it.
    const std::uint64_t next =
        end - begin < group_bytes / 2 * 3 ? end : document_boundary(sources[source], wanted);
    groups.push_back({source, 1, FileRange{begin, next}, next - begin});
    begin = next;
  }
}

}  // namespace

std::vector<TextGroup> divide_into_groups(const std::vector<TextSource>& sources,
                                          const ReadOptions& options, std::uint64_t group_bytes) {
  std::vector<TextGroup> groups;
  bool open = false;  // whether the last group takes further files
  for (std::size_t source = 0; source < sources.size(); ++source) {
    const std::uint64_t bytes = sources[source].bytes;
    if (bytes >= group_bytes / 2 * 3 && is_divisible(sources[source], options)) {
      add_parts(sources, source, group_bytes, groups);
      open = false;
      continue;
    }
    if (!open) groups.push_back({source, 0, std::nullopt, 0});
    ++groups.back().sources;
    groups.back().bytes += bytes;
    open = groups.back().bytes < group_bytes;
  }
  return groups;
}

}  // namespace tupelo

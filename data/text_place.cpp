#include "data/text_place.h"

#include <algorithm>
#include <memory>

#include "data/input/plain_file.h"
#include "data/text_source.h"

namespace tupelo {
namespace {

std::uint64_t lines_before(const TextSource& source, std::uint64_t end) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  if (end == 0) return 0;
  PlainFile file(source.file, source.state ? &*source.state : nullptr, {0, end});
  const auto block = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  std::uint64_t lines = 0;
  while (const std::size_t got = file.read(block.get(), kBlockBytes)) {
    lines += static_cast<std::uint64_t>(std::count(block.get(), block.get() + got, '\n'));
  }
  return lines;
}

}  // namespace

std::string text_place(const TextPlace& place, const std::vector<TextSource>& sources) {
  const TextSource& source = sources[place.source];
  std::string text = source.file.string();
  if (place.line == 0) return text;
  return text.append(":").append(std::to_string(place.line + lines_before(source, place.origin)));
}

}  // namespace tupelo

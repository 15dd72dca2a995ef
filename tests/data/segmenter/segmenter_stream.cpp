// Lets another program talk to the segmenter over pipes.
//   segmenter_stream DICTIONARY [USER_DICTIONARY...]   records in, word ends out
// A record is its length in bytes (32 bits, this machine's byte order) and its bytes. The answer to
// each is the number of words (32 bits) and where they end, in bytes (32 bits each).
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/segmenter/segmenter.h"

namespace {

std::optional<std::string> read_record() {
  std::uint32_t size = 0;
  if (std::fread(&size, sizeof size, 1, stdin) != 1) return std::nullopt;
  std::string bytes(size, '\0');
  if (std::fread(bytes.data(), 1, size, stdin) != size) return std::nullopt;
  return bytes;
}

void write_number(std::size_t number) {
  const auto narrow = static_cast<std::uint32_t>(number);
  std::fwrite(&narrow, sizeof narrow, 1, stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: segmenter_stream DICTIONARY [USER_DICTIONARY...]\n");
    return 2;
  }
  const tupelo::Segmenter segmenter(argv[1],
                                    std::vector<std::filesystem::path>(argv + 2, argv + argc));
  std::vector<std::size_t> ends;
  while (const auto text = read_record()) {
    ends.clear();
    segmenter.segment(*text, ends);
    write_number(ends.size());
    for (const std::size_t end : ends) write_number(end);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

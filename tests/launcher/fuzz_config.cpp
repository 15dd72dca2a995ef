// libFuzzer: any text as a configuration file is taken or refused with a std::invalid_argument;
// what was taken is written as a file that means the same. The first byte chooses whether the
// others are the file itself or changes to one that sets everything: five bytes each, a place, what
// to do there, how much of it, and a value.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/run_config.h"

namespace tupelo {
namespace {

std::string changed(std::string text, const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = 0; i + 5 <= size && !text.empty(); i += 5) {
    const std::size_t at = static_cast<std::size_t>(data[i] | data[i + 1] << 8) % text.size();
    const std::size_t count = data[i + 3] % 64;
    const char value = static_cast<char>(data[i + 4]);
    if (data[i + 2] % 4 == 0) text.insert(at, 1, value);
    if (data[i + 2] % 4 == 1) text.erase(at, count + 1);
    if (data[i + 2] % 4 == 2) text[at] = value;
    if (data[i + 2] % 4 == 3) text.insert(at, text.substr(data[i + 4] * 16u % text.size(), count));
  }
  return text;
}

// The sections of a file that sets everything.
std::vector<std::string> sections() {
  std::vector<std::string> all;
  std::istringstream lines(ConfigBuilder().to_ini(/*with_origins=*/false));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) all.emplace_back();
    all.back() += line + "\n";
  }
  return all;
}

// What a file of our own means, as another.
std::string reread(const std::string& text) {
  ConfigBuilder builder;
  try {
    builder.apply_text(text, "f");
  } catch (const std::invalid_argument&) {
    std::abort();
  }
  return builder.to_ini(/*with_origins=*/false);
}

// Writing and reading all settings takes the most time: `twice` not always.
void take(const std::string& text, bool twice) {
  ConfigBuilder builder;
  builder.apply_text(text, "f");
  validate(builder);
  if (!twice) return;
  const std::string written = builder.to_ini(/*with_origins=*/false);
  if (reread(written) != written) std::abort();
  if (reread(builder.to_ini(/*with_origins=*/true)) != written) std::abort();
}

}  // namespace
}  // namespace tupelo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> sound = tupelo::sections();
  if (size == 0) return 0;
  const bool raw = data[0] >= 0xC0, twice = data[0] / 64 == 1;
  const std::string& section = sound[data[0] % 64 % sound.size()];
  try {
    tupelo::take(raw ? std::string(reinterpret_cast<const char*>(data) + 1, size - 1)
                     : tupelo::changed(section, data + 1, size - 1),
                 twice);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}

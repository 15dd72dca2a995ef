#include "launcher/config_file.h"

#include <boost/program_options.hpp>
#include <map>
#include <sstream>
#include <stdexcept>

namespace tupelo {
namespace {

namespace po = boost::program_options;

constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";

// One line as Boost reads it below its section; nothing for an empty line or a comment. Boost's
// parser of whole files does not tell where an option stands.
std::vector<po::option> parse_line(const std::string& section, const std::string& line) {
  const po::options_description nothing_registered;
  std::istringstream stream((section.empty() ? "" : "[" + section + "]\n") + line + "\n");
  return po::parse_config_file(stream, nothing_registered, /*allow_unregistered=*/true).options;
}

std::string trimmed(const std::string& content) {
  const std::size_t first = content.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return content.substr(first, content.find_last_not_of(" \t\r") - first + 1);
}

std::string unquoted(const std::string& value) {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

std::vector<ConfigLine> parse_config(const std::string& text, const std::string& file) {
  std::istringstream lines(text.starts_with(kByteOrderMark) ? text.substr(3) : text);
  std::vector<ConfigLine> result;
  std::map<std::string, int> line_of;
  std::string line, section;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto reject = [&](const std::string& what) {
      throw std::invalid_argument(file + ":" + std::to_string(number) + ": " + what);
    };
    const std::string content = trimmed(line.substr(0, line.find('#')));
    if (content.starts_with('[')) {
      if (content.back() != ']' || content.size() < 3) {
        reject("'" + content + "' is no section; write [train]");
      }
      section = trimmed(content.substr(1, content.size() - 2));
      continue;
    }
    try {
      for (const po::option& option : parse_line(section, line)) {
        const auto [place, is_new] = line_of.emplace(option.string_key, number);
        if (!is_new) {
          reject(option.string_key + " is set twice, first in line " +
                 std::to_string(place->second));
        }
        result.push_back({option.string_key,
                          unquoted(option.value.empty() ? "" : option.value.front()), number});
      }
    } catch (const po::error&) {
      reject("'" + content + "' is neither [section] nor key = value");
    }
  }
  return result;
}

}  // namespace tupelo

// The options of one verb: what is allowed, what was given, and the help text.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tupelo {

struct VerbOption {
  enum class Takes { kNothing, kOneValue, kManyValues };
  std::string name;  // without dashes
  Takes takes;
  std::string argument;  // shown in the help text: "PATH"
  std::string help;
};

struct Verb {
  std::string name;
  std::string usage;    // what follows "usage: "
  std::string summary;  // one paragraph
  std::vector<VerbOption> options;
  std::optional<std::string> positional;  // name of the option that bare words belong to
  bool configurable = false;              // accepts every name of config_entries()
  std::string epilogue;                   // examples, exit codes
};

// Runs `read`, with the option's name in front of what it finds wrong.
template <typename Read>
auto reading_option(const std::string& option, Read read) {
  try {
    return read();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("--" + option + ": " + error.what());
  }
}

// Throws std::invalid_argument: an unknown option (with the nearest valid one), a missing or empty
// value, an option or setting given twice, a bare word where none belongs.
class CommandLine {
 public:
  CommandLine(const Verb& verb, const std::vector<std::string>& arguments);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  // The value given, or `fallback`.
  std::string value(const std::string& name, const std::string& fallback = "") const;
  const std::vector<std::string>& values(const std::string& name) const;
  // The value given; throws std::invalid_argument when it is missing.
  std::string required(const std::string& name) const;
  // Configuration entries set on the command line, by full name, in the order given.
  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }

 private:
  void add(const Verb& verb, const VerbOption& option, const std::vector<std::string>& values);
  void add_setting(const std::string& name, const std::string& value);

  std::string verb_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

std::string help_text(const Verb& verb);

}  // namespace tupelo

// The settings of a command, gathered from all their sources.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/run_config.h"

namespace tupelo {

// Settings that come after the defaults and before everything that the user says.
struct InheritedSettings {
  std::string origin;
  std::vector<std::pair<std::string, std::string>> values;  // names and texts of config_entries()
};

// The [model] section of `config`.
InheritedSettings model_settings(const RunConfig& config, const std::string& origin);

// Defaults < inherited < --config file < environment < command line. Not yet validated against each
// other. Throws std::invalid_argument, or std::system_error for a file that cannot be read.
ConfigBuilder gather_settings(const CommandLine& line, const InheritedSettings& inherited = {});

}  // namespace tupelo

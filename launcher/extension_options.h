// The options that say how position tables get more rows: of training that starts from another run,
// and of evaluation by length.
#pragma once

#include "launcher/command_line.h"
#include "model/position/length_extension.h"

namespace tupelo {

// --extend-policy and --extend-alpha.
std::vector<VerbOption> extension_options(const std::string& policy_help);

// What they say about tables; the rest of the extension is the default. Throws
// std::invalid_argument for a value that is not valid, and for --extend-alpha without the policy
// that it belongs to.
LengthExtension extension_from(const CommandLine& line);

}  // namespace tupelo

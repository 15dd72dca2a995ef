// `tupelo inspect --plan`: what a plan of position encodings costs.
#pragma once

#include "launcher/command_line.h"

namespace tupelo {

// Prints the costs of the model of a run (--run), or of one that settings describe. Throws
// std::invalid_argument for settings that do not fit together.
void inspect_plan(const CommandLine& line);

}  // namespace tupelo

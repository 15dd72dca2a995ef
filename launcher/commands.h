// The verbs of the `tupelo` command.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/exit_codes.h"

namespace tupelo {

struct Command {
  Verb verb;
  ExitCode (*run)(const CommandLine&);
};

Command prepare_command();
Command train_command();
Command eval_command();
Command inspect_command();
Command plot_command();

}  // namespace tupelo

// The verbs of the `tupelo` command.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/exit_codes.h"

namespace tupelo {

struct Command {
  Verb verb;
  // `words` are what follows the verb on the command line.
  ExitCode (*run)(const Verb& verb, const std::vector<std::string>& words);
};

Command prepare_command();
Command corpus_command();
Command train_command();
Command eval_command();
Command inspect_command();
Command plot_command();
Command doctor_command();

}  // namespace tupelo

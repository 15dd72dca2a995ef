// The `tupelo` command: finds the verb, runs it, and turns errors into one sentence and an exit
// code.
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands.h"
#include "launcher/exit_codes.h"
#include "launcher/nearest_name.h"

namespace {

using tupelo::Command;
using tupelo::ExitCode;

std::vector<Command> commands() {
  return {tupelo::prepare_command(), tupelo::corpus_command(),  tupelo::train_command(),
          tupelo::eval_command(),    tupelo::inspect_command(), tupelo::plot_command(),
          tupelo::doctor_command()};
}

std::string overview() {
  std::string text =
      "usage: tupelo VERB [options]\n\n"
      "Pretrains RoBERTa-class encoders with a position encoding per layer, on one machine or "
      "many.\n\n";
  for (const Command& command : commands()) {
    std::string line = "  " + command.verb.name;
    line.resize(12, ' ');
    const std::string& summary = command.verb.summary;
    text += line + summary.substr(0, summary.find('.') + 1) + "\n";
  }
  return text + "\ntupelo VERB --help tells more. tupelo --version prints the version.\n";
}

ExitCode run(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    std::cout << overview();
    return arguments.empty() ? ExitCode::kUsage : ExitCode::kDone;
  }
  if (arguments[0] == "--version") {
    std::cout << "tupelo " TUPELO_VERSION "\n";
    return ExitCode::kDone;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.push_back(command.verb.name);
    if (command.verb.name != arguments[0]) continue;
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    for (const std::string& argument : rest) {
      if (argument == "--help" || argument == "-h") {
        std::cout << tupelo::help_text(command.verb);
        return ExitCode::kDone;
      }
    }
    return command.run(command.verb, rest);
  }
  throw std::invalid_argument("tupelo: " + tupelo::unknown_name("verb", arguments[0], names));
}

// Results that nobody can read are no success: a full disk behind standard output is an error.
void require_output_written() {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::cout.good() && std::ferror(stdout) == 0;
  if (written) return;
  throw std::system_error(errno == 0 ? EIO : errno, std::generic_category(),
                          "cannot write to standard output");
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    const ExitCode code = run({arguments + 1, arguments + argument_count});
    if (code == ExitCode::kDone) require_output_written();
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    std::cerr << "error: " << tupelo::printable(tupelo::sentence_of(error)) << std::endl;
    return static_cast<int>(tupelo::exit_code_of(error));
  }
}

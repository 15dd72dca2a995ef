// The exit codes of the `tupelo` command: a contract with schedulers and scripts. 110, 137, 139 and
// 205 are left to what mpirun itself returns.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace tupelo {

enum class ExitCode : int {
  kDone = 0,
  kUsage = 2,           // options, configuration, a plan that does not match a checkpoint
  kCorrupt = 3,         // corrupt corpus or vocabulary, no checkpoint that verifies
  kNumerics = 4,        // loss or gradient not finite, too many steps in a row
  kCommunication = 10,  // a collective failed
  kTimeout = 11,        // a rank did not join a collective in time
  kUnfit = 20,          // tupelo doctor: a check failed
  kInternal = 70,       // a broken contract inside Tupelo
  kMemory = 71,         // memory ran out
  kStorage = 74,        // the file system refused
  kPreempted = 75,      // SIGTERM or SIGUSR1: state saved, start again to go on
  kPreemptedNotSaved = 76,
  kInterrupted = 130,  // SIGINT: state saved
};

// Too many steps in a row whose loss or gradient was not finite.
class NumericsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An error that another rank met, or that all ranks agreed on; `what()` is the whole sentence.
class AgreedError : public std::runtime_error {
 public:
  AgreedError(ExitCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The exit code that the kind of `error` calls for.
ExitCode exit_code_of(const std::exception& error);

// `text` without control characters, which stand as \x00: what a user typed comes back in
// sentences.
std::string printable(const std::string& text);

// One sentence for a person, without the back-traces that LibTorch appends.
std::string sentence_of(const std::exception& error);

}  // namespace tupelo

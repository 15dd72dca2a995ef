// Failing together: what one rank cannot do, no rank does.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launcher/exit_codes.h"

namespace tupelo {

class Communicator;

// What went wrong on a rank.
struct Failure {
  ExitCode code;
  std::string sentence;
  int rank = 0;

  // The sentence, with the rank named unless it is 0.
  std::string text() const;
};
Failure failure_of(const std::exception& error, const Communicator& communicator);

// The failure of the lowest rank that has one, on every rank. Collective.
std::optional<Failure> first_failure(const std::optional<Failure>& own, Communicator& communicator);

// Runs `action` on this rank and compares notes: when it threw on any rank, every rank throws an
// AgreedError with the sentence and exit code of the lowest such rank (with that rank named when
// the world is larger than one). Every rank must call it at the same point. Errors of the
// communicator itself pass through unchanged.
void together(Communicator& communicator, const std::function<void()>& action);

// The same for an action that only rank 0 carries out while the others wait.
void on_rank_zero(Communicator& communicator, const std::function<void()>& action);

}  // namespace tupelo

#include "launcher/agreement.h"

#include <string>

#include "distributed/communicator.h"
#include "launcher/exit_codes.h"

namespace tupelo {

void together(Communicator& communicator, const std::function<void()>& action) {
  std::string message;
  ExitCode code = ExitCode::kDone;
  try {
    action();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    message = sentence_of(error);
    code = exit_code_of(error);
  }
  const bool failed = code != ExitCode::kDone;
  const int world = communicator.world_size();
  const double unaffected = world;
  const double first =
      -communicator.max(failed ? -static_cast<double>(communicator.rank()) : -unaffected);
  if (first == unaffected) return;
  const int culprit = static_cast<int>(first);
  code = static_cast<ExitCode>(
      std::stoi(communicator.broadcast(std::to_string(static_cast<int>(code)), culprit)));
  message = communicator.broadcast(message, culprit);
  if (culprit > 0) message = "rank " + std::to_string(culprit) + ": " + message;
  throw AgreedError(code, message);
}

void on_rank_zero(Communicator& communicator, const std::function<void()>& action) {
  together(communicator, [&] {
    if (communicator.rank() == 0) action();
  });
}

}  // namespace tupelo

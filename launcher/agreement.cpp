#include "launcher/agreement.h"

#include <string>

#include "distributed/communicator.h"

namespace tupelo {

std::string Failure::text() const {
  return rank > 0 ? "rank " + std::to_string(rank) + ": " + sentence : sentence;
}

Failure failure_of(const std::exception& error, const Communicator& communicator) {
  return {exit_code_of(error), sentence_of(error), communicator.rank()};
}

std::optional<Failure> first_failure(const std::optional<Failure>& own,
                                     Communicator& communicator) {
  const double unaffected = communicator.world_size();
  const double first = -communicator.max(own ? -static_cast<double>(own->rank) : -unaffected);
  if (first == unaffected) return std::nullopt;
  const int culprit = static_cast<int>(first);
  const std::string code = std::to_string(own ? static_cast<int>(own->code) : 0);
  Failure failure{static_cast<ExitCode>(std::stoi(communicator.broadcast(code, culprit))), "",
                  culprit};
  failure.sentence = communicator.broadcast(own ? own->sentence : "", culprit);
  return failure;
}

void together(Communicator& communicator, const std::function<void()>& action) {
  std::optional<Failure> own;
  try {
    action();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    own = failure_of(error, communicator);
  }
  if (const auto failure = first_failure(own, communicator)) {
    throw AgreedError(failure->code, failure->text());
  }
}

void on_rank_zero(Communicator& communicator, const std::function<void()>& action) {
  together(communicator, [&] {
    if (communicator.rank() == 0) action();
  });
}

}  // namespace tupelo

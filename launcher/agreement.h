// Failing together: what one rank cannot do, no rank does.
#pragma once

#include <functional>

namespace tupelo {

class Communicator;

// Runs `action` on this rank and compares notes: when it threw on any rank, every rank throws an
// AgreedError with the sentence and exit code of the lowest such rank (with that rank named when
// the world is larger than one). Every rank must call it at the same point. Errors of the
// communicator itself pass through unchanged.
void together(Communicator& communicator, const std::function<void()>& action);

// The same for an action that only rank 0 carries out while the others wait.
void on_rank_zero(Communicator& communicator, const std::function<void()>& action);

}  // namespace tupelo

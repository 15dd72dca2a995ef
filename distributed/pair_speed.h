// How fast two ranks talk to each other, measured pair by pair.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace tupelo {

class Runtime;

struct PairSpeed {
  int peer = 0;
  double seconds = 0;  // the best exchange of `bytes`, both ways at once
};

// This rank's exchanges with other ranks of `ranks` (ascending, the same on all), over MPI: with
// every one of them, or with as many as `most_partners` lets it. At any time a rank talks to one
// other only, so that no two measurements share its network card. A pair takes two exchanges, and
// more, up to `repetitions`, while they fit into a fifth of a second.
// Collective over all ranks of `runtime`, whether named or not. Empty where there is no MPI.
// Throws CommunicationError; the communicators of the run stay usable only if nothing is thrown.
std::vector<PairSpeed> measure_pairs(const Runtime& runtime, const std::vector<int>& ranks,
                                     std::size_t bytes, int repetitions, std::size_t most_partners,
                                     std::chrono::milliseconds timeout);

}  // namespace tupelo

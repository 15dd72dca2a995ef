#include "distributed/pair_speed.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "distributed/mpi_exchange.h"
#include "distributed/patience.h"
#include "distributed/runtime.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;

// Who plays whom in round `round` of a tournament of `players` (even): the circle method, in which
// the last player stands still and the others move on by one each round.
std::size_t opponent(std::size_t player, std::size_t round, std::size_t players) {
  const std::size_t circle = players - 1;
  if (player == circle) return round * (players / 2) % circle;
  const std::size_t other = (round + circle - player) % circle;
  return other == player ? circle : other;
}

struct Buffers {
  explicit Buffers(std::size_t bytes) : out(bytes, 1), in(bytes) {}
  std::vector<char> out, in;
};

double best_exchange(MpiExchange& exchange, Patience& patience, int peer, std::uint64_t round,
                     int repetitions, Buffers& buffers) {
  constexpr double kWorthSeconds = 0.2;
  double best = std::numeric_limits<double>::infinity(), total = 0;
  // Once more than counts: connections are made at the first message.
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    const auto start = Clock::now();
    // Both see what both would like, so neither waits for an exchange that the other leaves out.
    buffers.out.front() = repetition > 0 && total > kWorthSeconds ? 1 : 0;
    patience.begin("measurement of pairs", round);
    exchange.begin(/*kind=*/0);
    exchange.exchange({{peer, buffers.out.data(), buffers.out.size()}},
                      {{peer, buffers.in.data(), buffers.in.size()}});
    const std::chrono::duration<double> taken = Clock::now() - start;
    total += taken.count();
    if (repetition > 0) best = std::min(best, taken.count());
    if (buffers.out.front() != 0 || buffers.in.front() != 0) break;
  }
  return best;
}

}  // namespace

std::vector<PairSpeed> measure_pairs(const Runtime& runtime, const std::vector<int>& ranks,
                                     std::size_t bytes, int repetitions, std::size_t most_partners,
                                     std::chrono::milliseconds timeout) {
  std::vector<PairSpeed> result;
  if (!runtime.is_initialized() || ranks.size() < 2) return result;
  Patience patience(runtime.rank(), timeout, std::make_shared<std::atomic<int>>(1));
  MpiExchange exchange(runtime, patience);
  const auto mine = std::find(ranks.begin(), ranks.end(), runtime.rank());
  if (mine == ranks.end()) return result;
  const auto me = static_cast<std::size_t>(mine - ranks.begin());
  const std::size_t players = ranks.size() + ranks.size() % 2;
  auto buffers = std::make_unique<Buffers>(bytes);
  try {
    for (std::size_t round = 0; round < std::min(players - 1, most_partners); ++round) {
      const std::size_t other = opponent(me, round, players);
      if (other >= ranks.size()) continue;  // an odd number of ranks: this one rests
      const int peer = ranks[other];
      result.push_back(
          {peer, best_exchange(exchange, patience, peer, round, repetitions, *buffers)});
    }
  } catch (...) {
    // Messages may still arrive.
    runtime.mark_broken();
    static_cast<void>(buffers.release());
    throw;
  }
  return result;
}

}  // namespace tupelo

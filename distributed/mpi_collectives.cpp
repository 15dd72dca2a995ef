#include "distributed/mpi_collectives.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace tupelo {
namespace {

// Large enough that a message costs more than its start, small enough to stay in the cache between
// receiving and reducing.
constexpr std::size_t kChunkBytes = 4u << 20;

std::vector<int> all_unless(std::vector<int> members, const MpiExchange& exchange) {
  if (!members.empty()) return members;
  std::vector<int> ranks(static_cast<std::size_t>(exchange.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

MpiCollectives::MpiCollectives(MpiExchange& exchange, std::vector<int> members)
    : exchange_(exchange), group_(exchange, all_unless(std::move(members), exchange)) {}

void MpiCollectives::run(const Collective& collective) {
  exchange_.begin(static_cast<int>(collective.kind));
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce(collective);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(collective);
    case CollectiveKind::kAllGather:
      return all_gather(collective);
    case CollectiveKind::kBroadcast:
      return broadcast(collective);
    case CollectiveKind::kBarrier:
      return group_.barrier();
  }
}

void MpiCollectives::all_reduce(const Collective& collective) {
  const Reduction reduction = reduction_of(collective);
  const std::size_t width = width_of(reduction.input);
  const std::size_t count = count_of(collective.input);
  const std::size_t step = kChunkBytes / width;
  for (std::size_t begin = 0; begin < count; begin += step) {
    std::byte* data = bytes_of(collective.input) + begin * width;
    group_.all_reduce(data, data, std::min(step, count - begin), reduction);
  }
}

void MpiCollectives::reduce_scatter(const Collective& collective) {
  const Reduction reduction = reduction_of(collective);
  const std::size_t width = width_of(reduction.input);
  const std::size_t count = count_of(collective.output);
  const auto world_size = static_cast<std::size_t>(group_.size());
  const std::size_t step = std::max<std::size_t>(1, kChunkBytes / (width * world_size));
  const std::byte* input = bytes_of(collective.input);
  for (std::size_t begin = 0; begin < count; begin += step) {
    const std::size_t size = std::min(step, count - begin);
    const auto slice_for = [&](int place) {
      const std::size_t at = static_cast<std::size_t>(place) * count + begin;
      return MpiGroup::Bytes{input + at * width, size * width};
    };
    group_.reduce_scatter(slice_for, bytes_of(collective.output) + begin * width, size, reduction);
  }
}

void MpiCollectives::all_gather(const Collective& collective) {
  const std::size_t bytes = collective.input.nbytes();
  const std::byte* input = bytes_of(collective.input);
  std::byte* output = bytes_of(collective.output);
  std::byte* own = output + static_cast<std::size_t>(group_.place()) * bytes;
  if (own != input && bytes > 0) std::memmove(own, input, bytes);
  for (std::size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    const std::size_t size = std::min(kChunkBytes, bytes - begin);
    std::vector<MpiGroup::Message> sends;
    std::vector<MpiGroup::Message> receives;
    for (int place = 0; place < group_.size(); ++place) {
      if (place == group_.place()) continue;
      sends.push_back({place, own + begin, size});
      receives.push_back({place, output + static_cast<std::size_t>(place) * bytes + begin, size});
    }
    group_.exchange(sends, receives);
  }
}

void MpiCollectives::broadcast(const Collective& collective) {
  const std::size_t bytes = collective.input.nbytes();
  std::byte* data = bytes_of(collective.input);
  for (std::size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    group_.broadcast(data + begin, std::min(kChunkBytes, bytes - begin), collective.root);
  }
}

}  // namespace tupelo

#include "distributed/mpi_collectives.h"

#include <algorithm>
#include <cstring>

#include "distributed/reduction.h"

namespace tupelo {
namespace {

// Large enough that a message costs more than its start, small enough to stay in the cache between
// receiving and reducing.
constexpr std::size_t kChunkBytes = 4u << 20;
// Up to here a second round trip costs more than sending everything to everybody.
constexpr std::size_t kSmallBytes = 8u << 10;

std::byte* bytes_of(const torch::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::size_t count_of(const torch::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

}  // namespace

void MpiCollectives::run(const Collective& collective, std::uint64_t sequence) {
  exchange_.begin(describe(collective), sequence, static_cast<int>(collective.kind));
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
      return barrier();
  }
}

MpiCollectives::Part MpiCollectives::slice_of(Part chunk, int index, int count) const {
  const auto at = [&](int i) {
    return chunk.size * static_cast<std::size_t>(i) / static_cast<std::size_t>(count);
  };
  return {chunk.begin + at(index), at(index + 1) - at(index)};
}

template <typename MineFor>
void MpiCollectives::exchange_and_reduce(const Collective& collective, MineFor mine_for,
                                         std::size_t slice_size, const std::byte* mine,
                                         std::byte* result) {
  const int world_size = exchange_.world_size();
  const std::size_t width = collective.input.element_size();
  const std::size_t slice_bytes = slice_size * width;
  scratch_.resize(std::max(scratch_.size(), slice_bytes * static_cast<std::size_t>(world_size)));
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  std::vector<const void*> inputs;
  for (int peer = 0; peer < world_size; ++peer) {
    std::byte* arriving = scratch_.data() + static_cast<std::size_t>(peer) * slice_bytes;
    inputs.push_back(peer == exchange_.rank() ? mine : arriving);
    if (peer == exchange_.rank()) continue;
    if (slice_bytes > 0) receives.push_back({peer, arriving, slice_bytes});
    if (const MpiMessage message = mine_for(peer); message.bytes > 0) sends.push_back(message);
  }
  exchange_.exchange(sends, receives);
  reduce_in_order(inputs, result, slice_size, collective.input.scalar_type(), collective.op);
}

void MpiCollectives::all_reduce(const Collective& collective) {
  const std::size_t count = count_of(collective.input);
  const std::size_t width = collective.input.element_size();
  if (count * width <= kSmallBytes) return all_reduce_small(collective);
  const std::size_t step = kChunkBytes / width;
  for (std::size_t begin = 0; begin < count; begin += step) {
    all_reduce_chunk(collective, {begin, std::min(step, count - begin)});
  }
}

void MpiCollectives::all_reduce_small(const Collective& collective) {
  std::byte* data = bytes_of(collective.input);
  const auto everything = [&](int peer) {
    return MpiMessage{peer, data, collective.input.nbytes()};
  };
  exchange_and_reduce(collective, everything, count_of(collective.input), data, data);
}

void MpiCollectives::all_reduce_chunk(const Collective& collective, Part chunk) {
  const int world_size = exchange_.world_size();
  const std::size_t width = collective.input.element_size();
  std::byte* data = bytes_of(collective.input);
  const auto message_of = [&](int peer, int slice_index) {
    const Part slice = slice_of(chunk, slice_index, world_size);
    return MpiMessage{peer, data + slice.begin * width, slice.size * width};
  };
  const Part own = slice_of(chunk, exchange_.rank(), world_size);
  std::byte* own_data = data + own.begin * width;
  exchange_and_reduce(
      collective, [&](int peer) { return message_of(peer, peer); }, own.size, own_data, own_data);
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  for (int peer = 0; peer < world_size; ++peer) {
    if (peer == exchange_.rank()) continue;
    sends.push_back(message_of(peer, exchange_.rank()));
    receives.push_back(message_of(peer, peer));
  }
  exchange_.exchange(sends, receives);
}

void MpiCollectives::reduce_scatter(const Collective& collective) {
  const auto world_size = static_cast<std::size_t>(exchange_.world_size());
  const std::size_t count = count_of(collective.output);
  const std::size_t width = collective.input.element_size();
  const std::size_t step = std::max<std::size_t>(1, kChunkBytes / (width * world_size));
  std::byte* input = bytes_of(collective.input);
  for (std::size_t begin = 0; begin < count; begin += step) {
    const std::size_t size = std::min(step, count - begin);
    const auto slice_for = [&](int peer) {
      const std::size_t at = static_cast<std::size_t>(peer) * count + begin;
      return MpiMessage{peer, input + at * width, size * width};
    };
    const auto* mine = static_cast<const std::byte*>(slice_for(exchange_.rank()).data);
    exchange_and_reduce(collective, slice_for, size, mine,
                        bytes_of(collective.output) + begin * width);
  }
}

void MpiCollectives::all_gather(const Collective& collective) {
  const int world_size = exchange_.world_size();
  const std::size_t bytes = collective.input.nbytes();
  std::byte* input = bytes_of(collective.input);
  std::byte* output = bytes_of(collective.output);
  std::byte* own = output + static_cast<std::size_t>(exchange_.rank()) * bytes;
  if (own != input && bytes > 0) std::memmove(own, input, bytes);
  for (std::size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    const std::size_t size = std::min(kChunkBytes, bytes - begin);
    std::vector<MpiMessage> sends;
    std::vector<MpiMessage> receives;
    for (int peer = 0; peer < world_size; ++peer) {
      if (peer == exchange_.rank()) continue;
      sends.push_back({peer, own + begin, size});
      receives.push_back({peer, output + static_cast<std::size_t>(peer) * bytes + begin, size});
    }
    exchange_.exchange(sends, receives);
  }
}

void MpiCollectives::broadcast(const Collective& collective) {
  const std::size_t bytes = collective.input.nbytes();
  for (std::size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    broadcast_chunk(collective, {begin, std::min(kChunkBytes, bytes - begin)});
  }
}

// The root hands each of the others one slice, and they hand it on, so that the root sends the data
// once and not once for each rank. A small chunk goes to everybody directly.
void MpiCollectives::broadcast_chunk(const Collective& collective, Part chunk) {
  std::byte* data = bytes_of(collective.input);
  const int others = exchange_.world_size() - 1;
  const auto peer_at = [&](int index) { return index < collective.root ? index : index + 1; };
  const bool is_root = exchange_.rank() == collective.root;
  const bool direct = chunk.size <= kSmallBytes || others == 1;
  const auto message_of = [&](int peer, int slice_index) {
    const Part slice = direct ? chunk : slice_of(chunk, slice_index, others);
    return MpiMessage{peer, data + slice.begin, slice.size};
  };
  if (is_root) {
    std::vector<MpiMessage> sends;
    for (int i = 0; i < others; ++i) sends.push_back(message_of(peer_at(i), i));
    return exchange_.exchange(sends, {});
  }
  const int own = exchange_.rank() < collective.root ? exchange_.rank() : exchange_.rank() - 1;
  exchange_.exchange({}, {message_of(collective.root, own)});
  if (direct) return;
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  for (int i = 0; i < others; ++i) {
    if (i == own) continue;
    sends.push_back(message_of(peer_at(i), own));
    receives.push_back(message_of(peer_at(i), i));
  }
  exchange_.exchange(sends, receives);
}

void MpiCollectives::barrier() {
  std::vector<MpiMessage> messages;
  for (int peer = 0; peer < exchange_.world_size(); ++peer) {
    if (peer != exchange_.rank()) messages.push_back({peer, nullptr, 0});
  }
  exchange_.exchange(messages, messages);
}

}  // namespace tupelo

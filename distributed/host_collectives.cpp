#include "distributed/host_collectives.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tupelo {
namespace {

// On one host the chunks that are between their stages should stay in the second-level cache, but
// a slice should cost more than the wait for it.
constexpr std::size_t kHostSliceBytes = 16u << 10;
constexpr std::size_t kLeastHostChunkBytes = 128u << 10;
constexpr std::size_t kMostHostChunkBytes = 512u << 10;
// Messages between hosts are a fraction of a chunk, and should cost more than their start.
constexpr std::size_t kHierarchyChunkBytes = 1u << 20;
// Up to here it costs more to wait for slices of others than to reduce everything oneself.
constexpr std::size_t kSmallBytes = 8u << 10;

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

HostCollectives::HostCollectives(MpiExchange& exchange, Topology topology,
                                 std::unique_ptr<SharedWindow> window)
    : exchange_(exchange), topology_(std::move(topology)), window_(std::move(window)) {
  if (has_other_hosts() && topology_.is_courier()) {
    peers_.emplace(exchange, topology_.peers(), Patience::Wait::kForOneWhoWaits);
  }
}

std::size_t HostCollectives::chunk_bytes(const Topology& topology) {
  if (topology.host_count() > 1) return kHierarchyChunkBytes;
  return std::clamp(kHostSliceBytes * topology.neighbours().size(), kLeastHostChunkBytes,
                    kMostHostChunkBytes);
}

void HostCollectives::run(const Collective& collective) {
  exchange_.begin(static_cast<int>(collective.kind));
  if (collective.kind == CollectiveKind::kBarrier) return barrier();
  const Job job = job_of(collective);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce(job);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(job);
    case CollectiveKind::kAllGather:
      return all_gather(job);
    case CollectiveKind::kBroadcast:
      return broadcast(job);
    case CollectiveKind::kBarrier:
      return;
  }
}

HostCollectives::Job HostCollectives::job_of(const Collective& collective) const {
  Job job;
  job.reduction = reduction_of(collective);
  job.width = width_of(job.reduction.input);
  job.count = std::min(count_of(collective.input), count_of(collective.output));
  job.step = window_->chunk_bytes() / job.width;
  // Few elements go through one courier, in one message.
  job.slices = job.count * job.width > kSmallBytes ? topology_.courier_count() : 1;
  job.input = bytes_of(collective.input);
  job.output = bytes_of(collective.output);
  job.root = collective.root;
  return job;
}

HostCollectives::Part HostCollectives::Job::part(Chunk chunk) const {
  const std::size_t begin = chunk.index * step;
  return {begin, std::min(step, count - begin)};
}

SharedWindow::Stages HostCollectives::stages_of(std::size_t chunks) const {
  SharedWindow::Stages stages;
  stages.chunks = chunks;
  stages.combiners = topology_.courier_count();
  if (has_other_hosts()) stages.wait_for_combiners = Patience::Wait::kForOneWhoWaits;
  return stages;
}

std::vector<const void*> HostCollectives::deposits(Chunk chunk, std::size_t offset,
                                                   const void* own) const {
  std::vector<const void*> parts;
  for (int member = 0; member < window_->members(); ++member) {
    const bool is_own = own != nullptr && member == topology_.own_place();
    parts.push_back(is_own ? own : window_->deposit(member, chunk) + offset);
  }
  return parts;
}

// What a rank combines itself need not be deposited.
void HostCollectives::all_reduce(Job job) {
  const int place = topology_.own_place();
  const bool is_small = job.slices == 1 && job.count * job.width <= kSmallBytes;
  const bool everybody_combines = is_small && !has_other_hosts();
  const auto slice = [&job](Chunk chunk, int index) {
    return MpiGroup::slice_of(job.part(chunk), index, job.slices);
  };
  auto stages = stages_of(job.chunks());
  stages.deposit = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    const bool has_own = place < job.slices && !everybody_combines;
    const Part own = has_own ? slice(chunk, place) : Part{part.begin + part.size, 0};
    const std::size_t before = own.begin - part.begin;
    const std::size_t after = part.size - before - own.size;
    std::byte* to = window_->deposit(place, chunk);
    move_bytes(to, job.input + part.begin * job.width, before * job.width);
    move_bytes(to + (before + own.size) * job.width, job.input + (own.begin + own.size) * job.width,
               after * job.width);
  };
  if (everybody_combines) {
    stages.combine = [&](Chunk chunk) {
      reduce_in_order(deposits(chunk, 0, job.input), job.output, job.count, job.reduction);
    };
    return window_->run(stages);
  }
  stages.combine = [&](Chunk chunk) {
    if (place < job.slices) combine_slice(job, chunk);
  };
  stages.take = [&](Chunk chunk) {
    for (int member = 0; member < job.slices; ++member) {
      const Part taken = slice(chunk, member);
      if (member == place) continue;
      move_bytes(job.output + taken.begin * job.width, window_->result(member, chunk),
                 taken.size * job.width);
    }
  };
  window_->run(stages);
}

void HostCollectives::combine_slice(const Job& job, Chunk chunk) {
  const int place = topology_.own_place();
  const Part part = job.part(chunk);
  const Part own = MpiGroup::slice_of(part, place, job.slices);
  const std::size_t offset = (own.begin - part.begin) * job.width;
  const auto inputs = deposits(chunk, offset, job.input + own.begin * job.width);
  std::byte* output = job.output + own.begin * job.width;
  if (has_other_hosts()) {
    const ElementType partial = partial_of(job.reduction.input);
    scratch_.resize(std::max(scratch_.size(), own.size * width_of(partial)));
    reduce_in_order(inputs, scratch_.data(), own.size,
                    {job.reduction.input, partial, job.reduction.op});
    peers_->all_reduce(scratch_.data(), output, own.size,
                       {partial, job.reduction.output, job.reduction.op});
  } else {
    reduce_in_order(inputs, output, own.size, job.reduction);
  }
  move_bytes(window_->result(place, chunk), output, own.size * job.width);
}

// A deposit holds a part of the slice of every rank, one after the other.
void HostCollectives::reduce_scatter(Job job) {
  const int place = topology_.own_place();
  const auto world_size = static_cast<std::size_t>(topology_.world_size());
  job.step = std::max<std::size_t>(1, job.step / world_size);
  auto stages = stages_of(job.chunks());
  stages.deposit = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      move_bytes(window_->deposit(place, chunk) + rank * part.size * job.width,
                 job.input + (rank * job.count + part.begin) * job.width, part.size * job.width);
    }
  };
  if (!has_other_hosts()) {
    stages.combine = [&](Chunk chunk) { combine_for_owner(job, chunk); };
    return window_->run(stages);
  }
  stages.combine = [&](Chunk chunk) {
    if (peers_) combine_for_hosts(job, chunk);
  };
  stages.take = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    const int couriers = topology_.courier_count();
    const auto index = static_cast<std::size_t>(place / couriers);
    move_bytes(job.output + part.begin * job.width,
               window_->result(place % couriers, chunk) + index * part.size * job.width,
               part.size * job.width);
  };
  window_->run(stages);
}

void HostCollectives::combine_for_owner(const Job& job, Chunk chunk) {
  const Part part = job.part(chunk);
  const auto rank = static_cast<std::size_t>(exchange_.rank());
  const auto inputs = deposits(chunk, rank * part.size * job.width, nullptr);
  reduce_in_order(inputs, job.output + part.begin * job.width, part.size, job.reduction);
}

// The sums over this host for the ranks of each host that this courier serves, a block per host.
void HostCollectives::combine_for_hosts(const Job& job, Chunk chunk) {
  const std::size_t size = job.part(chunk).size;
  const ElementType partial = partial_of(job.reduction.input);
  const std::size_t sum_bytes = size * width_of(partial);
  scratch_.resize(
      std::max(scratch_.size(), sum_bytes * static_cast<std::size_t>(topology_.world_size())));
  std::vector<MpiGroup::Bytes> blocks;
  std::byte* next = scratch_.data();
  for (int host = 0; host < topology_.host_count(); ++host) {
    const auto served = served_on(host);
    blocks.push_back({next, served.size() * sum_bytes});
    for (const int rank : served) {
      const auto offset = static_cast<std::size_t>(rank) * size * job.width;
      reduce_in_order(deposits(chunk, offset, nullptr), next, size,
                      {job.reduction.input, partial, job.reduction.op});
      next += sum_bytes;
    }
  }
  peers_->reduce_scatter([&](int host) { return blocks[static_cast<std::size_t>(host)]; },
                         window_->result(topology_.own_place(), chunk),
                         served_on(topology_.own_host()).size() * size,
                         {partial, job.reduction.output, job.reduction.op});
}

std::vector<int> HostCollectives::served_on(int host) const {
  std::vector<int> served;
  for (const int rank : topology_.ranks_of(host)) {
    if (courier_of(rank) == topology_.own_place()) served.push_back(rank);
  }
  return served;
}

// Where other hosts send something, the result of a courier holds a part for every rank.
void HostCollectives::all_gather(Job job) {
  const auto bytes = job.count * job.width;
  std::byte* own = job.output + static_cast<std::size_t>(exchange_.rank()) * bytes;
  if (own != job.input && bytes > 0) std::memmove(own, job.input, bytes);
  if (has_other_hosts()) {
    const auto world_size = static_cast<std::size_t>(topology_.world_size());
    job.step = std::max<std::size_t>(1, job.step / world_size);
  }
  auto stages = stages_of(job.chunks());
  stages.deposit = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    move_bytes(window_->deposit(topology_.own_place(), chunk), own + part.begin * job.width,
               part.size * job.width);
  };
  stages.combine = [&](Chunk chunk) {
    gather_from_neighbours(job, chunk);
    if (peers_) gather_from_hosts(job, chunk);
  };
  if (!has_other_hosts()) return window_->run(stages);
  stages.take = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    const std::size_t part_bytes = part.size * job.width;
    for (int rank = 0; rank < topology_.world_size(); ++rank) {
      if (topology_.host_of(rank) == topology_.own_host()) continue;
      const auto at = static_cast<std::size_t>(rank);
      move_bytes(job.output + at * bytes + part.begin * job.width,
                 window_->result(courier_of(rank), chunk) + at * part_bytes, part_bytes);
    }
  };
  window_->run(stages);
}

void HostCollectives::gather_from_neighbours(const Job& job, Chunk chunk) {
  const Part part = job.part(chunk);
  const auto& ranks = topology_.neighbours();
  for (int member = 0; member < window_->members(); ++member) {
    if (member == topology_.own_place()) continue;
    const auto rank = static_cast<std::size_t>(ranks[static_cast<std::size_t>(member)]);
    move_bytes(job.output + (rank * job.count + part.begin) * job.width,
               window_->deposit(member, chunk), part.size * job.width);
  }
}

void HostCollectives::gather_from_hosts(const Job& job, Chunk chunk) {
  const std::size_t bytes = job.part(chunk).size * job.width;
  std::byte* result = window_->result(topology_.own_place(), chunk);
  std::vector<MpiGroup::Message> sends;
  std::vector<MpiGroup::Message> receives;
  for (int host = 0; host < topology_.host_count(); ++host) {
    if (host == topology_.own_host()) continue;
    for (const int rank : served_on(topology_.own_host())) {
      sends.push_back({host, window_->deposit(topology_.place_of(rank), chunk), bytes});
    }
    for (const int rank : served_on(host)) {
      receives.push_back({host, result + static_cast<std::size_t>(rank) * bytes, bytes});
    }
  }
  peers_->exchange(sends, receives);
}

void HostCollectives::broadcast(Job job) {
  const bool is_root = exchange_.rank() == job.root;
  const bool has_root = topology_.host_of(job.root) == topology_.own_host();
  auto stages = stages_of(job.chunks());
  stages.deposit = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    if (!is_root) return;
    move_bytes(window_->deposit(topology_.own_place(), chunk), job.input + part.begin * job.width,
               part.size * job.width);
  };
  stages.combine = [&](Chunk chunk) {
    const Part part = job.part(chunk);
    if (has_root && !is_root) {
      move_bytes(job.output + part.begin * job.width,
                 window_->deposit(topology_.place_of(job.root), chunk), part.size * job.width);
    }
    if (peers_ && topology_.own_place() < job.slices) broadcast_to_hosts(job, chunk);
  };
  if (!has_other_hosts()) return window_->run(stages);
  stages.take = [&](Chunk chunk) {
    if (has_root) return;
    for (int member = 0; member < job.slices; ++member) {
      const Part slice = MpiGroup::slice_of(job.part(chunk), member, job.slices);
      move_bytes(job.output + slice.begin * job.width, window_->result(member, chunk),
                 slice.size * job.width);
    }
  };
  window_->run(stages);
}

void HostCollectives::broadcast_to_hosts(const Job& job, Chunk chunk) {
  const int root_host = topology_.host_of(job.root);
  const Part part = job.part(chunk);
  const Part slice = MpiGroup::slice_of(part, topology_.own_place(), job.slices);
  std::byte* data = window_->result(topology_.own_place(), chunk);
  if (root_host == topology_.own_host()) {
    data = window_->deposit(topology_.place_of(job.root), chunk) +
           (slice.begin - part.begin) * job.width;
  }
  peers_->broadcast(data, slice.size * job.width, root_host);
}

void HostCollectives::barrier() {
  auto stages = stages_of(1);
  stages.deposit = [](Chunk) {};
  stages.combine = [&](Chunk) {
    if (peers_ && topology_.own_place() == 0) peers_->barrier();
  };
  if (has_other_hosts()) stages.take = [](Chunk) {};
  window_->run(stages);
}

}  // namespace tupelo

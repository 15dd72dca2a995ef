// Collectives through the memory that ranks of a host share. Internal to distributed/.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "distributed/collective.h"
#include "distributed/mpi_group.h"
#include "distributed/shared_window.h"
#include "distributed/topology.h"

namespace tupelo {

// On one host: each rank deposits its part of a chunk, combines one slice of what all have
// deposited, in rank order, and takes the other slices. The bits are those of MpiCollectives.
//
// On several hosts: the couriers of a host combine a slice each, in rank order; each courier then
// reduces its slice with its peers, the couriers of the same place on other hosts, in the order of
// hosts; and all ranks take the slices from their couriers. Sums over a host are kept unrounded
// until then. The bits are a function of the world and of which ranks share a host.
class HostCollectives : public CollectiveEngine {
 public:
  // `exchange` must outlive it.
  HostCollectives(MpiExchange& exchange, Topology topology, std::unique_ptr<SharedWindow> window);

  // What the window's chunks should hold.
  static std::size_t chunk_bytes(const Topology& topology);

  void run(const Collective& collective) override;

 private:
  using Chunk = SharedWindow::Chunk;
  using Part = MpiGroup::Part;

  // One element type, any of the operations, cut into chunks of `step` elements.
  struct Job {
    Reduction reduction;
    std::size_t width = 0;
    std::size_t count = 0;
    std::size_t step = 0;
    int slices = 1;  // that a chunk is cut into, one for each of the first members
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    int root = 0;

    Part part(Chunk chunk) const;
    std::size_t chunks() const { return (count + step - 1) / step; }
  };

  SharedWindow::Stages stages_of(std::size_t chunks) const;
  Job job_of(const Collective& collective) const;

  void all_reduce(Job job);
  void combine_slice(const Job& job, Chunk chunk);
  void reduce_scatter(Job job);
  void combine_for_owner(const Job& job, Chunk chunk);
  void combine_for_hosts(const Job& job, Chunk chunk);
  void all_gather(Job job);
  void gather_from_neighbours(const Job& job, Chunk chunk);
  void gather_from_hosts(const Job& job, Chunk chunk);
  void broadcast(Job job);
  void broadcast_to_hosts(const Job& job, Chunk chunk);
  void barrier();

  bool has_other_hosts() const { return topology_.host_count() > 1; }
  // Which of the neighbours exchanges with other hosts for a rank, and those it does so for.
  int courier_of(int rank) const { return topology_.place_of(rank) % topology_.courier_count(); }
  std::vector<int> served_on(int host) const;
  // Slice `index` of the parts that the members have deposited, by place. In place of the own one,
  // `own`, if given.
  std::vector<const void*> deposits(Chunk chunk, std::size_t offset, const void* own) const;

  MpiExchange& exchange_;
  Topology topology_;
  std::unique_ptr<SharedWindow> window_;
  std::optional<MpiGroup> peers_;  // of a courier, where there are several hosts
  std::vector<std::byte> scratch_;
};

}  // namespace tupelo

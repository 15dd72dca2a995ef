// Collectives made of messages. Internal to distributed/.
#pragma once

#include <cstddef>
#include <vector>

#include "distributed/collective.h"
#include "distributed/mpi_exchange.h"

namespace tupelo {

// Large tensors go chunk by chunk: in all_reduce each rank reduces one slice of a chunk, in rank
// order, and hands the result to the others, which moves 2 (world_size - 1) / world_size times the
// data and gives every rank the same bits. Small ones are sent to everybody and reduced everywhere,
// one message time.
class MpiCollectives {
 public:
  // `exchange` must outlive it.
  explicit MpiCollectives(MpiExchange& exchange) : exchange_(exchange) {}

  // Blocks until the result is in place. After it threw, neither the collective's tensors nor this
  // object may be freed (see MpiExchange).
  void run(const Collective& collective, std::uint64_t sequence);

 private:
  struct Part {  // of a tensor, in elements
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  void all_reduce(const Collective& collective);
  void all_reduce_chunk(const Collective& collective, Part chunk);
  void all_reduce_small(const Collective& collective);
  void reduce_scatter(const Collective& collective);
  void all_gather(const Collective& collective);
  void broadcast(const Collective& collective);
  void broadcast_chunk(const Collective& collective, Part chunk);
  void barrier();

  Part slice_of(Part chunk, int index, int count) const;
  // Receives `size` elements from every other rank, sending each what `mine_for` names, and reduces
  // them together with `mine` in rank order.
  template <typename MineFor>
  void exchange_and_reduce(const Collective& collective, MineFor mine_for, std::size_t slice_size,
                           const std::byte* mine, std::byte* result);

  MpiExchange& exchange_;
  std::vector<std::byte> scratch_;
};

}  // namespace tupelo

// Collectives made of messages between ranks. Internal to distributed/.
#pragma once

#include <vector>

#include "distributed/collective.h"
#include "distributed/mpi_group.h"

namespace tupelo {

// Large tensors go chunk by chunk. See MpiGroup for what becomes of a chunk.
class MpiCollectives : public CollectiveEngine {
 public:
  // Between `members` in their order; empty: all ranks. `exchange` must outlive it.
  explicit MpiCollectives(MpiExchange& exchange, std::vector<int> members = {});

  void run(const Collective& collective) override;

 private:
  void all_reduce(const Collective& collective);
  void reduce_scatter(const Collective& collective);
  void all_gather(const Collective& collective);
  void broadcast(const Collective& collective);

  MpiExchange& exchange_;
  MpiGroup group_;
};

}  // namespace tupelo

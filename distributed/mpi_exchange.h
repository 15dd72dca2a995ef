// Messages between the ranks of one MPI communicator, with a deadline. Internal to distributed/.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "distributed/patience.h"
#include "distributed/runtime.h"

namespace tupelo {

struct MpiMessage {
  int peer = 0;
  void* data = nullptr;   // only read when it is sent
  std::size_t bytes = 0;  // at most INT_MAX; the receiver must expect exactly as many
};

// Owns a duplicate of MPI_COMM_WORLD. After a failure the duplicate is left as it is, since
// messages may still be in flight: memory that was given to exchange() must then never be freed.
class MpiExchange {
 public:
  // `patience` must outlive it.
  MpiExchange(const Runtime& runtime, Patience& patience);
  ~MpiExchange();
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }

  // For the exchanges of the collective that `patience` has begun: ranks whose `kind` (0 to 7)
  // differs do not hear each other.
  void begin(int kind);
  // Returns when all of `sends` may be overwritten and all of `receives` have arrived. Between two
  // ranks messages arrive in the order in which they were sent. Throws CommunicationTimeout, naming
  // the ranks that did not answer, and CommunicationError.
  void exchange(const std::vector<MpiMessage>& sends, const std::vector<MpiMessage>& receives,
                Patience::Wait wait = Patience::Wait::kForTheCulprit);

 private:
  void duplicate_world(const Runtime& runtime);
  void post(const MpiMessage& message, bool is_send);
  void complete_some();
  void check_arrival(std::size_t request, const MPI_Status& status, int result) const;
  void poll_until_complete(Patience::Wait wait);
  std::string unanswered() const;

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int world_size_ = 1;
  Patience& patience_;
  bool failed_ = false;
  int tag_ = 0;

  // The requests of the running exchange, side by side with their messages; receives first.
  std::vector<MPI_Request> requests_;
  std::vector<MpiMessage> messages_;
  std::size_t receive_count_ = 0;
  std::size_t open_count_ = 0;
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace tupelo

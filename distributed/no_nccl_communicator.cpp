#include <stdexcept>

#include "distributed/backends.h"

namespace tupelo {

std::unique_ptr<Communicator> make_nccl_communicator(const Runtime&, int, CommunicatorOptions) {
  throw std::invalid_argument(
      "this build has no nccl backend: use local or mpi, or build the cuda preset");
}

bool nccl_is_available() { return false; }

std::string nccl_version() { return {}; }

}  // namespace tupelo

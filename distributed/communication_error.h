// What a collective throws.
#pragma once

#include <stdexcept>

namespace tupelo {

// A collective that failed or did not finish in time. The communicator is unusable afterwards:
// every later call throws this again, and the run has to end and start anew from a checkpoint.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Deadline exceeded: some rank did not join the collective. Names backend, operation, sequence
// number, the rank that waited and, where the backend can tell, the ranks it waited for.
class CommunicationTimeout : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

}  // namespace tupelo

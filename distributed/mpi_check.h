// Failed MPI calls as exceptions. Internal to distributed/.
#pragma once

#include <mpi.h>

#include <string>

#include "distributed/communication_error.h"

namespace tupelo {

inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

// `result` is what the MPI function `call` returned, under MPI_ERRORS_RETURN.
inline void check_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  throw CommunicationError(std::string(call) + " failed: " + mpi_error_text(result));
}

}  // namespace tupelo

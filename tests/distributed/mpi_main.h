// main() of test programs that run under mpirun.
#pragma once

#include "distributed/mpi_runtime.h"

namespace tupelo::testing {

// The runtime that main() made.
const MpiRuntime& mpi_runtime();

}  // namespace tupelo::testing

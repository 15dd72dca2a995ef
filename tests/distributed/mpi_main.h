// main() of test programs that run under mpirun.
#pragma once

#include "distributed/runtime.h"

namespace tupelo::testing {

// The runtime that main() made.
const Runtime& mpi_runtime();

}  // namespace tupelo::testing

// Which code this process runs: its own file, and the libraries that the loader found.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// SHA-256 (hex) of the running program's file. Throws std::system_error.
std::string program_digest();

struct LoadedLibrary {
  std::string name;   // "libtorch_cpu.so"
  std::string build;  // the linker's build id (hex); where there is none, the size of the file
};

// Those whose results or protocols enter a run, by name: LibTorch, OpenMP, BLAS, MPI, HDF5, NCCL,
// CUDA.
std::vector<LoadedLibrary> loaded_libraries();

}  // namespace tupelo

#include "tests/distributed/mpi_main.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace tupelo::testing {
namespace {

const Runtime* current_runtime = nullptr;

// What failed, said by the rank that it failed on; mpirun mixes the output of all ranks.
class FailureReport : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cout << "rank " + std::to_string(mpi_runtime().rank()) + ": " +
                     (result.file_name() == nullptr ? "" : result.file_name()) + ":" +
                     std::to_string(result.line_number()) + ": " + result.summary() + "\n"
              << std::flush;
  }
};

int run(int argc, char** argv) {
  const Runtime runtime;
  current_runtime = &runtime;
  // World sizes are parameters of the tests, so the world comes first.
  ::testing::InitGoogleTest(&argc, argv);
  if (runtime.rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailureReport);
  }
  const bool failed = RUN_ALL_TESTS() != 0;
  // A rank that failed half-way has left the others waiting: end them rather than join them.
  if (failed) runtime.abort(1);
  return 0;
}

}  // namespace

const Runtime& mpi_runtime() { return *current_runtime; }

}  // namespace tupelo::testing

int main(int argc, char** argv) { return tupelo::testing::run(argc, argv); }

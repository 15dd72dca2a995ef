#include "launcher/determinism.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tupelo::determinism_test {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST(Determinism, IsAskedOfLibTorchCublasAndNccl) {
  ASSERT_FALSE(at::globalContext().deterministicAlgorithms());
  ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
  ::unsetenv("NCCL_NVLS_ENABLE");
  ::setenv("NCCL_ALGO", "Tree", 1);
  require_determinism();
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
  EXPECT_EQ(variable("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  EXPECT_EQ(variable("NCCL_NVLS_ENABLE"), "0");
  EXPECT_EQ(variable("NCCL_ALGO"), "Tree");  // as the user said
}

}  // namespace
}  // namespace tupelo::determinism_test

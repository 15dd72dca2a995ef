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

constexpr const char* kVariables[] = {"CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO", "NCCL_NVLS_ENABLE"};

TEST(Determinism, IsAskedOfLibTorchCublasAndNccl) {
  ASSERT_FALSE(at::globalContext().deterministicAlgorithms());
  for (const char* name : kVariables) ::unsetenv(name);
  require_determinism();
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
  EXPECT_EQ(variable("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  EXPECT_EQ(variable("NCCL_ALGO"), "Ring");
  EXPECT_EQ(variable("NCCL_NVLS_ENABLE"), "0");
}

TEST(Determinism, WhatTheUserSaidStays) {
  for (const char* name : kVariables) ::setenv(name, "mine", 1);
  require_determinism();
  for (const char* name : kVariables) EXPECT_EQ(variable(name), "mine") << name;
  for (const char* name : kVariables) ::unsetenv(name);
}

}  // namespace
}  // namespace tupelo::determinism_test

#include "distributed/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>

namespace tupelo {
namespace {

constexpr std::size_t kBytes = 1 << 20;

template <typename Body>
int exit_code_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(SharedMemory, IsZerosAndSeenByAnotherProcess) {
  const SharedMemory memory(kBytes);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + kBytes,
                          [](std::byte each) { return each == std::byte{0}; }));
  memory.data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(exit_code_of_child([&] {
              const SharedMemory other(memory.address());
              other.data()[0] = std::byte{5};
              return other.data()[kBytes - 1] == std::byte{7} ? 0 : 1;
            }),
            0);
  EXPECT_EQ(memory.data()[0], std::byte{5});
}

TEST(SharedMemory, OutlivesTheOneWhoMadeIt) {
  auto memory = std::make_unique<SharedMemory>(kBytes);
  const SharedMemory other(memory->address());
  memory->data()[3] = std::byte{9};
  memory.reset();
  EXPECT_EQ(other.data()[3], std::byte{9});
}

TEST(SharedMemory, HasNoNameInAnyFileSystem) {
  const SharedMemory memory(kBytes);
  struct stat status {};
  ASSERT_EQ(fstat(static_cast<int>(memory.address().descriptor), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
}

TEST(SharedMemory, CannotShrinkUnderThoseWhoUseIt) {
  const SharedMemory memory(kBytes);
  EXPECT_EQ(ftruncate(static_cast<int>(memory.address().descriptor), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemory, NothingElseIsTakenForIt) {
  const SharedMemory memory(kBytes);
  auto wrong_token = memory.address();
  ++wrong_token.token[1];
  EXPECT_THROW(SharedMemory{wrong_token}, std::system_error);
  auto wrong_file = memory.address();
  wrong_file.descriptor = STDIN_FILENO;
  EXPECT_THROW(SharedMemory{wrong_file}, std::system_error);
  auto wrong_size = memory.address();
  wrong_size.bytes += 4096;
  EXPECT_THROW(SharedMemory{wrong_size}, std::system_error);
}

TEST(SharedMemory, IsNotFoundOnceItsAddressIsClosed) {
  SharedMemory memory(kBytes);
  const auto address = memory.address();
  memory.close_address();
  EXPECT_THROW(SharedMemory{address}, std::system_error);
  memory.data()[0] = std::byte{1};
}

// The system's refusal comes before the memory is used, not as SIGBUS while it is.
TEST(SharedMemory, WhatTheSystemDoesNotGiveIsSaid) {
  EXPECT_EQ(exit_code_of_child([] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{kBytes / 2, kBytes / 2};
              setrlimit(RLIMIT_FSIZE, &limit);
              try {
                const SharedMemory memory(kBytes);
              } catch (const std::system_error& error) {
                const std::string text = error.what();
                return text.find("cannot allocate 1024 KiB of shared memory") == 0 ? 0 : 2;
              }
              return 1;
            }),
            0);
}

TEST(SharedMemory, IsGivenBack) {
  const auto mapped = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    return text.find("tupelo-") != std::string::npos;
  };
  {
    const SharedMemory memory(kBytes);
    EXPECT_TRUE(mapped());
  }
  EXPECT_FALSE(mapped());
}

}  // namespace
}  // namespace tupelo

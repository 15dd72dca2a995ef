#include "launcher/contained.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <vector>

namespace tupelo {
namespace {

// Whether `holds` is true inside; told by how it ends, since nothing else comes out.
bool inside(const std::function<bool()>& holds) {
  return what_ends([&] {
           if (holds()) __builtin_trap();
         }) == "signal " + std::to_string(SIGILL);
}

TEST(Contained, TellsWhatEndedTheWork) {
  EXPECT_EQ(what_ends([] {}), "");
  EXPECT_EQ(what_ends([] { throw std::runtime_error("for the caller"); }), "");
  EXPECT_EQ(what_ends([] { __builtin_trap(); }), "signal " + std::to_string(SIGILL));
  EXPECT_NE(what_ends([] { std::abort(); }), "");
  EXPECT_EQ(what_ends([] {
              volatile char* const nowhere = static_cast<char*>(
                  ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
              *nowhere = 1;
            }),
            "signal " + std::to_string(SIGSEGV));
}

TEST(Contained, ChangesNothingOutside) {
  int value = 1;
  what_ends([&] { value = 2; });
  EXPECT_EQ(value, 1);
}

TEST(Contained, HasLittleMemory) {
  const auto can_map = [](std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  };
  EXPECT_TRUE(inside([&] { return can_map(std::size_t{512} << 20); }));
  EXPECT_FALSE(inside([&] { return can_map(std::size_t{1100} << 20); }));
}

TEST(Contained, ReadsFilesButChangesNone) {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("contained-" + std::to_string(::getpid())))
          .string();
  std::FILE* file = std::fopen(name.c_str(), "w");
  std::fputs("text", file);
  std::fclose(file);
  EXPECT_TRUE(inside([&] {
    char byte = 0;
    return ::read(::open(name.c_str(), O_RDONLY), &byte, 1) == 1 && byte == 't';
  }));
  EXPECT_FALSE(inside([&] { return ::unlink(name.c_str()) == 0; }));
  EXPECT_FALSE(inside([&] { return ::rename(name.c_str(), (name + "-2").c_str()) == 0; }));
  ::signal(SIGXFSZ, SIG_IGN);
  EXPECT_FALSE(
      inside([&] { return ::write(::open(name.c_str(), O_WRONLY | O_APPEND), "x", 1) == 1; }));
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(std::filesystem::file_size(name), 4u);
  std::filesystem::remove(name);
}

TEST(Contained, HasNoNetworkAndStartsNothing) {
  EXPECT_FALSE(inside([] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }));
  EXPECT_FALSE(inside([] {
    ::execl("/bin/true", "true", nullptr);
    return errno != EPERM;
  }));
}

}  // namespace
}  // namespace tupelo

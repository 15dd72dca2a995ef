// The disk refuses the n-th call of a save, for every n.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "checkpoints/checkpoint_store.h"
#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace {

struct Refusal {
  int calls_left = -1;  // refuse the call after so many; negative: none
  int error = 0;
  bool done = false;
};
Refusal refusal;

bool refused() {
  if (refusal.calls_left < 0 || refusal.calls_left-- > 0) return false;
  refusal.done = true;
  errno = refusal.error;
  return true;
}

}  // namespace

// These stand in for the C library's functions of the same names throughout this program.
extern "C" {
ssize_t write(int file, const void* bytes, size_t count) {
  return refused() ? -1 : ::syscall(SYS_write, file, bytes, count);
}
int fsync(int file) { return refused() ? -1 : static_cast<int>(::syscall(SYS_fsync, file)); }
int rename(const char* from, const char* to) noexcept {
  return refused() ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return refused() ? -1 : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = va_arg(arguments, unsigned);
  va_end(arguments);
  if ((flags & (O_CREAT | O_DIRECTORY)) != 0 && refused()) return -1;
  return static_cast<int>(::syscall(SYS_open, path, flags, mode));
}
// The file is closed whatever the answer, as close(2) has it.
int close(int file) {
  const int result = static_cast<int>(::syscall(SYS_close, file));
  return refused() ? -1 : result;
}
}

namespace tupelo {
namespace {

namespace fs = std::filesystem;

class RefusedSystemCalls : public testing::TestWithParam<int> {
 protected:
  // Saves with the n-th call refused; the error met, or 0.
  int save_refusing(CheckpointStore& store, const Checkpoint& checkpoint, int n) {
    refusal = {n, GetParam(), false};
    int met = 0;
    try {
      store.save(checkpoint);
    } catch (const std::system_error& error) {
      met = error.code().value();
    }
    refused_ = refusal.done;
    refusal = {};
    return met;
  }

  bool refused_ = false;
};

TEST_P(RefusedSystemCalls, LeaveNothingOfANewCheckpoint) {
  int failures = 0;
  for (int n = 0; n == 0 || refused_; ++n) {
    const TemporaryFolder folder;
    CheckpointStore store(folder.path(), {2});
    store.save(sample_checkpoint(1));
    const int met = save_refusing(store, sample_checkpoint(2), n);
    if (met != 0) {
      EXPECT_EQ(met, GetParam()) << n;
      EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-000000001"}) << n;
      ++failures;
    } else {
      EXPECT_TRUE(same_content(store.load(2), sample_checkpoint(2))) << n;
    }
    EXPECT_TRUE(same_content(store.load(1), sample_checkpoint(1))) << n;
    store.save(sample_checkpoint(2));
    EXPECT_TRUE(same_content(store.load(2), sample_checkpoint(2))) << n;
  }
  // At least a folder, four files of header and data, their fsyncs and closes, a rename, two
  // folders.
  EXPECT_GT(failures, 20);
}

TEST_P(RefusedSystemCalls, KeepTheOlderCheckpointOfTheSameStep) {
  int failures = 0;
  for (int n = 0; n == 0 || refused_; ++n) {
    const TemporaryFolder folder;
    CheckpointStore store(folder.path(), {2});
    store.save(sample_checkpoint(1));
    const int met = save_refusing(store, sample_checkpoint(1, 12, 5), n);
    EXPECT_TRUE(same_content(CheckpointStore(folder.path(), {2}).load(1),
                             sample_checkpoint(1, 12, met != 0 ? 0 : 5)))
        << n;
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-000000001"}) << n;
    failures += met != 0;
  }
  EXPECT_GT(failures, 20);
}

TEST_P(RefusedSystemCalls, DoNotFailASaveThatOnlyPruningMet) {
  int saved = 0;
  for (int n = 0; n == 0 || refused_; ++n) {
    const TemporaryFolder folder;
    CheckpointStore store(folder.path(), {1});
    store.save(sample_checkpoint(1));
    const bool met = save_refusing(store, sample_checkpoint(2), n) != 0;
    EXPECT_TRUE(same_content(store.load(met ? 1 : 2), sample_checkpoint(met ? 1 : 2))) << n;
    saved += !met && refused_;
    store.save(sample_checkpoint(3));
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-000000003"}) << n;
  }
  EXPECT_GE(saved, 1);
}

INSTANTIATE_TEST_SUITE_P(Errors, RefusedSystemCalls, testing::Values(ENOSPC, EIO, EDQUOT, EROFS),
                         [](const auto& param) { return strerrorname_np(param.param); });

}  // namespace
}  // namespace tupelo

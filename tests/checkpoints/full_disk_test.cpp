// A disk that is really full, and files that may really not grow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <system_error>

#include "checkpoints/checkpoint_store.h"
#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

int save_error(CheckpointStore& store, const Checkpoint& checkpoint) {
  try {
    store.save(checkpoint);
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

// Files of this process may not grow beyond a size.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST(FullDisk, FilesThatMayNotGrowLeaveNothing) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), {2});
  store.save(sample_checkpoint(1));
  int refused = 0;
  for (rlim_t bytes = 0; bytes < 1200; bytes += 7) {
    int met;
    {
      const FileSizeLimit limit(bytes);
      met = save_error(store, sample_checkpoint(2));
    }
    if (met == 0) {
      EXPECT_GT(bytes, 100u);
      EXPECT_TRUE(same_content(store.load(2), sample_checkpoint(2)));
      fs::remove_all(store.folder_of(2));
      continue;
    }
    ++refused;
    EXPECT_EQ(met, EFBIG) << bytes;
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-000000001"}) << bytes;
    EXPECT_TRUE(same_content(store.load(1), sample_checkpoint(1))) << bytes;
  }
  EXPECT_GT(refused, 50);
}

// Runs `body` in a child that has its own mounts and returns its exit status. The child may mount
// when we are root or the system lets users have namespaces of their own.
int run_apart(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (apart) ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

constexpr std::int64_t kElements = 20000;  // two files of 80 kB
constexpr int kPages = 256;

// Takes so many pages of the disk until it is destroyed.
class Ballast {
 public:
  Ballast(const fs::path& file, int pages) : file_(file) {
    overwrite(file, std::string(static_cast<std::size_t>(pages) * 4096, 'x'));
  }
  ~Ballast() { fs::remove(file_); }

 private:
  fs::path file_;
};

// 0 when every save on the full disk behaved, else a number that tells what did not.
int save_on_ever_fuller_disk(const fs::path& disk) {
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1M") != 0) return 100 + errno % 100;
  CheckpointStore store(disk / "run", {2});
  store.save(sample_checkpoint(1, kElements));
  int refused = 0;
  for (int free_pages = 0; free_pages < 60; ++free_pages) {
    int met;
    {
      const Ballast ballast(disk / "ballast", kPages - 46 - free_pages);
      met = save_error(store, sample_checkpoint(2, kElements));
      if (names_in(disk / "run").size() != (met == 0 ? 2u : 1u)) return 2;
      if (!same_content(store.load(1), sample_checkpoint(1, kElements))) return 3;
      if (met == 0 && !same_content(store.load(2), sample_checkpoint(2, kElements))) return 4;
    }
    if (met != 0 && met != ENOSPC) return 5;
    refused += met != 0;
    fs::remove_all(store.folder_of(2));
  }
  // The first free pages are too few for a checkpoint of some 44, the last are enough.
  return refused >= 30 && refused < 60 ? 0 : 6;
}

TEST(FullDisk, ASmallFileSystemThatIsFullLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_apart([&] { return save_on_ever_fuller_disk(folder.path()); }), 0);
}

}  // namespace
}  // namespace tupelo

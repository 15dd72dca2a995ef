#include "checkpoints/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <thread>

namespace tupelo {
namespace {

FolderLock::State acquire(int descriptor, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return FolderLock::State::kUnsupported;
    if (std::chrono::steady_clock::now() >= deadline) return FolderLock::State::kBusy;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return FolderLock::State::kHeld;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds patience)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_.get() < 0) {
    throw_system_error("open", folder);
  }
  state_ = acquire(descriptor_.get(), patience);
}

}  // namespace tupelo

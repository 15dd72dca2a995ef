#include "data/cleaning/external_sorter.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tupelo {

ScratchFile::ScratchFile(const std::filesystem::path& file) : path_(file) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0) refuse("create");
}

ScratchFile::~ScratchFile() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void ScratchFile::refuse(const char* verb) const {
  const int code = errno;
  throw std::system_error(code, std::generic_category(),
                          std::string("cannot ") + verb + " " + path_.string());
}

void ScratchFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    bytes_ += static_cast<std::uint64_t>(written);
  }
}

std::size_t ScratchFile::read(std::uint64_t from, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace tupelo

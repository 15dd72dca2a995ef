#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "data/errors.h"

namespace tupelo {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file) {
  const int code = errno;
  if (code == ENOENT) throw CorpusError(file.string() + ": the file is missing");
  throw std::system_error(code, std::generic_category(), "cannot read " + file.string());
}

std::span<const std::byte> map(int descriptor, const std::filesystem::path& file) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) refuse(file);
  if (!S_ISREG(status.st_mode)) throw CorpusError(file.string() + ": is not a regular file");
  if (status.st_size == 0) throw CorpusError(file.string() + ": the file is empty");
  const std::size_t bytes = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) refuse(file);
  return {static_cast<const std::byte*>(memory), bytes};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) refuse(file);
  try {
    bytes_ = map(descriptor, file);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

}  // namespace tupelo

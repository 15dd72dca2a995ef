#include "distributed/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <utility>

namespace tupelo {
namespace {

[[noreturn]] void throw_errno(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::array<std::uint64_t, 2> random_token() {
  std::random_device random;
  const auto word = [&] { return (std::uint64_t{random()} << 32) | random(); };
  return {word(), word()};
}

std::string name_of(const std::array<std::uint64_t, 2>& token) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "tupelo-%016llx%016llx",
                static_cast<unsigned long long>(token[0]),
                static_cast<unsigned long long>(token[1]));
  return text.data();
}

int create_file(const std::string& name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  constexpr unsigned kNeverExecutable = 8;  // MFD_NOEXEC_SEAL: asked for by some hosts, from 6.3 on
  const int file = memfd_create(name.c_str(), kFlags | kNeverExecutable);
  return file >= 0 || errno != EINVAL ? file : memfd_create(name.c_str(), kFlags);
}

// posix_fallocate() would hide the errors of a kernel without support behind a loop of writes.
int allocate(int file, std::size_t bytes) {
  int result = 0;
  do {
    result = fallocate(file, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result;
}

std::string link_target(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t size = readlink(path.c_str(), text.data(), text.size() - 1);
  if (size < 0) throw_errno(errno, "cannot see " + path + ", memory that another rank shares");
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) {
  const std::string what = std::to_string(bytes >> 10) + " KiB of shared memory";
  address_ = {getpid(), -1, bytes, random_token()};
  Descriptor file(create_file(name_of(address_.token)));
  if (file.get() < 0) throw_errno(errno, "cannot create " + what);
  if (allocate(file.get(), bytes) != 0) throw_errno(errno, "cannot allocate " + what);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_errno(errno, "cannot seal " + what);
  }
  map(file.get());
  address_.descriptor = file.release();
  owns_descriptor_ = true;
}

SharedMemory::SharedMemory(const Address& address) : address_(address) {
  const std::string path =
      "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
  // In another process namespace the number may be anybody's: nothing else is opened.
  if (link_target(path) != "/memfd:" + name_of(address.token) + " (deleted)") {
    throw_errno(ENOENT, path + " is not the memory that another rank shares");
  }
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) throw_errno(errno, "cannot open " + path + ", memory of another rank");
  map(file.get());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : address_(other.address_),
      data_(std::exchange(other.data_, nullptr)),
      owns_descriptor_(std::exchange(other.owns_descriptor_, false)) {}

SharedMemory::~SharedMemory() {
  close_address();
  if (data_ != nullptr) munmap(data_, address_.bytes);
}

void SharedMemory::close_address() {
  if (std::exchange(owns_descriptor_, false)) close(static_cast<int>(address_.descriptor));
}

void SharedMemory::map(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_size != static_cast<off_t>(address_.bytes)) {
    throw_errno(EINVAL, "shared memory is not of the size that was announced");
  }
  void* data = mmap(nullptr, address_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) throw_errno(errno, "cannot map shared memory");
  data_ = static_cast<std::byte*>(data);
}

}  // namespace tupelo

// Memory that processes of a host share. Internal to distributed/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tupelo {

// A memory file (memfd_create): it has no name in any file system, so that nothing is left behind
// whatever becomes of the processes, and does not count against the size of /dev/shm, which
// containers keep small. All its pages are there from the start and it cannot shrink (seals), so
// that touching it never raises SIGBUS.
//
// An MPI-3 window (MPI_Win_allocate_shared) would be a named file that survives kill -9, and is
// created and freed by calls that no deadline can end.
class SharedMemory {
 public:
  // Where another process finds it; plain bytes, to be sent.
  struct Address {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, 2> token{};  // random, so that no other file is taken for it
  };

  // Zeros, on the memory node of this thread. Throws std::system_error when the system has no such
  // memory to give.
  explicit SharedMemory(std::size_t bytes);
  // That of another process of this host, which must not have called close_address(). Throws
  // std::system_error where it cannot be seen (other containers, other users).
  explicit SharedMemory(const Address& address);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  const Address& address() const { return address_; }
  // Once all who need it have it. The memory itself lives as long as somebody maps it.
  void close_address();

  std::byte* data() const { return data_; }

 private:
  void map(int descriptor);

  Address address_;
  std::byte* data_ = nullptr;
  bool owns_descriptor_ = false;
};

}  // namespace tupelo

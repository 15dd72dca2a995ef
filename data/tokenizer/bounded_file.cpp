#include "data/tokenizer/bounded_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "data/errors.h"

namespace tupelo {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::filesystem::path& file)
      : value_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

}  // namespace

// Reads instead of asking for the size first: pipes and devices have none.
std::string read_bounded_file(const std::filesystem::path& file, std::size_t max_bytes,
                              const std::string& what) {
  const auto throw_errno = [&] {
    throw std::system_error(errno, std::generic_category(),
                            std::string("cannot read the ") + what + " " + file.string());
  };
  const FileDescriptor descriptor(file);
  if (descriptor.value() < 0) throw_errno();
  std::string bytes;
  std::size_t used = 0;
  while (true) {
    bytes.resize(used + (std::size_t{1} << 16));
    const ssize_t got = ::read(descriptor.value(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno();
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > max_bytes) {
      throw CorpusError(what + " " + file.string() + ": larger than " +
                        std::to_string(max_bytes >> 20) + " MiB, the most that is read");
    }
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace tupelo

// What the sources that know HDF5 share.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace tupelo::hdf5_library {

// Owns one HDF5 identifier.
class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t)) : id_(id), closer_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*closer_)(hid_t);
};

// While alive, HDF5 prints nothing and loads no plug-ins; then the process's own settings return.
class QuietLibrary {
 public:
  QuietLibrary();
  ~QuietLibrary();
  QuietLibrary(const QuietLibrary&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  unsigned plugins_ = 0;
  bool plugins_known_ = false;
};

// Opening anything but a regular file could block (a FIFO) or mislead, so HDF5 never sees it.
// Throws CorpusError, std::system_error.
std::uint64_t regular_file_bytes(const std::filesystem::path& path);

// Without locks. Throws CorpusError when it is no HDF5 file that this library reads,
// std::system_error when the system refuses.
Handle open_read_only(const std::filesystem::path& path);

// Whether the file itself holds an object of this type under the name.
bool is_hard_link_to(hid_t file, const std::string& name, H5O_type_t type);

}  // namespace tupelo::hdf5_library

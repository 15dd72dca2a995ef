// HDF5 files as the HDF5 library writes them, laid out in memory. What reads shards is
// data/hdf5_reader.h, without the library.
//
// HDF5 may be built without locks, so the class here is for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/element_type.h"

namespace tupelo {

// A new file, built in memory: readable by HDF5 1.10 and later, without time stamps, so that equal
// calls give equal bytes. The caller writes the bytes to disk, because HDF5 1.10 itself crashes
// after a disk refused one of its writes. Throws std::runtime_error when the library fails (in
// practice: no memory).
class Hdf5Image {
 public:
  Hdf5Image();
  ~Hdf5Image();
  Hdf5Image(const Hdf5Image&) = delete;

  // `elements` are `count` >= 1 numbers of `type`; `sha256` becomes an attribute of the dataset.
  void add_dataset(const std::string& name, ElementType type, const void* elements,
                   std::uint64_t count, const std::string& sha256);
  // The same without a digest, compressed by deflate in chunks of whole rows of about 1 MiB:
  // `rows` x `columns` numbers, or one dimension where `columns` is 0.
  void add_compressed(const std::string& name, ElementType type, const void* elements,
                      std::uint64_t rows, std::uint64_t columns);
  // Attributes of the file itself, stored in the order of the calls.
  void add_attribute(const std::string& name, std::uint64_t value);
  void add_attribute(const std::string& name, const std::string& value);

  // The file as it stands; valid until the next call.
  std::span<const std::byte> bytes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

// The little of HDF5 that shards use: contiguous one-dimensional integer datasets with attributes,
// laid out in memory, and later found by their place in the file.
//
// hdf5.cpp is the only source that knows the library. HDF5 may be built without locks, so the
// classes here are for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/errors.h"

namespace tupelo {

enum class ElementType { kUint8, kUint16, kUint32, kUint64, kInt8, kInt32 };
std::uint64_t element_bytes(ElementType type);

// Where the elements of a dataset lie in its file, little-endian and without gaps.
struct DatasetPlace {
  ElementType type = ElementType::kUint8;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // bytes from the start of the file; any alignment
  std::string sha256;        // the dataset's attribute of this name: hex digest of the elements
};

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

// Opens a file that may have been made by anyone. Only fixed names are looked up; anything but a
// plain contiguous dataset inside this very file is refused before memory is allocated for it: soft
// and external links, external and virtual storage, chunks and filters, other types and ranks,
// sizes beyond the file. No plug-in is loaded and no lock is taken. Throws CorpusError that names
// file and dataset.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& file);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;

  // The dataset `name`, whose type must be one of `types`.
  DatasetPlace dataset(const std::string& name, const std::vector<ElementType>& types) const;
  // Attributes of the file itself.
  bool has_attribute(const std::string& name) const;
  std::uint64_t integer_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

// Shards looked into without the HDF5 library, which is not safe against damaged or hostile files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/element_type.h"
#include "data/hdf5_objects.h"
#include "data/regular_file.h"

namespace tupelo {

// Where the elements of a dataset lie in its file, little-endian and without gaps.
struct DatasetPlace {
  ElementType type = ElementType::kUint8;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // bytes from the start of the file; any alignment
  std::string sha256;        // the dataset's attribute of this name: hex digest of the elements

  std::uint64_t bytes() const { return count * element_bytes(type); }
};

// What the root group of a file that may have been made by anyone says. It reads every file of
// Hdf5Image's without compressed datasets: superblock version 0, links in one symbol table, object
// headers version 1. Sound files that are laid out otherwise, such as those that other programs
// repacked, are refused like damaged ones. Anything but a plain contiguous dataset inside this very
// file is refused before memory is allocated for it: soft and external links, external and virtual
// storage, chunks and filters, other types and ranks, sizes beyond the file. Takes less than 8 MiB,
// whatever the file declares. Throws CorpusError that names file and dataset or attribute,
// std::system_error when the system refuses.
class Hdf5Reader {
 public:
  // `file` must outlive the reader.
  explicit Hdf5Reader(const RegularFile& file);
  explicit Hdf5Reader(RegularFile&&) = delete;

  // The dataset `name`, whose type must be one of `types`.
  DatasetPlace dataset(const std::string& name, const std::vector<ElementType>& types) const;
  // Attributes of the file itself.
  bool has_attribute(const std::string& name) const;
  std::uint64_t integer_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;

 private:
  void read_root(std::uint64_t header, std::uint64_t leaf_k);

  const RegularFile& file_;
  std::map<std::string, hdf5_objects::Link> links_;  // of the root group
  std::map<std::string, hdf5_objects::StoredAttribute> attributes_;
};

}  // namespace tupelo

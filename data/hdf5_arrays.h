// Arrays of whole numbers in HDF5 files that anyone may have made: where their elements lie. The
// library is asked about structure only; elements are for the caller to take from the file's bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/errors.h"

namespace tupelo {

struct NumberType {
  std::uint64_t bytes = 0;  // 1, 2, 4 or 8
  bool is_signed = false, big_endian = false;
};

enum class ArrayFilter { kDeflate, kShuffle, kFletcher32 };

struct StoredArray {
  NumberType type;
  std::uint64_t rows = 0;
  // Numbers of a row, 1 where there is one dimension. 0: rows have lengths of their own, and an
  // element is 16 bytes, which lead to a row in the file's global heap: its length (uint32), where
  // its collection begins (uint64), its index therein (uint32).
  std::uint64_t columns = 0;
  std::uint64_t offset = 0;  // of the first byte in the file, when chunk_rows is 0: no chunks
  std::uint64_t chunk_rows = 0, chunk_columns = 0;
  std::vector<ArrayFilter> filters;  // of each chunk, in the order in which they were applied

  bool varying() const { return columns == 0; }
  std::uint64_t chunk_bytes() const { return chunk_rows * chunk_columns * type.bytes; }
};

// Bytes of the file, checked against its size.
struct StoredChunk {
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t skipped_filters = 0;  // bit i: filter i was not applied
};

// Reads fixed names only. Refused are, before memory is allocated for them: soft and external
// links, external, virtual and compact storage, other types than whole numbers of 1, 2, 4 or 8
// bytes, more than two dimensions, rows of more than 65,536 numbers, filters besides deflate,
// shuffle and fletcher32, chunks of more than 16 MiB, sizes that the file cannot hold. No plug-in
// is loaded and no lock is taken. One thread at a time.
class Hdf5Arrays {
 public:
  // Throws CorpusError, std::system_error.
  explicit Hdf5Arrays(const std::filesystem::path& file);
  ~Hdf5Arrays();
  Hdf5Arrays(const Hdf5Arrays&) = delete;

  const std::filesystem::path& file() const;
  bool has(const std::string& name) const;
  // Throws CorpusError that names file and dataset; so does chunk().
  StoredArray array(const std::string& name) const;
  // The chunk of a chunked array that begins at this row and column.
  StoredChunk chunk(const std::string& name, std::uint64_t row, std::uint64_t column) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

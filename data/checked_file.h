// A file that no byte is taken from before a checksum has vouched for it.
//
// Parts of the file are covered by CRC-32C checksums of their blocks. These lie in the file as
// well, and what they were when the file was opened is remembered by checksums of theirs: 4 bytes
// for 256 KiB of content. So what is read is what was there then, or refused, even if the file is
// damaged, cut short or overwritten in between. It costs a third of what the system takes to copy
// the bytes, so nothing is remembered as checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/hdf5_reader.h"
#include "data/regular_file.h"

namespace tupelo {

// How many bytes a checksum of a shard covers; the last one of a dataset may cover less.
inline constexpr std::uint64_t kChecksumBlockBytes = 1024;
std::uint64_t checksum_blocks(std::uint64_t bytes);

// A dataset, and the place of its checksums among all.
struct CheckedDataset {
  std::string name;
  DatasetPlace place;
  std::uint64_t first_block = 0;
};

// Any thread may call the const members.
class CheckedFile {
 public:
  // What read_piece() needs at most for itself.
  static constexpr std::size_t kPieceBytes = 64 * 1024;

  // Takes the open file; `sums`, of uint32, holds the checksums. Compares it with its SHA-256.
  // Throws CorpusError that names file and dataset, std::system_error.
  CheckedFile(RegularFile file, const std::string& sums_name, const DatasetPlace& sums);

  const RegularFile& file() const { return file_; }
  std::uint64_t blocks() const { return sums_.count; }

  // Bytes of the dataset from `first` on, in `buffer`: up to `count` of them, at least one, ending
  // with the last or with a block. Throws CorpusError that names file and dataset when they are
  // not what they should be, std::out_of_range when the dataset has no such bytes.
  std::span<const std::byte> read_piece(const CheckedDataset& dataset, std::uint64_t first,
                                        std::uint64_t count,
                                        std::span<std::byte, kPieceBytes> buffer) const;

 private:
  void remember_sums(const std::string& name);
  void read_sums(std::uint64_t first, std::span<std::uint32_t> sums) const;
  [[noreturn]] void refuse(const std::string& what) const;

  RegularFile file_;
  DatasetPlace sums_;
  std::vector<std::uint32_t> sums_of_sums_;
};

// Calls sink(std::span<const std::byte>) with bytes [first, first + count) of the dataset, piece by
// piece in order; see read_piece().
template <typename Sink>
void for_each_piece(const CheckedFile& file, const CheckedDataset& dataset, std::uint64_t first,
                    std::uint64_t count, Sink sink) {
  std::byte buffer[CheckedFile::kPieceBytes];
  while (count > 0) {
    const std::span<const std::byte> piece = file.read_piece(dataset, first, count, buffer);
    sink(piece);
    first += piece.size();
    count -= piece.size();
  }
}

}  // namespace tupelo

// The rows of a stored array, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/hdf5_arrays.h"
#include "data/regular_file.h"

namespace tupelo {

class NumberRows {
 public:
  virtual ~NumberRows() = default;

  // Replaces `values` by row `row` of the array. Numbers beyond int64 become its largest. Reading
  // rows in ascending order takes each byte of the file once. Throws CorpusError that names file,
  // dataset and row.
  virtual void read(std::uint64_t row, std::vector<std::int64_t>& values) = 0;
};

// The array `name`, which is described by `array`. `arrays` and `file`, both of one file, must
// outlive it. Memory: the chunks that one row lies in. Throws CorpusError when these are more than
// 256 MiB.
std::unique_ptr<NumberRows> open_number_rows(const Hdf5Arrays& arrays, const RegularFile& file,
                                             const std::string& name, const StoredArray& array);

}  // namespace tupelo

// What HDF5's filters did to a chunk, undone in memory that is known beforehand.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/hdf5_arrays.h"

namespace tupelo {

// Fills `chunk`, whose size is that of the chunk's elements, from the chunk as it is stored. Throws
// CorpusError, which begins with `subject`, when the data is damaged or gives another size.
void undo_filters(const StoredArray& array, std::uint32_t skipped_filters,
                  std::span<const std::byte> stored, std::span<std::byte> chunk,
                  const std::string& subject);

}  // namespace tupelo

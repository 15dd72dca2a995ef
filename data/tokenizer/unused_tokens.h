// Entries that only fill a vocabulary up to a size that hardware likes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

// Throws std::invalid_argument unless it is 1 to 4096.
void check_size_multiple(std::uint32_t multiple);

// `size`, raised to a multiple of `multiple`.
std::uint64_t padded_size(std::uint64_t size, std::uint32_t multiple);

// Appends [unused0], [unused1], ... until there are `size` tokens.
void add_unused_tokens(std::vector<std::string>& tokens, std::uint64_t size);

}  // namespace tupelo

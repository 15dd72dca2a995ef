// SHA-256 of content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tupelo {

class RegularFile;

// Digests one content after another; not for two threads at once.
class ContentDigest {
 public:
  using Bytes = std::array<std::uint8_t, 32>;

  ContentDigest();
  ~ContentDigest();

  void update(const void* data, std::size_t bytes);
  // Digest of all updates since construction or the last finish().
  Bytes finish();
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex_of(const void* data, std::size_t bytes);
// Of a whole file. Throws what reading it does.
std::string sha256_hex_of(const RegularFile& file);

}  // namespace tupelo

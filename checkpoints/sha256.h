// SHA-256 (FIPS 180-4) of a stream of bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tupelo {

class Sha256 {
 public:
  Sha256();

  void update(const void* bytes, std::size_t count);

  // 64 lower-case hexadecimal digits. Ends the stream: no update may follow.
  std::string finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

}  // namespace tupelo

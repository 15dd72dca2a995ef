// Bytes that are in memory already, before those of another source.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "data/input/byte_source.h"

namespace tupelo {

class MemoryBytes : public ByteSource {
 public:
  // `rest` may be null.
  MemoryBytes(std::string bytes, std::unique_ptr<ByteSource> rest)
      : bytes_(std::move(bytes)), rest_(std::move(rest)) {}

  std::size_t read(char* to, std::size_t most) override {
    if (done_ == bytes_.size()) return rest_ ? rest_->read(to, most) : 0;
    const std::size_t count = std::min(most, bytes_.size() - done_);
    std::memcpy(to, bytes_.data() + done_, count);
    done_ += count;
    return count;
  }
  std::uint64_t file_bytes() const override { return rest_ ? rest_->file_bytes() : done_; }

 private:
  std::string bytes_;
  std::unique_ptr<ByteSource> rest_;
  std::size_t done_ = 0;
};

}  // namespace tupelo

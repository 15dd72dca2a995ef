// Constant tensors by length.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tupelo {

// Not registered buffers: tables that depend on settings and a length alone belong in no
// checkpoint, and casting the module must not round them.
class LengthCache {
 public:
  // `kept` is how many lengths it remembers: the longest sequences of batches differ, and making a
  // table on the host holds up a device.
  explicit LengthCache(std::size_t kept = 8) : kept_(kept) {}

  // compute(), which depends on `length` and on what never changes, moved to `device` and `type`.
  template <typename Compute>
  torch::Tensor get(std::int64_t length, torch::Device device, torch::Dtype type,
                    const Compute& compute) {
    for (const Entry& entry : entries_) {
      if (entry.length == length && entry.device == device && entry.type == type) {
        return entry.table;
      }
    }
    const torch::NoGradGuard no_grad;
    if (entries_.size() == kept_) {
      entries_.erase(entries_.begin());
    }
    entries_.push_back({length, device, type, compute().to(device, type)});
    return entries_.back().table;
  }

 private:
  struct Entry {
    std::int64_t length;
    torch::Device device;  // as asked for: perhaps without an index
    torch::Dtype type;
    torch::Tensor table;
  };
  std::size_t kept_;
  std::vector<Entry> entries_;  // the newest last
};

}  // namespace tupelo

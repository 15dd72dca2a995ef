// Which of many texts were there before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "data/cleaning/external_sorter.h"
#include "data/cleaning/fingerprint.h"

namespace tupelo {

class DuplicateFinder {
 public:
  // Uses about `memory_bytes` of memory; beyond that scratch files in `folder` of 24 bytes a
  // fingerprint and 8 a duplicate, which go away with the finder.
  DuplicateFinder(const std::filesystem::path& folder, std::size_t memory_bytes);

  // In any order.
  void add(const Fingerprint& fingerprint) { fingerprints_->add(fingerprint); }
  // After the last add().
  void finish();

  // Positions of all texts but the first (by position) of equal fingerprints, ascending, each once.
  class Positions {
   public:
    explicit Positions(const DuplicateFinder& finder) : reader_(finder.duplicates_) {}
    std::optional<std::uint64_t> next();

   private:
    ExternalSorter<std::uint64_t>::Reader reader_;
    std::optional<std::uint64_t> last_;
  };

 private:
  std::optional<ExternalSorter<Fingerprint>> fingerprints_;
  ExternalSorter<std::uint64_t> duplicates_;
};

}  // namespace tupelo

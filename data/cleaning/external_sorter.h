// Sorting more than memory holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tupelo {

// A file of the sorter's own. Throws std::system_error that names it.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& file);
  ~ScratchFile();  // removes the file
  ScratchFile(const ScratchFile&) = delete;

  void append(std::span<const std::byte> bytes);
  // Fewer than asked for only at the end. Any number of readers may ask.
  std::size_t read(std::uint64_t from, std::span<std::byte> to) const;

 private:
  [[noreturn]] void refuse(const char* verb) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Values of a plain type with operator<. Uses about `memory_bytes` of memory, and scratch files of
// as many bytes as the values have when those are more.
template <typename Value>
class ExternalSorter {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  // Scratch files get names that begin with `scratch`.
  ExternalSorter(std::filesystem::path scratch, std::size_t memory_bytes)
      : scratch_(std::move(scratch)),
        most_(std::max<std::size_t>(memory_bytes / sizeof(Value), 2)) {}

  void add(const Value& value) {
    if (values_.size() == most_) spill();
    values_.push_back(value);
    ++count_;
  }
  std::uint64_t count() const { return count_; }

  // After the last add(). Then any number of readers, one after another or at once, may read.
  void finish() {
    if (!runs_.empty() && !values_.empty()) spill();
    if (!runs_.empty()) {
      values_ = {};
    } else {
      std::sort(values_.begin(), values_.end());
    }
  }

  // Gives the values in order; the sorter must outlive it.
  class Reader {
   public:
    explicit Reader(const ExternalSorter& sorter) : sorter_(sorter) {
      const std::size_t block = sorter.most_ / (sorter.runs_.size() + 1) / 2;
      for (std::size_t run = 0; run < sorter.runs_.size(); ++run) {
        pieces_.push_back({sorter.runs_[run].get(),
                           {},
                           0,
                           0,
                           std::clamp<std::size_t>(block, 16, kMostBlockValues)});
        advance(run);
      }
    }
    bool next(Value& value) {
      if (sorter_.runs_.empty()) {
        if (at_ == sorter_.values_.size()) return false;
        value = sorter_.values_[at_++];
        return true;
      }
      if (heads_.empty()) return false;
      const std::size_t run = heads_.top().second;
      value = heads_.top().first;
      heads_.pop();
      advance(run);
      return true;
    }

   private:
    static constexpr std::size_t kMostBlockValues = 8192;
    struct Piece {
      const ScratchFile* file;
      std::vector<Value> values;
      std::size_t at;
      std::uint64_t bytes_read;
      std::size_t block;
    };
    using Head = std::pair<Value, std::size_t>;
    struct Later {
      bool operator()(const Head& a, const Head& b) const { return b.first < a.first; }
    };

    void advance(std::size_t run) {
      Piece& piece = pieces_[run];
      if (piece.at == piece.values.size()) {
        piece.values.resize(piece.block);
        const std::size_t got =
            piece.file->read(piece.bytes_read, std::as_writable_bytes(std::span(piece.values)));
        piece.bytes_read += got;
        piece.values.resize(got / sizeof(Value));
        piece.at = 0;
      }
      if (!piece.values.empty()) heads_.emplace(piece.values[piece.at++], run);
    }

    const ExternalSorter& sorter_;
    std::size_t at_ = 0;
    std::vector<Piece> pieces_;
    std::priority_queue<Head, std::vector<Head>, Later> heads_;
  };

 private:
  void spill() {
    std::sort(values_.begin(), values_.end());
    runs_.push_back(std::make_unique<ScratchFile>(
        std::filesystem::path(scratch_.string() + "-" + std::to_string(runs_.size()))));
    runs_.back()->append(std::as_bytes(std::span(values_)));
    values_.clear();
  }

  const std::filesystem::path scratch_;
  const std::size_t most_;
  std::uint64_t count_ = 0;
  std::vector<Value> values_;
  std::vector<std::unique_ptr<ScratchFile>> runs_;  // each sorted
};

}  // namespace tupelo

// Where the documents of a corpus begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tupelo {

// Documents in parts, such as shards. How many there are is known from the start, offsets are read
// when they are asked for. Any thread may call the members.
class DocumentTable {
 public:
  struct Part {
    std::uint64_t documents, tokens;
  };
  virtual ~DocumentTable() = default;
  virtual const std::vector<Part>& parts() const = 0;
  // Where document `document` <= parts()[part].documents of a part begins, among the part's tokens.
  // May open a file, and then throw CorpusError or std::system_error.
  virtual std::uint64_t offset(std::size_t part, std::uint64_t document) const = 0;

  std::uint64_t length(std::size_t part, std::uint64_t document) const {
    return offset(part, document + 1) - offset(part, document);
  }
};

// One part, in memory.
class DocumentOffsets : public DocumentTable {
 public:
  // Document d has offsets[d + 1] - offsets[d] tokens; the first offset is 0.
  explicit DocumentOffsets(std::vector<std::uint64_t> offsets)
      : offsets_(std::move(offsets)),
        parts_{
            {offsets_.empty() ? 0 : offsets_.size() - 1, offsets_.empty() ? 0 : offsets_.back()}} {}

  const std::vector<Part>& parts() const override { return parts_; }
  std::uint64_t offset(std::size_t /*part*/, std::uint64_t document) const override {
    return offsets_[document];
  }

 private:
  std::vector<std::uint64_t> offsets_;
  std::vector<Part> parts_;
};

}  // namespace tupelo

// Which document a row belongs to, without a table of all documents.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/document_table.h"

namespace tupelo {

// Rows of documents by class, such as a range of lengths. Rows of a class are numbered through the
// documents of a part in order. A part is read when one of its rows is first asked for; then it
// takes at most a byte of memory per document.
class RowIndex {
 public:
  // Adds the rows of a document of `length` tokens to those of each class.
  using AddRows = std::function<void(std::uint64_t length, std::span<std::uint64_t> rows)>;

  RowIndex(std::shared_ptr<const DocumentTable> documents, std::size_t classes, AddRows add_rows);
  ~RowIndex();
  RowIndex(RowIndex&&) noexcept;
  RowIndex& operator=(RowIndex&&) noexcept;

  std::size_t classes() const { return classes_; }
  // Rows of each class in a part. Reads its lengths.
  std::vector<std::uint64_t> count(std::size_t part) const;

  struct Found {
    std::uint64_t document;  // of the part
    std::uint64_t row;       // of those of the document that are of the class
    std::uint64_t rows;      // of the document, of all classes
    std::uint64_t before;    // the same in all documents of the part before it
  };
  // Row `row` of a class in a part that has so many. Any thread may call it.
  Found find(std::size_t part, std::size_t row_class, std::uint64_t row) const;

 private:
  // [sample * classes + class]: rows of the class in the documents before sample * stride_.
  using Samples = std::vector<std::uint64_t>;
  struct Slots;
  const Samples& samples(std::size_t part) const;
  Samples sample(std::size_t part) const;

  std::shared_ptr<const DocumentTable> documents_;
  std::size_t classes_;
  AddRows add_rows_;
  std::uint64_t stride_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace tupelo

#include "data/import/number_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "data/import/chunk_filters.h"

namespace tupelo {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kMostBandBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostRowNumbers = 65536;
constexpr std::uint64_t kHeapReferenceBytes = 16;
constexpr std::uint64_t kHeapHeaderBytes = 16;  // of a collection, and of each object in it

template <typename Number>
Number number_at(Bytes bytes, std::uint64_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <typename Unsigned>
void append_numbers(Bytes bytes, const NumberType& type, std::vector<std::int64_t>& values) {
  using Signed = std::make_signed_t<Unsigned>;
  for (std::size_t at = 0; at + sizeof(Unsigned) <= bytes.size(); at += sizeof(Unsigned)) {
    std::byte number[sizeof(Unsigned)];
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), sizeof(Unsigned), number);
    if (type.big_endian) std::reverse(std::begin(number), std::end(number));
    const auto value = std::bit_cast<Unsigned>(number);
    const bool beyond =
        value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    values.push_back(type.is_signed ? static_cast<Signed>(value)
                     : beyond       ? std::numeric_limits<std::int64_t>::max()
                                    : static_cast<std::int64_t>(value));
  }
}

void append_numbers_of(Bytes bytes, const NumberType& type, std::vector<std::int64_t>& values) {
  switch (type.bytes) {
    case 1:
      return append_numbers<std::uint8_t>(bytes, type, values);
    case 2:
      return append_numbers<std::uint16_t>(bytes, type, values);
    case 4:
      return append_numbers<std::uint32_t>(bytes, type, values);
    default:
      return append_numbers<std::uint64_t>(bytes, type, values);
  }
}

// Fills `part` with bytes [first, first + count) of a file that may have become shorter since its
// structure was read.
void read_part(const RegularFile& file, std::uint64_t first, std::uint64_t count,
               const std::string& subject, std::vector<std::byte>& part) {
  if (first > file.bytes() || count > file.bytes() - first) {
    throw CorpusError(subject + " reaches past the end of the file");
  }
  if (count > kMostBandBytes) {
    throw CorpusError(subject + " takes more than 256 MiB to read");
  }
  part.resize(count);
  file.read(first, part);
}

std::string subject_of(const Hdf5Arrays& arrays, const std::string& name) {
  return arrays.file().string() + ": dataset '" + name + "'";
}

class ContiguousRows : public NumberRows {
 public:
  ContiguousRows(const RegularFile& file, const StoredArray& array, std::string subject)
      : file_(file), array_(array), subject_(std::move(subject)) {}

  void read(std::uint64_t row, std::vector<std::int64_t>& values) override {
    values.clear();
    const std::uint64_t bytes = array_.columns * array_.type.bytes;
    read_part(file_, array_.offset + row * bytes, bytes, subject_, buffer_);
    append_numbers_of(buffer_, array_.type, values);
  }

 private:
  const RegularFile& file_;
  const StoredArray array_;
  const std::string subject_;
  std::vector<std::byte> buffer_;
};

// Keeps a band: all chunks that hold the same rows.
class ChunkedRows : public NumberRows {
 public:
  ChunkedRows(const Hdf5Arrays& arrays, const RegularFile& file, const std::string& name,
              const StoredArray& array)
      : arrays_(arrays),
        file_(file),
        name_(name),
        array_(array),
        chunks_((array.columns + array.chunk_columns - 1) / array.chunk_columns) {
    if (chunks_ * array.chunk_bytes() > kMostBandBytes) {
      throw CorpusError(subject_of(arrays, name) + " is stored in chunks of " +
                        std::to_string(array.chunk_rows) + " rows by " +
                        std::to_string(array.chunk_columns) +
                        " columns, so that one row takes more than 256 MiB to read");
    }
  }

  void read(std::uint64_t row, std::vector<std::int64_t>& values) override {
    load(row / array_.chunk_rows);
    values.clear();
    const std::uint64_t width = array_.chunk_columns * array_.type.bytes;
    const std::uint64_t of_chunk = row % array_.chunk_rows * width;
    std::uint64_t left = array_.columns;
    for (std::uint64_t c = 0; c < chunks_; ++c) {
      const std::uint64_t numbers = std::min(left, array_.chunk_columns);
      append_numbers_of(
          Bytes(buffer_).subspan(c * array_.chunk_bytes() + of_chunk, numbers * array_.type.bytes),
          array_.type, values);
      left -= numbers;
    }
  }

 private:
  void load(std::uint64_t band) {
    if (band_ == band) return;
    band_.reset();
    buffer_.resize(chunks_ * array_.chunk_bytes());
    for (std::uint64_t c = 0; c < chunks_; ++c) {
      const std::uint64_t row = band * array_.chunk_rows;
      const StoredChunk chunk = arrays_.chunk(name_, row, c * array_.chunk_columns);
      std::string subject = subject_of(arrays_, name_);
      subject += " at row " + std::to_string(row);
      read_part(file_, chunk.offset, chunk.bytes, subject, stored_);
      undo_filters(array_, chunk.skipped_filters, stored_,
                   std::span(buffer_).subspan(c * array_.chunk_bytes(), array_.chunk_bytes()),
                   subject);
    }
    band_ = band;
  }

  const Hdf5Arrays& arrays_;
  const RegularFile& file_;
  const std::string name_;
  const StoredArray array_;
  const std::uint64_t chunks_;  // beside each other
  std::optional<std::uint64_t> band_;
  std::vector<std::byte> buffer_, stored_;
};

// Rows in the file's global heap. The library trusts the lengths written there, so it is not asked.
// Source of the layout: HDF5 File Format Specification 3.0, III.E "Global Heap".
class VaryingRows : public NumberRows {
 public:
  VaryingRows(const RegularFile& file, const StoredArray& array, std::string subject)
      : file_(file), array_(array), subject_(std::move(subject)) {}

  void read(std::uint64_t row, std::vector<std::int64_t>& values) override {
    values.clear();
    const std::string subject = subject_ + " at row " + std::to_string(row);
    read_part(file_, array_.offset + row * kHeapReferenceBytes, kHeapReferenceBytes, subject,
              reference_);
    const std::uint64_t numbers = number_at<std::uint32_t>(reference_, 0);
    if (numbers == 0) return;
    if (numbers > kMostRowNumbers) {
      throw CorpusError(subject + " declares " + std::to_string(numbers) +
                        " numbers; the most are " + std::to_string(kMostRowNumbers));
    }
    load(number_at<std::uint64_t>(reference_, 4), subject);
    const auto object = std::find_if(objects_.begin(), objects_.end(), [&](const Object& known) {
      return known.index == number_at<std::uint32_t>(reference_, 12);
    });
    if (object == objects_.end() || object->bytes.size() / array_.type.bytes < numbers) {
      throw CorpusError(subject + " is not in the file's heap as long as it should be");
    }
    append_numbers_of(object->bytes.first(numbers * array_.type.bytes), array_.type, values);
  }

 private:
  struct Object {
    std::uint32_t index;
    Bytes bytes;
  };

  void load(std::uint64_t collection, const std::string& subject) {
    if (collection_ == collection) return;
    collection_.reset();
    objects_.clear();
    read_part(file_, collection, kHeapHeaderBytes, subject, heap_);
    const auto bytes = number_at<std::uint64_t>(heap_, 8);
    if (std::memcmp(heap_.data(), "GCOL\1", 5) != 0 || bytes < kHeapHeaderBytes) {
      throw CorpusError(subject + " does not lead to a heap of this file");
    }
    read_part(file_, collection, bytes, subject, heap_);
    add_objects(heap_, subject);
    collection_ = collection;
  }

  // Object 0 is what is free behind the last one.
  void add_objects(Bytes heap, const std::string& subject) {
    std::uint64_t at = kHeapHeaderBytes;
    while (at + kHeapHeaderBytes <= heap.size() && number_at<std::uint16_t>(heap, at) != 0) {
      const auto index = number_at<std::uint16_t>(heap, at);
      const auto bytes = number_at<std::uint64_t>(heap, at + 8);
      at += kHeapHeaderBytes;
      if (bytes > heap.size() - at) throw CorpusError(subject + " leads to a damaged heap");
      objects_.push_back({index, heap.subspan(at, bytes)});
      at = std::min<std::uint64_t>(heap.size(), at + (bytes + 7) / 8 * 8);
    }
  }

  const RegularFile& file_;
  const StoredArray array_;
  const std::string subject_;
  std::vector<std::byte> reference_;
  std::optional<std::uint64_t> collection_;  // whose objects are known
  std::vector<std::byte> heap_;
  std::vector<Object> objects_;  // in heap_
};

}  // namespace

std::unique_ptr<NumberRows> open_number_rows(const Hdf5Arrays& arrays, const RegularFile& file,
                                             const std::string& name, const StoredArray& array) {
  if (array.varying()) {
    return std::make_unique<VaryingRows>(file, array, subject_of(arrays, name));
  }
  if (array.chunk_rows > 0) return std::make_unique<ChunkedRows>(arrays, file, name, array);
  return std::make_unique<ContiguousRows>(file, array, subject_of(arrays, name));
}

}  // namespace tupelo

// The few structures of the HDF5 file format that shards consist of, read out of bytes that anyone
// may have made. After "HDF5 File Format Specification Version 2.0", sections III and IV.
//
// What is read is a list of what is allowed; all else is refused with CorpusError, before memory is
// allocated for what a file declares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/element_type.h"
#include "data/regular_file.h"

namespace tupelo::hdf5_objects {

inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};  // the format's "undefined address"

// What is being read, to name it when it is refused.
struct Subject {
  const RegularFile& file;
  std::string name;  // such as "dataset 'tokens' "; empty: the file itself

  // Throws CorpusError "FILE: NAME WHAT".
  [[noreturn]] void refuse(const std::string& what) const;
  // Unless it holds, refuses an HDF5 file that may be sound, but is not laid out as shards are.
  void require(bool holds, const std::string& what) const;
  // A structure of the file; of at most 64 KiB.
  std::vector<std::byte> bytes(std::uint64_t offset, std::uint64_t count) const;
};

// Little-endian numbers, one after another; what goes past the end is refused.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const Subject& subject)
      : bytes_(bytes), subject_(subject) {}

  std::uint64_t number(std::size_t width);  // of 1 to 8 bytes
  std::span<const std::byte> take(std::uint64_t count);
  void skip(std::uint64_t count) { take(count); }
  std::size_t left() const { return bytes_.size(); }
  const Subject& subject() const { return subject_; }

 private:
  std::span<const std::byte> bytes_;
  const Subject& subject_;
};

enum class MessageType : std::uint16_t {
  kNothing = 0x00,
  kDataspace = 0x01,
  kDatatype = 0x03,
  kFillValue = 0x05,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0B,
  kAttribute = 0x0C,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kModificationTime = 0x12,
};

struct Message {
  MessageType type;
  std::vector<std::byte> content;
};

// The messages of an object header of version 1, those of its continuations too.
std::vector<Message> read_object_header(const Subject& subject, std::uint64_t address);

struct StoredType {
  bool text = false;                   // of fixed length, ended or filled up by zeros
  std::optional<ElementType> element;  // of a whole number that is one of these
  std::uint64_t bytes = 0;
};
StoredType read_datatype(Cursor cursor);

struct StoredSpace {
  bool fixed = true;                 // its sizes cannot grow
  std::vector<std::uint64_t> sizes;  // none: one value
};
StoredSpace read_dataspace(Cursor cursor);

struct StoredAttribute {
  std::string name;
  StoredType type;
  StoredSpace space;
  std::vector<std::byte> value;  // of a single value

  // Nothing unless it is a single value of this kind.
  std::optional<std::uint64_t> number() const;  // uint64
  std::optional<std::string> text() const;      // not empty, of at most 4096 bytes
};
StoredAttribute read_attribute(Cursor cursor);

// An object of a group, by name.
struct Link {
  std::uint64_t header = 0;  // address of the object's header
  bool hard = true;          // the object is in this file: not a name that leads to one
};
// The links of a group that has the symbol table message `table`. `leaf_k` is the superblock's.
std::map<std::string, Link> read_symbol_table(Cursor table, std::uint64_t leaf_k);

}  // namespace tupelo::hdf5_objects

#include "data/hdf5_reader.h"

#include <algorithm>
#include <array>
#include <optional>

#include "data/errors.h"

namespace tupelo {
namespace {

using namespace hdf5_objects;

constexpr std::uint64_t kSuperblockBytes = 96;
constexpr std::size_t kDigestCharacters = 64;

struct Superblock {
  std::uint64_t leaf_k = 0;       // half of the most links of a symbol table node
  std::uint64_t root_header = 0;  // address
};

bool has_signature(const RegularFile& file) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  if (file.bytes() < kSuperblockBytes) return false;
  std::array<std::byte, 8> found;
  file.read(0, found);
  return std::equal(kSignature.begin(), kSignature.end(), found.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

Superblock read_superblock(const RegularFile& file) {
  const Subject subject = {file, ""};
  if (!has_signature(file)) subject.refuse("is not an HDF5 file");
  const std::vector<std::byte> bytes = subject.bytes(0, kSuperblockBytes);
  Cursor cursor(bytes, subject);
  cursor.skip(8);
  subject.require(cursor.number(1) == 0, "a superblock of another version than 0");
  subject.require(cursor.number(4) == 0, "parts of other versions than 0");
  subject.require(cursor.number(3) == 0x000808, "addresses and lengths of other than 8 bytes");
  Superblock block;
  block.leaf_k = cursor.number(2);
  cursor.skip(2);  // of the B-tree
  cursor.skip(4);  // flags of a writer, which this version of the superblock leaves without effect
  subject.require(cursor.number(8) == 0, "a base address");
  subject.require(cursor.number(8) == kNowhere, "a list of free space");
  const std::uint64_t end = cursor.number(8);
  if (end != file.bytes()) {
    subject.refuse("has " + std::to_string(file.bytes()) +
                   " bytes, but says of itself that it has " + std::to_string(end) +
                   ": it was cut short, or something was appended");
  }
  subject.require(cursor.number(8) == kNowhere, "a driver's block");
  cursor.skip(8);  // the name of the root group
  block.root_header = cursor.number(8);
  return block;
}

const char* type_name(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kUint16:
      return "uint16";
    case ElementType::kUint32:
      return "uint32";
    case ElementType::kUint64:
      return "uint64";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt32:
      return "int32";
  }
  return "?";
}

std::string names_of(const std::vector<ElementType>& types) {
  std::string names;
  for (const ElementType type : types) {
    if (!names.empty()) names += " or ";
    names += type_name(type);
  }
  return names;
}

// What the header of an object says, as far as it belongs to a dataset.
struct StoredDataset {
  std::optional<StoredType> type;
  std::optional<StoredSpace> space;
  bool elsewhere = false;  // through filters, or in other files
  std::vector<std::byte> layout;
  std::string sha256;
};

StoredDataset read_dataset(const Subject& subject, std::uint64_t header) {
  StoredDataset dataset;
  for (const Message& message : read_object_header(subject, header)) {
    const Cursor cursor(message.content, subject);
    switch (message.type) {
      case MessageType::kNothing:
      case MessageType::kContinuation:
      case MessageType::kFillValue:
      case MessageType::kModificationTime:
        break;
      case MessageType::kDataspace:
        subject.require(!dataset.space.has_value(), "two dataspaces");
        dataset.space = read_dataspace(cursor);
        break;
      case MessageType::kDatatype:
        subject.require(!dataset.type.has_value(), "two datatypes");
        dataset.type = read_datatype(cursor);
        break;
      case MessageType::kLayout:
        subject.require(dataset.layout.empty(), "two layouts");
        dataset.layout = message.content;
        break;
      case MessageType::kExternalFiles:
      case MessageType::kFilters:
        dataset.elsewhere = true;
        break;
      case MessageType::kAttribute:
        if (const StoredAttribute attribute = read_attribute(cursor); attribute.name == "sha256") {
          subject.require(dataset.sha256.empty(), "two attributes of one name");
          dataset.sha256 = attribute.text().value_or("");
        }
        break;
      case MessageType::kSymbolTable:
        subject.refuse("is not a dataset of this file itself");
      default:
        subject.require(false, "a message that datasets of shards do not have");
    }
  }
  if (!dataset.type.has_value() || !dataset.space.has_value() || dataset.layout.empty()) {
    subject.refuse("is not a dataset of this file itself");
  }
  return dataset;
}

// Where the elements lie, if in one piece: address and bytes.
struct Extent {
  std::uint64_t offset = 0, bytes = 0;
};
std::optional<Extent> contiguous_extent(Cursor layout) {
  constexpr std::uint64_t kVersion = 3, kContiguous = 1;
  if (layout.number(1) != kVersion || layout.number(1) != kContiguous) return {};
  const std::uint64_t offset = layout.number(8);
  return Extent{offset, layout.number(8)};
}

}  // namespace

Hdf5Reader::Hdf5Reader(const RegularFile& file) : file_(file) {
  const Superblock block = read_superblock(file);
  read_root(block.root_header, block.leaf_k);
}

void Hdf5Reader::read_root(std::uint64_t header, std::uint64_t leaf_k) {
  const Subject subject = {file_, ""};
  bool is_group = false;
  for (const Message& message : read_object_header(subject, header)) {
    const Cursor cursor(message.content, subject);
    if (message.type == MessageType::kSymbolTable) {
      subject.require(!is_group, "two symbol tables");
      is_group = true;
      links_ = read_symbol_table(cursor, leaf_k);
    } else if (message.type == MessageType::kAttribute) {
      StoredAttribute attribute = read_attribute(cursor);
      const std::string name = attribute.name;
      subject.require(attributes_.emplace(name, std::move(attribute)).second,
                      "two attributes of one name");
    } else {
      subject.require(message.type == MessageType::kNothing ||
                          message.type == MessageType::kContinuation ||
                          message.type == MessageType::kModificationTime,
                      "a root group of a newer kind, such as links into other files need");
    }
  }
  subject.require(is_group, "no root group");
}

DatasetPlace Hdf5Reader::dataset(const std::string& name,
                                 const std::vector<ElementType>& types) const {
  const Subject subject = {file_, "dataset '" + name + "' "};
  const auto link = links_.find(name);
  if (link == links_.end()) subject.refuse("is missing");
  if (!link->second.hard) subject.refuse("is not a dataset of this file itself");
  const StoredDataset dataset = read_dataset(subject, link->second.header);
  const auto extent = contiguous_extent(Cursor(dataset.layout, subject));
  if (!extent.has_value() || dataset.elsewhere) {
    subject.refuse("is not stored contiguously, unfiltered and inside this file");
  }
  const std::optional<ElementType> type = dataset.type->element;
  if (!type.has_value() || std::find(types.begin(), types.end(), *type) == types.end()) {
    subject.refuse("is not of type " + names_of(types));
  }
  const std::vector<std::uint64_t>& sizes = dataset.space->sizes;
  if (sizes.size() != 1 || !dataset.space->fixed || sizes[0] == 0) {
    subject.refuse("does not have one dimension of fixed, positive size");
  }
  DatasetPlace place = {*type, sizes[0], extent->offset, dataset.sha256};
  if (place.offset > file_.bytes() ||
      place.count > (file_.bytes() - place.offset) / element_bytes(place.type)) {
    subject.refuse("reaches past the end of the file");
  }
  subject.require(extent->bytes == place.bytes(), "storage of another size than its elements");
  if (place.sha256.size() != kDigestCharacters) {
    subject.refuse("has no attribute 'sha256' of 64 hex digits");
  }
  return place;
}

bool Hdf5Reader::has_attribute(const std::string& name) const { return attributes_.contains(name); }

std::uint64_t Hdf5Reader::integer_attribute(const std::string& name) const {
  const auto found = attributes_.find(name);
  const auto number = found == attributes_.end() ? std::nullopt : found->second.number();
  if (!number.has_value()) {
    Subject{file_, "attribute '" + name + "' "}.refuse("is missing or not a single uint64");
  }
  return *number;
}

std::string Hdf5Reader::text_attribute(const std::string& name) const {
  const auto found = attributes_.find(name);
  const auto text = found == attributes_.end() ? std::nullopt : found->second.text();
  if (!text.has_value()) {
    Subject{file_, "attribute '" + name + "' "}.refuse("is missing or not a short text");
  }
  return *text;
}

}  // namespace tupelo

#include "data/hdf5_objects.h"

#include <algorithm>
#include <cstring>

#include "data/errors.h"

namespace tupelo::hdf5_objects {
namespace {

// A shard's own headers have three blocks of about 1 KiB; files made by others may be refused.
constexpr std::uint64_t kMaxStructureBytes = 64 * 1024;
constexpr std::size_t kMaxBlocks = 16;
constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::uint64_t kMaxRank = 32;  // HDF5's own

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

struct Block {
  std::uint64_t offset, bytes;
};

Block read_continuation(Cursor cursor) {
  const std::uint64_t offset = cursor.number(8);
  return {offset, cursor.number(8)};
}

// Appends the messages of one block; continuations go to `blocks`.
void read_messages(Cursor cursor, std::vector<Message>& messages, std::vector<Block>& blocks) {
  constexpr std::uint64_t kConstant = 1;  // the only flag that changes nothing for a reader
  while (cursor.left() > 0) {
    const auto type = static_cast<MessageType>(cursor.number(2));
    const std::uint64_t bytes = cursor.number(2);
    const std::uint64_t flags = cursor.number(1);
    cursor.skip(3);
    const std::span<const std::byte> content = cursor.take(bytes);
    cursor.subject().require((flags & ~kConstant) == 0, "a shared message");
    if (type == MessageType::kContinuation) {
      blocks.push_back(read_continuation(Cursor(content, cursor.subject())));
    }
    messages.push_back({type, {content.begin(), content.end()}});
  }
}

std::optional<ElementType> whole_number(std::uint64_t bytes, bool is_signed) {
  if (bytes == 1) return is_signed ? ElementType::kInt8 : ElementType::kUint8;
  if (bytes == 4) return is_signed ? ElementType::kInt32 : ElementType::kUint32;
  if (bytes == 2 && !is_signed) return ElementType::kUint16;
  if (bytes == 8 && !is_signed) return ElementType::kUint64;
  return {};
}

}  // namespace

void Subject::refuse(const std::string& what) const {
  throw CorpusError(file.path().string() + ": " + name + what);
}

void Subject::require(bool holds, const std::string& what) const {
  if (!holds) refuse("is not laid out as in a shard that this program wrote: " + what);
}

std::vector<std::byte> Subject::bytes(std::uint64_t offset, std::uint64_t count) const {
  require(count <= kMaxStructureBytes, "a structure of more than 64 KiB");
  require(offset <= file.bytes() && count <= file.bytes() - offset,
          "a structure that reaches past the end of the file");
  std::vector<std::byte> content(count);
  file.read(offset, content);
  return content;
}

std::uint64_t Cursor::number(std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(width).data(), width);
  return value;
}

std::span<const std::byte> Cursor::take(std::uint64_t count) {
  subject_.require(count <= bytes_.size(), "a structure that ends too soon");
  const std::span<const std::byte> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

std::vector<Message> read_object_header(const Subject& subject, std::uint64_t address) {
  constexpr std::uint64_t kPrefixBytes = 16;
  const std::vector<std::byte> prefix = subject.bytes(address, kPrefixBytes);
  Cursor cursor(prefix, subject);
  subject.require(cursor.number(1) == 1, "an object header of another version than 1");
  cursor.skip(1);
  const std::uint64_t declared = cursor.number(2);
  cursor.skip(4);  // the number of links to it
  std::vector<Block> blocks = {{address + kPrefixBytes, cursor.number(4)}};
  std::vector<Message> messages;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    // Continuations may lead in a circle.
    subject.require(b < kMaxBlocks, "an object header in more than 16 blocks");
    const std::vector<std::byte> block = subject.bytes(blocks[b].offset, blocks[b].bytes);
    read_messages(Cursor(block, subject), messages, blocks);
  }
  subject.require(messages.size() == declared, "an object header with another number of messages");
  return messages;
}

StoredType read_datatype(Cursor cursor) {
  constexpr std::uint64_t kWholeNumber = 0x10, kText = 0x13;  // of version 1
  constexpr std::uint64_t kSigned = 8, kPadding = 0x0F, kPaddedBySpaces = 2;
  const std::uint64_t kind = cursor.number(1);
  const std::uint64_t bits = cursor.number(3);
  StoredType type;
  type.bytes = cursor.number(4);
  if (kind == kText) type.text = (bits & kPadding) < kPaddedBySpaces;
  if (kind == kWholeNumber && (bits & ~kSigned) == 0) {  // so it is little-endian
    const bool plain = cursor.number(2) == 0 && cursor.number(2) == 8 * type.bytes;
    if (plain) type.element = whole_number(type.bytes, (bits & kSigned) != 0);
  }
  return type;
}

StoredSpace read_dataspace(Cursor cursor) {
  constexpr std::uint64_t kHasLimits = 1;
  cursor.subject().require(cursor.number(1) == 1, "a dataspace of another version than 1");
  const std::uint64_t rank = cursor.number(1);
  const std::uint64_t flags = cursor.number(1);
  cursor.skip(5);
  cursor.subject().require(rank <= kMaxRank && (flags & ~kHasLimits) == 0,
                           "a dataspace of another kind");
  StoredSpace space;
  for (std::uint64_t i = 0; i < rank; ++i) space.sizes.push_back(cursor.number(8));
  for (std::uint64_t i = 0; i < rank && flags == kHasLimits; ++i) {
    space.fixed = space.fixed && cursor.number(8) == space.sizes[i];
  }
  return space;
}

StoredAttribute read_attribute(Cursor cursor) {
  const Subject& subject = cursor.subject();
  subject.require(cursor.number(1) == 1, "an attribute of another version than 1");
  cursor.skip(1);
  const std::uint64_t name_bytes = cursor.number(2);
  const std::uint64_t type_bytes = cursor.number(2);
  const std::uint64_t space_bytes = cursor.number(2);
  const std::span<const std::byte> name = cursor.take(padded(name_bytes));
  StoredAttribute attribute;
  const auto end = std::find(name.begin(), name.end(), std::byte{0});
  for (auto at = name.begin(); at != end; ++at) attribute.name += static_cast<char>(*at);
  subject.require(!attribute.name.empty() && attribute.name.size() + 1 == name_bytes,
                  "an attribute whose name does not end");
  attribute.type = read_datatype(Cursor(cursor.take(padded(type_bytes)), subject));
  attribute.space = read_dataspace(Cursor(cursor.take(padded(space_bytes)), subject));
  if (attribute.space.sizes.empty()) {
    const std::span<const std::byte> value = cursor.take(attribute.type.bytes);
    attribute.value.assign(value.begin(), value.end());
  }
  return attribute;
}

std::optional<std::uint64_t> StoredAttribute::number() const {
  if (!space.sizes.empty() || type.element != ElementType::kUint64) return {};
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), sizeof(number));
  return number;
}

std::optional<std::string> StoredAttribute::text() const {
  if (!space.sizes.empty() || !type.text || value.size() > kMaxTextBytes) return {};
  std::string text(reinterpret_cast<const char*>(value.data()), value.size());
  text.resize(std::min(text.find('\0'), text.size()));
  if (text.empty()) return {};
  return text;
}

}  // namespace tupelo::hdf5_objects

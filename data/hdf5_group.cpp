// Groups of the old kind: names in a local heap, links in symbol table nodes under a B-tree.
#include <algorithm>
#include <string_view>

#include "data/hdf5_objects.h"

namespace tupelo::hdf5_objects {
namespace {

// A shard's root group has seven links in one node.
constexpr std::uint64_t kMaxNodes = 32, kMaxLinksOfNode = 64;

void expect_signature(Cursor& cursor, std::string_view signature, const std::string& what) {
  const std::span<const std::byte> found = cursor.take(signature.size());
  const bool equal = std::equal(signature.begin(), signature.end(), found.begin(),
                                [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
  cursor.subject().require(equal, what + " without its signature");
}

// The bytes that names are offsets into.
std::vector<std::byte> read_local_heap(const Subject& subject, std::uint64_t address) {
  const std::vector<std::byte> header = subject.bytes(address, 32);
  Cursor cursor(header, subject);
  expect_signature(cursor, "HEAP", "a local heap");
  subject.require(cursor.number(4) == 0, "a local heap of another version than 0");
  const std::uint64_t bytes = cursor.number(8);
  cursor.skip(8);  // its free list
  return subject.bytes(cursor.number(8), bytes);
}

std::string name_at(const Subject& subject, const std::vector<std::byte>& heap,
                    std::uint64_t offset) {
  subject.require(offset < heap.size(), "a name outside its heap");
  const auto begin = heap.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = std::find(begin, heap.end(), std::byte{0});
  subject.require(end != heap.end() && end != begin, "a name that is empty or does not end");
  std::string name;
  for (auto at = begin; at != end; ++at) name += static_cast<char>(*at);
  return name;
}

// The addresses of the symbol table nodes under a B-tree of one level.
std::vector<std::uint64_t> read_tree(const Subject& subject, std::uint64_t address) {
  const std::vector<std::byte> header = subject.bytes(address, 24);
  Cursor cursor(header, subject);
  expect_signature(cursor, "TREE", "a B-tree");
  subject.require(cursor.number(1) == 0, "a B-tree of something else than links");
  subject.require(cursor.number(1) == 0, "a B-tree of more than one level");
  const std::uint64_t count = cursor.number(2);
  subject.require(count <= kMaxNodes, "a B-tree of too many nodes");
  subject.require(cursor.number(8) == kNowhere && cursor.number(8) == kNowhere,
                  "a B-tree that has siblings");
  const std::vector<std::byte> entries = subject.bytes(address + 24, count * 16);
  Cursor entry(entries, subject);
  std::vector<std::uint64_t> nodes;
  for (std::uint64_t i = 0; i < count; ++i) {
    entry.skip(8);  // the first name that is not in it
    nodes.push_back(entry.number(8));
  }
  return nodes;
}

void read_node(const Subject& subject, std::uint64_t address, std::uint64_t leaf_k,
               const std::vector<std::byte>& heap, std::map<std::string, Link>& links) {
  constexpr std::uint64_t kEntryBytes = 40, kSoftLink = 2;
  const std::vector<std::byte> header = subject.bytes(address, 8);
  Cursor cursor(header, subject);
  expect_signature(cursor, "SNOD", "a symbol table node");
  subject.require(cursor.number(1) == 1, "a symbol table node of another version than 1");
  cursor.skip(1);
  const std::uint64_t count = cursor.number(2);
  subject.require(count <= std::min(2 * leaf_k, kMaxLinksOfNode),
                  "a symbol table node of too many links");
  const std::vector<std::byte> entries = subject.bytes(address + 8, count * kEntryBytes);
  Cursor entry(entries, subject);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string name = name_at(subject, heap, entry.number(8));
    Link link;
    link.header = entry.number(8);
    link.hard = entry.number(4) != kSoftLink;
    entry.skip(4 + 16);  // what a reader may remember of the object instead of looking at it
    subject.require(links.emplace(name, link).second, "two objects of one name");
  }
}

}  // namespace

std::map<std::string, Link> read_symbol_table(Cursor table, std::uint64_t leaf_k) {
  const Subject& subject = table.subject();
  const std::uint64_t tree = table.number(8);
  const std::vector<std::byte> heap = read_local_heap(subject, table.number(8));
  std::map<std::string, Link> links;
  for (const std::uint64_t node : read_tree(subject, tree)) {
    read_node(subject, node, leaf_k, heap, links);
  }
  return links;
}

}  // namespace tupelo::hdf5_objects

// The structure of shards, changed byte by byte: the reader follows nothing that it does not know.
#include "data/hdf5_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "data/hdf5.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::hdf5_reader_test {
namespace {

const std::string kDigest(64, 'd');

std::string sound_file() {
  const std::vector<std::uint16_t> numbers = {1, 2, 3};
  Hdf5Image image;
  image.add_dataset("first", ElementType::kUint16, numbers.data(), numbers.size(), kDigest);
  image.add_dataset("second", ElementType::kUint16, numbers.data(), numbers.size(), kDigest);
  image.add_attribute("text", std::string("words"));
  for (int i = 0; i < 20; ++i) image.add_attribute("number" + std::to_string(i), 100 + i);
  const std::span<const std::byte> bytes = image.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Hdf5ReaderTest : public testing::Test {
 protected:
  using Change = std::function<void(std::string&)>;

  // Where the text stands for the first time.
  std::size_t find(const std::string& text) const {
    const std::size_t at = sound_.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return at;
  }
  std::uint64_t number_at(std::size_t at, std::size_t width) const {
    std::uint64_t value = 0;
    std::memcpy(&value, &sound_.at(at), width);
    return value;
  }
  static void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
    ASSERT_LE(at + width, bytes.size());
    std::memcpy(&bytes[at], &value, width);
  }

  void read() const {
    const RegularFile file(path_);
    const Hdf5Reader reader(file);
    reader.dataset("first", {ElementType::kUint16});
    reader.dataset("second", {ElementType::kUint16});
    reader.text_attribute("text");
    for (int i = 0; i < 20; ++i) reader.integer_attribute("number" + std::to_string(i));
  }

  void expect_refusal(const Change& change, const std::string& sentence) const {
    std::string bytes = sound_;
    change(bytes);
    ASSERT_NE(bytes, sound_);
    write_bytes(path_, bytes);
    const std::string message = message_of<CorpusError>([this] { read(); });
    EXPECT_NE(message.find(path_.string() + ": "), std::string::npos) << message;
    EXPECT_NE(message.find(sentence), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  void expect_refusal(std::size_t at, std::uint64_t value, std::size_t width,
                      const std::string& sentence) const {
    expect_refusal([&](std::string& bytes) { put(bytes, at, value, width); }, sentence);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "f.h5";
  const std::string sound_ = sound_file();
  const std::size_t root_ = number_at(64, 8);  // its object header
};

constexpr std::uint64_t kFar = std::uint64_t{1} << 60;

TEST_F(Hdf5ReaderTest, ReadsWhatWasWritten) {
  write_bytes(path_, sound_);
  const RegularFile file(path_);
  const Hdf5Reader reader(file);
  const DatasetPlace place = reader.dataset("second", {ElementType::kUint8, ElementType::kUint16});
  EXPECT_EQ(place.count, 3u);
  EXPECT_EQ(place.type, ElementType::kUint16);
  EXPECT_EQ(place.sha256, kDigest);
  EXPECT_EQ(number_at(place.offset, 2), 1u);
  EXPECT_EQ(number_at(place.offset + 4, 2), 3u);
  EXPECT_EQ(reader.text_attribute("text"), "words");
  EXPECT_EQ(reader.integer_attribute("number19"), 119u);
  EXPECT_TRUE(reader.has_attribute("number0"));
  EXPECT_FALSE(reader.has_attribute("number20"));
  EXPECT_THROW(reader.text_attribute("number0"), CorpusError);
  EXPECT_THROW(reader.integer_attribute("text"), CorpusError);
  EXPECT_THROW(reader.dataset("third", {ElementType::kUint16}), CorpusError);
  EXPECT_THROW(reader.dataset("first", {ElementType::kUint32}), CorpusError);
}

TEST_F(Hdf5ReaderTest, RefusesOtherSuperblocks) {
  expect_refusal(0, 'x', 1, "is not an HDF5 file");
  expect_refusal(8, 2, 1, "a superblock of another version than 0");
  expect_refusal(12, 1, 1, "parts of other versions");
  expect_refusal(13, 4, 1, "addresses and lengths of other than 8 bytes");
  expect_refusal(24, 512, 8, "a base address");
  expect_refusal(32, 800, 8, "a list of free space");
  expect_refusal(40, sound_.size() - 1, 8, "it was cut short, or something was appended");
  expect_refusal(48, 800, 8, "a driver's block");
  expect_refusal(64, kFar, 8, "reaches past the end of the file");
  expect_refusal(64, ~std::uint64_t{0} - 8, 8, "reaches past the end of the file");
  expect_refusal([](std::string& bytes) { bytes.resize(95); }, "is not an HDF5 file");
  expect_refusal([](std::string& bytes) { bytes.pop_back(); }, "it was cut short");
  expect_refusal([](std::string& bytes) { bytes += '\0'; }, "something was appended");
}

TEST_F(Hdf5ReaderTest, RefusesOtherObjectHeaders) {
  expect_refusal(root_, 2, 1, "an object header of another version");
  expect_refusal(root_ + 2, 5, 2, "another number of messages");
  expect_refusal(root_ + 8, 1 << 20, 4, "a structure of more than 64 KiB");
  expect_refusal(root_ + 8, 12, 4, "a structure that ends too soon");
  const std::size_t message = root_ + 16;
  expect_refusal(message + 2, 0xFFF8, 2, "a structure that ends too soon");
  expect_refusal(message + 4, 2, 1, "a shared message");
}

// The root's header has a continuation, which here leads to itself, or to the file's end.
TEST_F(Hdf5ReaderTest, RefusesContinuationsThatLeadNowhere) {
  const std::size_t message = root_ + 16;
  ASSERT_EQ(number_at(message, 2), 0x10u);
  const std::uint64_t block_bytes = number_at(message + 16, 8);
  expect_refusal(
      [&](std::string& bytes) {
        put(bytes, message + 8, message, 8);
        put(bytes, message + 16, 24, 8);
      },
      "an object header in more than 16 blocks");
  expect_refusal(message + 8, sound_.size() - block_bytes + 1, 8, "past the end of the file");
  expect_refusal(message + 8, ~std::uint64_t{0}, 8, "past the end of the file");
  expect_refusal(message + 16, kFar, 8, "a structure of more than 64 KiB");
}

TEST_F(Hdf5ReaderTest, RefusesOtherGroups) {
  const std::size_t tree = find("TREE"), heap = find("HEAP"), node = find("SNOD");
  expect_refusal(tree, 'x', 1, "a B-tree without its signature");
  expect_refusal(tree + 4, 1, 1, "a B-tree of something else than links");
  expect_refusal(tree + 5, 1, 1, "a B-tree of more than one level");
  expect_refusal(tree + 6, 33, 2, "a B-tree of too many nodes");
  expect_refusal(tree + 8, tree, 8, "a B-tree that has siblings");
  expect_refusal(tree + 6, 2, 2, "without its signature");  // the second node is at 0
  expect_refusal(
      [&](std::string& bytes) {
        put(bytes, tree + 6, 2, 2);
        put(bytes, tree + 24 + 24, node, 8);
      },
      "two objects of one name");
  expect_refusal(heap, 'x', 1, "a local heap without its signature");
  expect_refusal(heap + 4, 1, 1, "a local heap of another version");
  expect_refusal(heap + 8, kFar, 8, "a structure of more than 64 KiB");
  expect_refusal(heap + 24, kFar, 8, "past the end of the file");
  expect_refusal(node, 'x', 1, "a symbol table node without its signature");
  expect_refusal(node + 4, 2, 1, "a symbol table node of another version");
  expect_refusal(node + 6, 9, 2, "a symbol table node of too many links");
  expect_refusal(node + 8, 0x10000, 8, "a name outside its heap");
  expect_refusal(node + 8, 0, 8, "a name that is empty");
  expect_refusal(node + 8 + 16, 2, 4, "is not a dataset of this file itself");
  expect_refusal(node + 8 + 8, root_, 8, "is not a dataset of this file itself");
  expect_refusal(node + 8 + 8, kFar, 8, "past the end of the file");
}

// The messages of the first dataset: dataspace, datatype, fill value, layout, attribute.
TEST_F(Hdf5ReaderTest, RefusesOtherDatasets) {
  const std::size_t header = number_at(find("SNOD") + 8 + 8, 8) + 16;
  const std::size_t space = header + 8;
  ASSERT_EQ(number_at(header, 2), 1u);
  ASSERT_EQ(number_at(space, 1), 1u);
  expect_refusal(header, 2, 2, "a message that datasets of shards do not have");
  expect_refusal(header, 5, 2, "is not a dataset of this file itself");
  expect_refusal(space, 2, 1, "a dataspace of another version");
  expect_refusal(space + 1, 33, 1, "a dataspace of another kind");
  expect_refusal(space + 1, 2, 1, "a structure that ends too soon");
  expect_refusal(space + 1, 0, 1, "does not have one dimension");
  expect_refusal(space + 2, 3, 1, "a dataspace of another kind");
  expect_refusal(space + 8, 0, 8, "does not have one dimension of fixed, positive size");
  expect_refusal(space + 16, 4, 8, "does not have one dimension of fixed, positive size");
  for (const std::uint64_t count : {kFar, ~std::uint64_t{0}}) {
    expect_refusal(
        [&](std::string& bytes) {
          put(bytes, space + 8, count, 8);
          put(bytes, space + 16, count, 8);
        },
        "reaches past the end of the file");
  }
  const std::size_t type = space + 24 + 8;
  ASSERT_EQ(number_at(type, 1), 0x10u);
  expect_refusal(type, 0x11, 1, "is not of type uint16");
  expect_refusal(type + 1, 1, 1, "is not of type uint16");  // big-endian
  expect_refusal(type + 1, 8, 1, "is not of type uint16");  // signed
  expect_refusal(type + 4, 1, 4, "is not of type uint16");
  expect_refusal(type + 8, 1, 2, "is not of type uint16");  // shifted by a bit
  expect_refusal(type + 10, 15, 2, "is not of type uint16");
  const std::size_t layout = type + 16 + 8 + 8 + 8;
  ASSERT_EQ(number_at(layout, 2), 0x0103u);
  expect_refusal(layout, 4, 1, "is not stored contiguously");
  expect_refusal(layout + 1, 2, 1, "is not stored contiguously");
  expect_refusal(layout + 2, sound_.size() - 5, 8, "reaches past the end of the file");
  expect_refusal(layout + 2, ~std::uint64_t{0}, 8, "reaches past the end of the file");
  expect_refusal(layout + 10, 8, 8, "storage of another size");
  expect_refusal(find(kDigest), 0, 1, "has no attribute 'sha256'");
}

TEST_F(Hdf5ReaderTest, RefusesOtherAttributes) {
  const std::size_t name = find("number3");
  expect_refusal(name - 8, 3, 1, "an attribute of another version");
  expect_refusal(name - 6, 7, 2, "an attribute whose name does not end");
  expect_refusal(name - 6, 0xFFFF, 2, "a structure that ends too soon");
  expect_refusal(name + 6, '4', 1, "two attributes of one name");
  expect_refusal(name + 6, '?', 1, "attribute 'number3' is missing or not a single uint64");
  expect_refusal(name + 8 + 4, 4, 4, "attribute 'number3' is missing or not a single uint64");
  expect_refusal(name + 8 + 4, kFar, 8, "attribute 'number3' is missing");
  const std::size_t text = find(std::string("text\0\0\0\0", 8));
  expect_refusal(text + 8 + 4, 0xFFFFFF, 4, "a structure that ends too soon");
  expect_refusal(find("words"), 0, 1, "attribute 'text' is missing or not a short text");
}

// Sound or refused, whatever it says.
TEST_F(Hdf5ReaderTest, SurvivesDamageAnywhere) {
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = sound_;
    for (std::uint32_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 10 == 0) bytes.resize(1 + random() % bytes.size());
    write_bytes(path_, bytes);
    try {
      read();
    } catch (const CorpusError& error) {
      EXPECT_EQ(std::string(error.what()).find(path_.string()), 0u);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tupelo::hdf5_reader_test

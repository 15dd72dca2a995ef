// Files that somebody made to break the reader.
#include <gtest/gtest.h>

#include "checkpoints/safetensors.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo::hostile_safetensors_test {
namespace {

std::string with_length(std::uint64_t header_bytes, const std::string& rest) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header_bytes >> (8 * i) & 0xff);
  return text + rest;
}

// A file with this header and `data_bytes` zeros.
std::string with_header(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  overwrite(folder.path() / "f", bytes);
  try {
    read_safetensors(folder.path() / "f");
  } catch (const CorruptCheckpoint& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find((folder.path() / "f").string()), std::string::npos) << text;
    return text;
  }
  return "accepted";
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

void expect_refusal(const std::string& bytes, const std::string& reason) {
  const std::string message = refusal(bytes);
  EXPECT_NE(message.find(reason), std::string::npos) << message << "\ninstead of: " << reason;
}

TEST(HostileSafetensors, TheFormOfTheseTestsIsAcceptedWhenHonest) {
  EXPECT_EQ(refusal(with_header("{" + entry("a", "F32", "[2]", "[0,8]") + "}", 8)), "accepted");
  EXPECT_EQ(refusal(with_header("{}", 0)), "accepted");
  EXPECT_EQ(refusal(with_header("{" + entry("a", "U8", "[]", "[1,2]") + "," +
                                    entry("b", "U8", "[0]", "[1,1]") + "," +
                                    entry("c", "U8", "[1]", "[0,1]") + "}   ",
                                2)),
            "accepted");
}

TEST(HostileSafetensors, LengthsThatDoNotFit) {
  expect_refusal("", "too short");
  expect_refusal("1234567", "too short");
  expect_refusal(with_length(1, ""), "claims a header of 1 bytes");
  expect_refusal(with_length(3, "{}"), "claims a header of 3 bytes");
  expect_refusal(with_length(0, ""), "does not begin with '{'");
  expect_refusal(with_length(UINT64_MAX, "{}"), "claims a header of 18446744073709551615 bytes");
  expect_refusal(with_length(UINT64_MAX - 7, "{}"), "claims a header");
  expect_refusal(with_length((16 << 20) + 1, std::string((16 << 20) + 1, ' ')), "at most 16 MB");
}

TEST(HostileSafetensors, DataThatDoesNotTile) {
  const std::string a = entry("a", "U8", "[4]", "[0,4]");
  expect_refusal(with_header("{" + a + "}", 3), "has 3 bytes of data, but its header describes 4");
  expect_refusal(with_header("{" + a + "}", 5), "has 5 bytes of data, but its header describes 4");
  expect_refusal(with_header("{}", 1), "has 1 bytes of data, but its header describes 0");
  expect_refusal(with_header("{" + a + "," + entry("b", "U8", "[4]", "[2,6]") + "}", 6),
                 "'b' overlaps");
  expect_refusal(with_header("{" + a + "," + entry("b", "U8", "[4]", "[0,4]") + "}", 4),
                 "'b' overlaps");
  expect_refusal(with_header("{" + a + "," + entry("b", "U8", "[4]", "[5,9]") + "}", 9),
                 "'b' begins after a hole");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[1,5]") + "}", 5), "after a hole");
  expect_refusal(with_header("{" + a + "," + entry("e", "U8", "[0]", "[2,2]") + "}", 4),
                 "overlaps");
}

TEST(HostileSafetensors, OffsetsThatDoNotFitTheShape) {
  expect_refusal(with_header("{" + entry("a", "F32", "[2]", "[0,4]") + "}", 4), "do not fit");
  expect_refusal(with_header("{" + entry("a", "F32", "[2]", "[0,9]") + "}", 9), "do not fit");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[4,0]") + "}", 4), "begin <= end");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[-4,0]") + "}", 4), "begin <= end");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[0]") + "}", 4), "begin <= end");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[0,4,4]") + "}", 4), "begin <= end");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "[0,\"4\"]") + "}", 4), "begin <= end");
  expect_refusal(with_header("{" + entry("a", "U8", "[4]", "{}") + "}", 4), "begin <= end");
}

TEST(HostileSafetensors, ShapesWhoseProductOverflows) {
  // 2^32 * 2^32 = 0 and 2^62 * 8 = 0 in 64 bits: a wrapped product would fit an empty file.
  expect_refusal(with_header("{" + entry("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0),
                 "product overflows");
  expect_refusal(with_header("{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}", 0),
                 "product overflows");
  expect_refusal(with_header("{" + entry("a", "U8", "[0,4611686018427387904,4]", "[0,0]") + "}", 0),
                 "product overflows");
  expect_refusal(with_header("{" + entry("a", "U8", "[9223372036854775808]", "[0,0]") + "}", 0),
                 "not a whole number");
  expect_refusal(with_header("{" + entry("a", "U8", "[-1]", "[0,0]") + "}", 0),
                 "not a whole number");
  expect_refusal(
      with_header("{" + entry("a", "U8", "[1099511627776]", "[0,1099511627776]") + "}", 8),
      "has 8 bytes of data, but its header describes 1099511627776");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_refusal(with_header("{" + entry("a", "U8", ones + "]", "[0,1]") + "}", 1), "64 sizes");
}

TEST(HostileSafetensors, EntriesOfAnotherForm) {
  expect_refusal(with_header("{\"a\":3}", 0), "exactly the keys");
  expect_refusal(with_header("{\"a\":{}}", 0), "exactly the keys");
  expect_refusal(with_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],"
                             "\"more\":1}}",
                             0),
                 "exactly the keys");
  expect_refusal(with_header("{" + entry("a", "U16", "[0]", "[0,0]") + "}", 0),
                 "a dtype other than");
  expect_refusal(with_header("{\"a\":{\"dtype\":1,\"shape\":[0],\"data_offsets\":[0,0]}}", 0),
                 "not a string");
  expect_refusal(with_header("{\"a\":{\"dtype\":\"U8\",\"shape\":0,\"data_offsets\":[0,0]}}", 0),
                 "not an array");
  expect_refusal(with_header("{\"__metadata__\":[]}", 0), "must be an object");
  expect_refusal(with_header("{\"__metadata__\":{\"a\":1}}", 0), "strings only");
}

TEST(HostileSafetensors, JsonThatIsNotStrict) {
  const std::string a = entry("a", "U8", "[4]", "[0,4]");
  expect_refusal(with_header("{" + a + "," + a + "}", 4), "the key 'a' twice");
  expect_refusal(with_header("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],"
                             "\"data_offsets\":[0,4]}}",
                             4),
                 "the key 'dtype' twice");
  expect_refusal(with_header("{" + entry("a", "U8", "[4.0]", "[0,4]") + "}", 4), "64-bit integer");
  expect_refusal(with_header("{" + entry("a", "U8", "[4e0]", "[0,4]") + "}", 4), "64-bit integer");
  expect_refusal(with_header("{" + entry("a", "U8", "[18446744073709551616]", "[0,4]") + "}", 4),
                 "64-bit integer");
  expect_refusal(with_header("{" + a + "} x", 4), "is not JSON");
  expect_refusal(with_header("{" + a, 4), "is not JSON");
  expect_refusal(with_header("{" + a + ",}", 4), "is not JSON");
  expect_refusal(with_header("{\"\xff\":1}", 0), "is not JSON");
  expect_refusal(with_header("[]", 0), "does not begin with '{'");
  expect_refusal(with_header(" {}", 0), "does not begin with '{'");
  expect_refusal(with_header("\xef\xbb\xbf{}", 0), "does not begin with '{'");
  expect_refusal(with_header(std::string("{}\0garbage", 10), 0), "NUL byte");
}

TEST(HostileSafetensors, DepthIsBounded) {
  for (const std::size_t depth : {std::size_t{33}, std::size_t{1000}, std::size_t{5000000}}) {
    const std::string arrays = "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
    expect_refusal(with_header(arrays, 0), "nested deeper than 32");
  }
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refusal(with_header(objects, 0), "nested deeper than 32");
}

TEST(HostileSafetensors, BoolsAreZeroOrOne) {
  const std::string header = "{" + entry("a", "BOOL", "[2]", "[0,2]") + "}";
  EXPECT_EQ(refusal(with_length(header.size(), header + std::string("\0\1", 2))), "accepted");
  expect_refusal(with_length(header.size(), header + std::string("\0\2", 2)),
                 "a byte other than 0 and 1");
}

}  // namespace
}  // namespace tupelo::hostile_safetensors_test

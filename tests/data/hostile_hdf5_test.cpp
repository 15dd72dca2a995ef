// HDF5 files of others that are damaged, or made to harm: each is refused before memory is
// allocated for what it declares, with one sentence that names file and dataset.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <functional>
#include <random>

#include "data/hdf5_arrays.h"
#include "data/import/number_rows.h"
#include "tests/data/foreign_hdf5.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::hostile_hdf5_test {
namespace {

namespace fs = std::filesystem;
using Change = std::function<void(const ForeignFile&)>;

constexpr std::int64_t kRows = 60, kColumns = 20;

Table table() {
  Table rows(kRows);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) rows[static_cast<std::size_t>(r)].push_back(r * c);
  }
  return rows;
}

class HostileHdf5 : public testing::Test {
 protected:
  Table read() const {
    const Hdf5Arrays arrays(file_);
    const RegularFile bytes(file_);
    const StoredArray array = arrays.array("x");
    const auto rows = open_number_rows(arrays, bytes, "x", array);
    Table result(array.rows);
    for (std::uint64_t r = 0; r < array.rows; ++r) rows->read(r, result[r]);
    return result;
  }
  void expect_refusal(const Change& make, const std::string& part) const {
    make(ForeignFile(file_));
    expect_refusal(part);
  }
  void expect_refusal(const std::string& part) const {
    const std::string message = message_of<CorpusError>([this] { read(); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(file_.string()), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  const fs::path file_ = folder_ / "f.hdf5";
};

TEST_F(HostileHdf5, RefusesWhatLeadsElsewhere) {
  const fs::path other = folder_ / "other.h5";
  ForeignFile(other).add("x", table());
  const fs::path secret = folder_ / "secret";
  write_bytes(secret, std::string(1 << 16, 's'));
  expect_refusal(
      [](const ForeignFile& file) {
        file.add("y", table());
        H5Lcreate_soft("/y", file.id(), "x", H5P_DEFAULT, H5P_DEFAULT);
      },
      "dataset 'x' is not a dataset of this file itself");
  expect_refusal(
      [](const ForeignFile& file) {
        H5Lcreate_external("other.h5", "/x", file.id(), "x", H5P_DEFAULT, H5P_DEFAULT);
      },
      "dataset 'x' is not a dataset of this file itself");
  expect_refusal(
      [&](const ForeignFile& file) {
        const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_external(layout, secret.c_str(), 0, H5F_UNLIMITED);
        file.add_empty("x", H5T_STD_I32LE, {100, 8}, layout);
        H5Pclose(layout);
      },
      "dataset 'x' is stored neither contiguously nor in chunks inside this file");
  expect_refusal(
      [](const ForeignFile& file) {
        const hsize_t sizes[] = {kRows, kColumns};
        const hid_t space = H5Screate_simple(2, sizes, nullptr);
        const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_virtual(layout, space, "other.h5", "/x", space);
        file.add_empty("x", H5T_STD_I32LE, {kRows, kColumns}, layout);
        H5Pclose(layout);
        H5Sclose(space);
      },
      "dataset 'x' is stored neither contiguously nor in chunks inside this file");
}

TEST_F(HostileHdf5, RefusesSizesThatNoFileHolds) {
  const hsize_t chunk[] = {1, 8};
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(chunked, 2, chunk);
  expect_refusal(
      [&](const ForeignFile& file) {
        file.add_empty("x", H5T_STD_I32LE, {hsize_t{1} << 40, 8}, chunked);
      },
      "more than a file of");
  expect_refusal(
      [&](const ForeignFile& file) {
        file.add_empty("x", H5T_STD_I32LE, {hsize_t{1} << 50, 8}, chunked);
      },
      "more than any file holds");
  expect_refusal(
      [&](const ForeignFile& file) {
        file.add_empty("x", H5T_STD_I32LE, {100, 8}, chunked);
      },
      "has no data for row 0");
  expect_refusal(
      [&](const ForeignFile& file) {
        file.add_empty("x", H5T_STD_I32LE, {hsize_t{1} << 40, 8});
      },
      "reaches past the end of the file");
  expect_refusal(
      [&](const ForeignFile& file) {
        file.add_empty("x", H5T_STD_I32LE, {4, 1 << 20}, chunked);
      },
      "rows of 1048576 numbers");
  H5Pclose(chunked);
  expect_refusal(
      [](const ForeignFile& file) {
        file.add("x", {2, 3}, std::vector<std::int64_t>(6), {H5T_STD_I64LE, {1 << 21, 2}});
      },
      "chunks of more than 16 MiB");
  expect_refusal(
      [](const ForeignFile& file) {
        file.add("x", {2, 100}, std::vector<std::int64_t>(200),
                 {.type = H5T_STD_I8LE, .chunk = {1 << 23, 1}, .deflate = true});
      },
      "one row takes more than 256 MiB");
}

TEST_F(HostileHdf5, RefusesFiltersByTheirNames) {
  for (const auto& [set, name] :
       {std::pair<herr_t (*)(hid_t), const char*>{H5Pset_nbit, "5 (nbit)"},
        {[](hid_t layout) { return H5Pset_scaleoffset(layout, H5Z_SO_INT, 0); },
         "6 (scaleoffset)"}}) {
    expect_refusal(
        [&](const ForeignFile& file) {
          const hid_t layout = ForeignFile::layout_of({.chunk = {4, 4}});
          set(layout);
          file.add_empty("x", H5T_STD_I32LE, {kRows, kColumns}, layout);
          H5Pclose(layout);
        },
        std::string("is stored through filter ") + name);
  }
}

// A chunk of 64 bytes, say its sizes; its data expand to 8 MiB.
TEST_F(HostileHdf5, RefusesChunksThatExpandTooFar) {
  const std::string zeros(8 << 20, '\0');
  uLongf bytes = ::compressBound(zeros.size());
  std::string bomb(bytes, '\0');
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(bomb.data()), &bytes,
                       reinterpret_cast<const Bytef*>(zeros.data()), zeros.size()),
            Z_OK);
  expect_refusal(
      [&](const ForeignFile& file) {
        const hid_t layout = ForeignFile::layout_of({.chunk = {4, 4}, .deflate = true});
        file.add_empty("x", H5T_STD_I32LE, {4, 4}, layout);
        const hid_t dataset = H5Dopen2(file.id(), "x", H5P_DEFAULT);
        const hsize_t at[] = {0, 0};
        ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, bytes, bomb.data()), 0);
        H5Dclose(dataset);
        H5Pclose(layout);
      },
      "dataset 'x' at row 0 has compressed data that is damaged or expands to more");
}

TEST_F(HostileHdf5, FindsDamageBehindAChecksum) {
  ForeignFile(file_).add("x", table(),
                         {.type = H5T_STD_I32LE, .chunk = {60, 20}, .fletcher32 = true});
  std::uint64_t place = 0;
  {
    const Hdf5Arrays arrays(file_);
    place = arrays.chunk("x", 0, 0).offset;
  }
  EXPECT_EQ(read(), table());
  flip_bit(file_, place + 1234, 3);
  expect_refusal("its checksum (fletcher32) is wrong");
}

class HostileHeap : public HostileHdf5 {
 protected:
  HostileHeap() {
    ForeignFile(file_).add_varying("x", rows_, H5T_STD_I16LE);
    const Hdf5Arrays arrays(file_);
    place_ = arrays.array("x").offset;
  }
  // Row 1 now says this about where it lies.
  void say(std::uint64_t at, std::uint64_t value, std::size_t bytes) const {
    std::string content = read_bytes(file_);
    content.replace(place_ + 16 + at, bytes, reinterpret_cast<const char*>(&value), bytes);
    write_bytes(file_, content);
  }

  const Table rows_ = {{1, 2, 3}, {4, 5}, {}, {6, 7, 8, 9}};
  std::uint64_t place_ = 0;
};

TEST_F(HostileHeap, TheUnspoiledOneIsFine) { EXPECT_EQ(read(), rows_); }

TEST_F(HostileHeap, RefusesLengthsBeyondTheHeap) {
  say(0, 60, 4);
  expect_refusal("dataset 'x' at row 1 is not in the file's heap as long as it should be");
  say(0, 0xFFFFFFFF, 4);
  expect_refusal("declares 4294967295 numbers");
}

TEST_F(HostileHeap, RefusesPlacesThatAreNoHeap) {
  say(12, 77, 4);
  expect_refusal("dataset 'x' at row 1 is not in the file's heap");
  say(4, 0, 8);
  expect_refusal("dataset 'x' at row 1 does not lead to a heap of this file");
  say(4, ~std::uint64_t{0} - 4, 8);
  expect_refusal("dataset 'x' at row 1 reaches past the end of the file");
}

TEST_F(HostileHeap, RefusesChunkedOnes) {
  expect_refusal([&](const ForeignFile& file) { file.add_varying("x", rows_, H5T_STD_I16LE, {2}); },
                 "rows of varying length in chunks");
}

TEST_F(HostileHdf5, RefusesWhatIsNoFile) {
  write_bytes(file_, "");
  expect_refusal("");
  write_bytes(file_, std::string(5000, 'x'));
  expect_refusal("is not an HDF5 file");
  fs::remove(file_);
  expect_refusal("the file is missing");
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  expect_refusal("is not a regular file");
  fs::remove(file_);
  fs::create_directory(file_);
  expect_refusal("is not a regular file");
}

// Whatever is flipped or cut off, elements are read from within the file or refused.
TEST_F(HostileHdf5, SurvivesDamageAnywhere) {
  std::mt19937 random(3);
  const Table varying = {{1, 2, 3}, {4, 5}, {}, {6, 7, 8, 9}};
  const std::vector<Change> makers = {
      [](const ForeignFile& file) { file.add("x", table()); },
      [](const ForeignFile& file) {
        file.add("x", table(), {H5T_STD_I32LE, {16, 7}, true, true, true});
      },
      [&](const ForeignFile& file) { file.add_varying("x", varying, H5T_STD_I16LE); }};
  for (const Change& make : makers) {
    make(ForeignFile(file_));
    const std::string good = read_bytes(file_);
    for (int i = 0; i < 250; ++i) {
      std::string bad = good;
      const std::size_t at = random() % good.size();
      if (i % 5 == 0) {
        bad.resize(at);
      } else {
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      }
      write_bytes(file_, bad);
      try {
        read();
      } catch (const CorpusError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace tupelo::hostile_hdf5_test

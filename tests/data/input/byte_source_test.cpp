#include "data/input/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <random>
#include <vector>

#include "data/errors.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::byte_source_test {
namespace {

namespace fs = std::filesystem;

std::string gzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string zstd(const std::string& bytes, int window_log = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string result(ZSTD_compressBound(bytes.size()) + 64, '\0');
  // In two steps: a known size would shrink the window.
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer output = {result.data(), result.size(), 0};
  ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue);
  EXPECT_EQ(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  result.resize(output.pos);
  return result;
}

// Compresses to about half.
std::string made_up_bytes(std::size_t size, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>('a' + random() % 16);
  return bytes;
}

class ByteSources : public testing::Test {
 protected:
  std::string read(const std::string& name, std::size_t step = 100'000) {
    const auto source = open_byte_source(folder_ / name);
    std::string all, block(step, '\0');
    while (const std::size_t got = source->read(block.data(), step)) all.append(block, 0, got);
    EXPECT_EQ(source->read(block.data(), step), 0u);
    EXPECT_EQ(source->file_bytes(), fs::file_size(folder_ / name));
    return all;
  }
  std::string read_bytes_of(const std::string& bytes, const std::string& name = "file",
                            std::size_t step = 100'000) {
    write_bytes(folder_ / name, bytes);
    return read(name, step);
  }
  std::string complaint_about(const std::string& bytes, const std::string& name = "file") {
    return message_of<CorpusError>([&] { read_bytes_of(bytes, name); });
  }
  std::string path(const std::string& name = "file") const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(ByteSources, GiveAFileAsItIs) {
  const std::string bytes = made_up_bytes(300'000);
  EXPECT_EQ(read_bytes_of(bytes), bytes);
  EXPECT_EQ(read_bytes_of(""), "");
  EXPECT_EQ(read_bytes_of("\x1F"), "\x1F");
}

TEST_F(ByteSources, DecompressWhateverTheName) {
  const std::string bytes = made_up_bytes(3'000'000);
  for (const std::string name : {"text.txt.gz", "text.txt"}) {
    EXPECT_EQ(read_bytes_of(gzip(bytes), name), bytes);
  }
  for (const std::string name : {"text.txt.zst", "text.txt.zstd", "text.txt"}) {
    EXPECT_EQ(read_bytes_of(zstd(bytes), name), bytes);
  }
  EXPECT_EQ(read_bytes_of(gzip("")), "");
  EXPECT_EQ(read_bytes_of(zstd("")), "");
}

TEST_F(ByteSources, ReadInStepsOfAnySize) {
  const std::string bytes = made_up_bytes(2000);
  for (const std::size_t step : {1u, 7u, 1999u}) {
    EXPECT_EQ(read_bytes_of(gzip(bytes), "file", step), bytes);
    EXPECT_EQ(read_bytes_of(zstd(bytes), "file", step), bytes);
  }
}

TEST_F(ByteSources, GoOnBehindTheFirstMember) {
  const std::string one = made_up_bytes(200'000, 1), two = made_up_bytes(200'000, 2);
  EXPECT_EQ(read_bytes_of(gzip(one) + gzip("") + gzip(two)), one + two);
  EXPECT_EQ(read_bytes_of(zstd(one) + zstd("") + zstd(two)), one + two);
  EXPECT_EQ(read_bytes_of(gzip(one) + std::string(1000, '\0')), one);
  // A skippable frame of three bytes, before and between.
  const std::string skippable("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);
  EXPECT_EQ(read_bytes_of(skippable + zstd(one) + skippable + zstd(two)), one + two);
}

TEST_F(ByteSources, SayWhereAnArchiveEndsTooEarly) {
  const std::string bytes = made_up_bytes(500'000);
  for (const std::string& whole : {gzip(bytes), zstd(bytes)}) {
    const std::string kind = whole[0] == '\x1F' ? "gzip" : "zstd";
    for (const std::size_t size : {std::size_t{12}, whole.size() / 2, whole.size() - 1}) {
      EXPECT_EQ(complaint_about(whole.substr(0, size)), path() + ": the " + kind +
                                                            " data ends too early, at byte " +
                                                            std::to_string(size) + " of the file");
    }
  }
}

TEST_F(ByteSources, SayWhereAnArchiveIsDamaged) {
  const std::string bytes = made_up_bytes(500'000);
  for (std::string whole : {gzip(bytes), zstd(bytes)}) {
    whole[whole.size() / 2] ^= 0x10;
    const std::string complaint = complaint_about(whole);
    EXPECT_NE(complaint.find(path() + ": the "), std::string::npos) << complaint;
    EXPECT_NE(complaint.find("data is damaged ("), std::string::npos) << complaint;
    EXPECT_NE(complaint.find(" of the file"), std::string::npos) << complaint;
  }
  EXPECT_NE(complaint_about(gzip(bytes) + "rubbish").find("damaged"), std::string::npos);
  EXPECT_NE(complaint_about(zstd(bytes) + "rubbish").find("damaged"), std::string::npos);
}

TEST_F(ByteSources, NoChangedByteOfAnArchivePasses) {
  const std::string bytes = made_up_bytes(300);
  for (const std::string& whole : {gzip(bytes), zstd(bytes)}) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] ^= 0x55;
      std::string read;
      try {
        read = read_bytes_of(damaged, "file");
      } catch (const CorpusError&) {
        continue;
      }
      // What remains is the header's free text (time, system), or no archive any more.
      EXPECT_TRUE(read == bytes || read == damaged) << at;
    }
  }
}

TEST_F(ByteSources, RefuseAWindowWithoutBounds) {
  const std::string bytes = made_up_bytes(5000);
  EXPECT_EQ(read_bytes_of(zstd(bytes, 27)), bytes);
  EXPECT_NE(complaint_about(zstd(bytes, 28)).find("a window of more than 128 MiB"),
            std::string::npos);
}

TEST_F(ByteSources, HoldANameToItsPromise) {
  EXPECT_EQ(complaint_about("plain", "a.gz"),
            path("a.gz") + ": is named .gz, but does not begin as gzip does");
  EXPECT_EQ(complaint_about("", "a.zst"),
            path("a.zst") + ": is named .zst, but does not begin as zstd does");
}

TEST_F(ByteSources, NoticeAFileThatChangesWhileItIsRead) {
  const std::string bytes = made_up_bytes(300'000);
  const auto change_after_a_block = [&](const std::function<void()>& change) {
    write_bytes(folder_ / "file", bytes);
    const auto source = open_byte_source(folder_ / "file");
    std::string block(100'000, '\0');
    source->read(block.data(), block.size());
    change();
    return message_of<FileChanged>([&] {
      while (source->read(block.data(), block.size()) > 0) continue;
    });
  };
  const std::string start = path() + ": was changed while it was in use: it had 300000 bytes";
  EXPECT_EQ(change_after_a_block([&] { fs::resize_file(folder_ / "file", 150'000); }),
            start + " and now has 150000");
  EXPECT_EQ(change_after_a_block([&] { fs::resize_file(folder_ / "file", 5); }),
            start + " and now has 5");
  EXPECT_EQ(change_after_a_block([&] { std::ofstream(folder_ / "file", std::ios::app) << "more"; }),
            start + " and now has 300004");
  EXPECT_EQ(change_after_a_block([&] {
              fs::last_write_time(folder_ / "file",
                                  fs::file_time_type::clock::now() + std::chrono::hours(1));
            }),
            start + " and now has 300000, written later");
}

TEST_F(ByteSources, NoticeAFileThatIsNoLongerTheOneThatWasListed) {
  write_bytes(folder_ / "file", "first");
  const FileState state = file_state(folder_ / "file");
  EXPECT_EQ(open_byte_source(folder_ / "file", &state)->file_bytes(), 0u);
  write_bytes(folder_ / "file", "second one");
  EXPECT_EQ(message_of<FileChanged>([&] { open_byte_source(folder_ / "file", &state); }),
            path() + ": was changed while it was in use: it had 5 bytes and now has 10");
}

TEST_F(ByteSources, ReadAllHasABound) {
  write_bytes(folder_ / "file", made_up_bytes(2000));
  EXPECT_EQ(read_all(*open_byte_source(folder_ / "file"), 2000, "f").size(), 2000u);
  EXPECT_EQ(
      message_of<CorpusError>([&] { read_all(*open_byte_source(folder_ / "file"), 1999, "f"); }),
      "f: is longer than 1999 bytes, the most of a file that is read as a whole");
}

}  // namespace
}  // namespace tupelo::byte_source_test

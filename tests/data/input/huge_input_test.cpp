// Input that is larger than memory should be, prepared in a process whose memory is measured.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <fstream>

#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMegabyte = 1'000'000;

class HugeInput : public testing::Test {
 protected:
  HugeInput() {
    write_bytes(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nstone\n风\n");
  }
  // "stone风stone风..." of that many bytes without an end of line.
  static std::string piece_of_line(std::size_t bytes) {
    std::string piece;
    while (piece.size() + 8 <= bytes) piece += "stone风";
    return piece;
  }
  PrepareOptions options(const std::string& input) const {
    PrepareOptions options;
    options.inputs = {folder_ / input};
    options.output = folder_ / ("corpus of " + input);
    options.vocab_file = folder_ / "vocab.txt";
    options.held_out = 0;
    options.threads = 2;
    options.shard_tokens = 1 << 20;
    return options;
  }
  // Prepares in a child; returns the most memory it used and expects the number of documents.
  std::uint64_t peak_bytes_of(const PrepareOptions& chosen, std::uint64_t documents) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        ::_exit(prepare_corpus(chosen).documents == documents ? 0 : 1);
      } catch (...) {
        ::_exit(2);
      }
    }
    int status = 0;
    rusage usage = {};
    EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    RecordProperty("peak_bytes", std::to_string(usage.ru_maxrss * 1024));
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  }

  TemporaryFolder folder_;
};

TEST_F(HugeInput, TwoHundredMegabytesOnOneLine) {
  const std::string piece = piece_of_line(kMegabyte);
  const auto write = [&](const std::string& name, int pieces) {
    std::ofstream file(folder_ / name, std::ios::binary);
    for (int i = 0; i < pieces; ++i) file << piece;
  };
  write("short.txt", 100);
  write("long.txt", 200);
  ASSERT_EQ(fs::file_size(folder_ / "long.txt"), 200 * kMegabyte);
  PrepareOptions few = options("short.txt"), many = options("long.txt");
  few.format = many.format = TextFormat::kLinePerDocument;
  many.force = true;
  // Without a space near, lines are cut between characters behind at most 1 MiB.
  EXPECT_LT(peak_bytes_of(many, 191), peak_bytes_of(few, 96) + 80 * kMegabyte);
  many.format = TextFormat::kBlankLine;
  EXPECT_LT(peak_bytes_of(many, 13), 1000 * kMegabyte);
}

TEST_F(HugeInput, ASmallArchiveOfMuchText) {
  // Frame behind frame of the same; the test itself must stay small, since its child starts from
  // it.
  const std::string piece = piece_of_line(kMegabyte) + "\n\n";
  std::string frame(ZSTD_compressBound(piece.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), piece.data(), piece.size(), 3));
  ASSERT_LT(frame.size(), piece.size() / 1000);
  std::string archive;
  for (int i = 0; i < 300; ++i) archive += frame;
  write_bytes(folder_ / "text.txt.zst", archive);
  EXPECT_LT(peak_bytes_of(options("text.txt.zst"), 300), 260 * kMegabyte);
}

}  // namespace
}  // namespace tupelo

#include "data/regular_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <system_error>
#include <vector>

#include "tests/data/sample_corpus.h"

namespace tupelo::regular_file_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const RegularFile& file, std::uint64_t offset, std::size_t count) {
  std::string text(count, '\0');
  file.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(RegularFile, ReadsAnyPart) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "0123456789");
  RegularFile opened(folder / "f");
  const RegularFile file(std::move(opened));
  EXPECT_EQ(file.bytes(), 10u);
  EXPECT_EQ(text_of(file, 0, 10), "0123456789");
  EXPECT_EQ(text_of(file, 9, 1), "9");
  EXPECT_EQ(text_of(file, 10, 0), "");
}

TEST(RegularFile, RefusesWhatTheFileDoesNotHave) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "0123456789");
  const RegularFile file(folder / "f");
  for (const std::uint64_t offset : {std::uint64_t{10}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    EXPECT_THROW(text_of(file, offset, 1), CorpusError);
  }
  EXPECT_EQ(message_of<CorpusError>([&] { text_of(file, 8, 3); }),
            (folder / "f").string() + ": has only 10 bytes, but points to 3 more from 8 on");
  fs::resize_file(folder / "f", 4);
  EXPECT_EQ(text_of(file, 0, 4), "0123");
  EXPECT_EQ(message_of<CorpusError>([&] { text_of(file, 0, 10); }),
            (folder / "f").string() + ": ends at byte 4, but had 10 bytes when it was opened");
}

TEST(RegularFile, RefusesAllElse) {
  const TemporaryFolder folder;
  const auto message = [&](const fs::path& path) {
    return message_of<CorpusError>([&] { RegularFile file(path); });
  };
  EXPECT_EQ(message(folder / "f"), (folder / "f").string() + ": the file is missing");
  EXPECT_EQ(message(folder.path()), folder.path().string() + ": is not a regular file");
  EXPECT_EQ(message("/dev/zero"), "/dev/zero: is not a regular file");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(message(folder / "fifo"), (folder / "fifo").string() + ": is not a regular file");
  write_bytes(folder / "empty", "");
  EXPECT_EQ(message(folder / "empty"), (folder / "empty").string() + ": the file is empty");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THROW(RegularFile(folder / "loop"), std::system_error);
}

TEST(RegularFile, ASoftLimitOfOpenFilesIsRaised) {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "x");
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_GT(before.rlim_max, 200u);
  const struct rlimit tight = {64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<RegularFile> files;
  for (int i = 0; i < 100; ++i) files.emplace_back(folder / "f");
  for (const RegularFile& file : files) EXPECT_EQ(text_of(file, 0, 1), "x");
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace tupelo::regular_file_test

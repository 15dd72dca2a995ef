#include "data/text_source.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <system_error>

#include "tests/data/sample_corpus.h"

namespace tupelo::text_source_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class TextSources : public testing::Test {
 protected:
  void make(const Names& names) {
    for (const std::string& name : names) {
      fs::create_directories((folder_ / name).parent_path());
      write_bytes(folder_ / name, name);
    }
  }
  Names list(const std::string& input, SkippedEntries* skipped = nullptr) {
    Names names;
    for (const TextSource& source :
         list_text_sources({folder_ / input}, TextFormat::kAuto, skipped)) {
      names.push_back(source.file.lexically_relative(folder_.path()).string());
    }
    return names;
  }
  TextFormat format_of(const std::string& name) {
    make({name});
    return list_text_sources({folder_ / name}, TextFormat::kAuto).front().format;
  }

  TemporaryFolder folder_;
};

TEST_F(TextSources, PatternsStandForFiles) {
  make({"a/1.txt", "a/2.jsonl", "a/b/3.txt", "a/b/c/4.txt", "a/.hidden/5.txt", "a/.6.txt",
        "a/中文.txt", "a/10.txt"});
  EXPECT_EQ(list("a/*.txt"), (Names{"a/1.txt", "a/10.txt", "a/中文.txt"}));
  EXPECT_EQ(list("a/?.txt"), (Names{"a/1.txt"}));
  EXPECT_EQ(list("a/??.txt"), (Names{"a/10.txt", "a/中文.txt"}));
  EXPECT_EQ(list("a/**/*.txt"),
            (Names{"a/1.txt", "a/10.txt", "a/b/3.txt", "a/b/c/4.txt", "a/中文.txt"}));
  EXPECT_EQ(list("a/*/*.txt"), (Names{"a/b/3.txt"}));
  EXPECT_EQ(list("*/b/**"), (Names{"a/b/3.txt", "a/b/c/4.txt"}));
  EXPECT_EQ(list("a/.*.txt"), (Names{"a/.6.txt"}));
  EXPECT_EQ(list("a/*1*"), (Names{"a/1.txt", "a/10.txt"}));
  EXPECT_THROW(list("a/*.html"), std::invalid_argument);
}

TEST_F(TextSources, WhatIsThereIsNoPattern) {
  make({"a*b.txt", "acb.txt"});
  EXPECT_EQ(list("a*b.txt"), (Names{"a*b.txt"}));
  EXPECT_EQ(list("a*b.tx?"), (Names{"a*b.txt", "acb.txt"}));
}

TEST_F(TextSources, LoopsOfLinksEnd) {
  make({"in/a.txt", "in/sub/b.txt", "beside/c.txt"});
  fs::create_directory_symlink(folder_ / "in", folder_ / "in/sub/up");
  fs::create_directory_symlink("self", folder_ / "in/self");
  fs::create_directory_symlink(folder_ / "beside", folder_ / "in/x");
  fs::create_directory_symlink(folder_ / "beside", folder_ / "in/y");
  fs::create_symlink("a.txt", folder_ / "in/z.txt");
  fs::create_symlink("gone.txt", folder_ / "in/dangling.txt");
  SkippedEntries skipped;
  EXPECT_EQ(list("in", &skipped), (Names{"in/a.txt", "in/sub/b.txt", "in/x/c.txt"}));
  EXPECT_EQ(skipped.repeated, 3u);
  EXPECT_EQ(skipped.dangling, 2u);
  EXPECT_EQ(list("in/**/*.txt"), (Names{"in/a.txt", "in/sub/b.txt"}));
}

TEST_F(TextSources, WhatIsNoFileIsSkippedInFoldersAndRefusedByName) {
  make({"in/a.txt"});
  ASSERT_EQ(::mkfifo((folder_ / "in/fifo").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string place = (folder_ / "in/socket").string();
  ASSERT_LT(place.size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, place.c_str());
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  SkippedEntries skipped;
  EXPECT_EQ(list("in", &skipped), (Names{"in/a.txt"}));
  EXPECT_EQ(skipped.special, 2u);
  EXPECT_THROW(list("in/fifo"), std::invalid_argument);
  EXPECT_THROW(list("in/socket"), std::invalid_argument);
  ::close(socket);
}

TEST_F(TextSources, AFileIsTakenOnceForEachTimeItIsNamed) {
  make({"in/a.txt"});
  fs::create_hard_link(folder_ / "in/a.txt", folder_ / "in/b.txt");
  EXPECT_EQ(list("in"), (Names{"in/a.txt"}));
  EXPECT_EQ(list_text_sources({folder_ / "in", folder_ / "in/a.txt"}, TextFormat::kAuto).size(),
            2u);
}

// As when a file is replaced by another copy that keeps its time.
TEST_F(TextSources, TheStateOfAFileTellsARestoredTimeOfModification) {
  make({"a.txt"});
  const FileState before = file_state(folder_ / "a.txt");
  const auto time = fs::last_write_time(folder_ / "a.txt");
  FileState after = before;
  for (int i = 0; i < 100'000 && after.changed_ns == before.changed_ns; ++i) {  // a clock's tick
    write_bytes(folder_ / "a.txt", "other");
    fs::last_write_time(folder_ / "a.txt", time);
    after = file_state(folder_ / "a.txt");
  }
  EXPECT_EQ(after.modified_ns, before.modified_ns);
  EXPECT_GT(after.changed_ns, before.changed_ns);
}

TEST_F(TextSources, NamesTellFormats) {
  EXPECT_EQ(format_of("a.txt"), TextFormat::kBlankLine);
  EXPECT_EQ(format_of("a"), TextFormat::kBlankLine);
  EXPECT_EQ(format_of("a.jsonl.zst"), TextFormat::kJsonLines);
  EXPECT_EQ(format_of("a.ndjson"), TextFormat::kJsonLines);
  EXPECT_EQ(format_of("A.HTML.GZ"), TextFormat::kHtml);
  EXPECT_EQ(format_of("a.tsv.gz"), TextFormat::kTabSeparated);
  EXPECT_EQ(format_of("a.html"), TextFormat::kHtml);
  EXPECT_EQ(format_of("a.htm.zstd"), TextFormat::kHtml);
  EXPECT_EQ(format_of("a.rst"), TextFormat::kRestructured);
  EXPECT_EQ(format_of("a.mo"), TextFormat::kMessageCatalogue);
  EXPECT_EQ(format_of("ls.1.gz"), TextFormat::kManual);
  EXPECT_EQ(format_of("man3/Foo.3pm.gz"), TextFormat::kManual);
  EXPECT_EQ(format_of("versions/a.3pm"), TextFormat::kBlankLine);
  EXPECT_EQ(format_of("a.2024"), TextFormat::kBlankLine);
  EXPECT_EQ(format_of("a.txt.gz"), TextFormat::kBlankLine);
}

}  // namespace
}  // namespace tupelo::text_source_test

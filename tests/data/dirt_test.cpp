// What lies about in folders of text: none of it stops a preparation that was told to go on.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "data/errors.h"
#include "data/input/byte_source.h"
#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::dirt_test {
namespace {

namespace fs = std::filesystem;

class Dirt : public testing::Test {
 protected:
  Dirt() {
    fs::create_directory(folder_ / "in");
    write_bytes(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nstone\n风\n!\n");
  }
  PrepareOptions options() const {
    PrepareOptions options;
    options.inputs = {folder_ / "in"};
    options.output = folder_ / "corpus";
    options.vocab_file = folder_ / "vocab.txt";
    options.held_out = 0;
    options.force = true;
    return options;
  }
  void put(const std::string& name, const std::string& bytes) {
    write_bytes(folder_ / "in" / name, bytes);
  }

  TemporaryFolder folder_;
};

TEST_F(Dirt, AFolderOfEverythingIsPreparedAndCounted) {
  put("a.txt", "stone stone\n\n风\n");
  put("b-empty.txt", "");
  put("c-blank.txt", "\n \n\n");
  put("d-zeros.txt", std::string("stone\0stone\n\nst\0ne", 18));
  put("e-emoji.txt", "😀😀🎉\n\n👩‍👩‍👧‍👦\n");
  put("f-symbols.txt", "!!! ??? ***\n\n———…\n");
  put("g-mixed.txt", "风 stone \xD6\xD0\xCE\xC4 风\n\n\xEF\xBB\xBF stone \xFF\n");
  put("h-binary.txt", std::string(4000, '\0'));
  put("i-broken.txt.gz", "\x1F\x8B\x08 and so on");
  put("j.jsonl", "{\"text\": \"stone\"}\nrubbish\n");
  put("k.png", "\x89PNG\r\n\x1A\n and so on");
  ASSERT_EQ(::mkfifo((folder_ / "in/l-fifo").c_str(), 0600), 0);
  fs::create_directory_symlink(".", folder_ / "in/m-loop");
  fs::create_symlink("n-dangling", folder_ / "in/n-dangling");

  PrepareOptions chosen = options();
  EXPECT_THROW(prepare_corpus(chosen), CorpusError);
  chosen.damaged_input = DamagedInput::kSkip;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_EQ(report.documents, 11u);
  EXPECT_EQ(report.empty_documents, 0u);
  EXPECT_EQ(report.invalid_bytes, 7u);
  EXPECT_EQ(report.damaged_files, 3u);
  EXPECT_EQ(report.damaged_records, 1u);
  EXPECT_EQ(report.damage.size(), 4u);
  EXPECT_EQ(report.empty_files, 2u);
  EXPECT_EQ(report.special_files, 1u);
  EXPECT_EQ(report.repeated_files, 1u);
  EXPECT_EQ(report.dangling_links, 1u);
  ASSERT_EQ(report.sources.size(), 11u);
  EXPECT_EQ(report.sources[3].documents, 2u);
  EXPECT_EQ(report.sources[3].invalid_bytes, 2u);
  EXPECT_EQ(report.sources[3].text_bytes, 16u + 2 * 2);
  EXPECT_NE(report.sources[8].damage.find("i-broken.txt.gz: the gzip data"), std::string::npos);

  chosen.invalid_bytes = InvalidBytes::kDropLine;
  const PrepareReport dropped = prepare_corpus(chosen);
  EXPECT_EQ(dropped.invalid_bytes, 7u);
  EXPECT_EQ(dropped.dropped_lines, 4u);
  EXPECT_EQ(dropped.documents, 7u);
  EXPECT_EQ(dropped.empty_documents, 4u);
}

TEST_F(Dirt, TextInSeveralEncodingsBecomesOne) {
  std::string chinese;
  for (int i = 0; i < 100; ++i) chinese += "\xB7\xE7\n\n";  // 风
  put("a.txt", chinese);
  put("b.txt", "风\n");
  put("c.txt", std::string("\xFF\xFE\xCE\x98", 4));
  PrepareOptions chosen = options();
  chosen.encoding = TextEncoding::kAuto;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_EQ(report.documents, 102u);
  EXPECT_EQ(report.unknown_tokens, 0u);
  EXPECT_EQ(report.invalid_bytes, 0u);
}

TEST_F(Dirt, AFileThatChangesBetweenTheReadingsIsAnErrorEvenWhenSkipping) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "stone 风\n\n";
  put("a.txt", text);
  PrepareOptions chosen = options();
  chosen.vocab_file.reset();
  chosen.train_vocab_size = 12;
  chosen.damaged_input = DamagedInput::kSkip;
  bool shrunk = false;
  const std::string message = message_of<FileChanged>([&] {
    prepare_corpus(chosen, [&](const PrepareProgress& progress) {
      if (shrunk || progress.phase != "tokenize") return;
      fs::resize_file(folder_ / "in/a.txt", text.size() / 2);
      shrunk = true;
    });
  });
  EXPECT_NE(message.find("a.txt: was changed while it was in use: it had 2200000 bytes and now has "
                         "1100000"),
            std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(folder_ / "corpus"));
}

TEST_F(Dirt, ATruncatedArchiveGivesWhatItHas) {
  // gzip with two stored blocks of 0xEA60 = 60,000 bytes, of which a third should follow.
  std::string block;
  while (block.size() < 60'000) block += "stone 风!\n\n";
  ASSERT_EQ(block.size(), 60'000u);
  const std::string stored = std::string("\0\x60\xEA\x9F\x15", 5) + block;
  put("a.txt.gz", std::string("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10) + stored + stored);
  put("b.txt", "stone");
  PrepareOptions chosen = options();
  const std::string reason = message_of<CorpusError>([&] { prepare_corpus(chosen); });
  EXPECT_NE(reason.find("a.txt.gz: the gzip data ends too early, at byte 120020 of the file"),
            std::string::npos)
      << reason;
  chosen.damaged_input = DamagedInput::kSkip;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_EQ(report.sources[0].documents, 10'000u);
  EXPECT_EQ(report.sources[0].damage, reason);
  EXPECT_EQ(report.documents, 10'001u);
  EXPECT_EQ(report.damage, std::vector<std::string>{reason});
}

TEST_F(Dirt, AFifoThatTookAFilesPlaceDoesNotHoldUp) {
  put("a.txt", "stone\n");
  PrepareOptions chosen = options();
  chosen.vocab_file.reset();
  chosen.train_vocab_size = 12;
  chosen.min_count = 1;
  bool replaced = false;
  EXPECT_EQ(message_of<CorpusError>([&] {
              prepare_corpus(chosen, [&](const PrepareProgress& progress) {
                if (replaced || progress.phase != "vocabulary") return;
                fs::remove(folder_ / "in/a.txt");
                ::mkfifo((folder_ / "in/a.txt").c_str(), 0600);
                replaced = true;
              });
            }),
            (folder_ / "in/a.txt").string() + ": is not a regular file");
}

}  // namespace
}  // namespace tupelo::dirt_test

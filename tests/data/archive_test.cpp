// An archive gives the corpus back byte for byte, and is refused when anything in it is not what it
// was.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>

#include "data/archive/archive_index.h"
#include "data/archive/corpus_archive.h"
#include "data/archive/zstd_file.h"
#include "data/content_digest.h"
#include "data/input/byte_source.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/load_tokenizer.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::archive_test {
namespace {

namespace fs = std::filesystem;

std::string vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (std::uint32_t id = 5; id < kSampleVocabulary; ++id)
    text.append("w").append(std::to_string(id)).append("\n");
  return text;
}

class Archive : public testing::Test {
 protected:
  Archive() {
    write_bytes(folder_ / "vocab.txt", vocabulary());
    const auto tokenizer = load_tokenizer(folder_ / "vocab.txt", {});
    CorpusInfo info = sample_info();
    info.tokenizer_fingerprint = tokenizer->fingerprint();
    info.reserved_ids = tokenizer->reserved_ids();
    write_sample_corpus(corpus_, sample_documents(9, 3000, 60), 0.1, 20000, info);
    store_tokenizer(corpus_ / kTokenizerFolder, *tokenizer);
    write_bytes(corpus_ / "report.json", "{}\n");
  }

  ArchiveReport archive(const ArchiveOptions& options = {}) const {
    return archive_corpus(corpus_, archive_, options);
  }
  ArchiveReport restore(const ArchiveOptions& options = {}) const {
    return restore_corpus(archive_, back_, options);
  }
  // The archive is not restored, and nothing is left where it would have been.
  void expect_refusal(const std::string& part) const {
    const std::string message = message_of<CorpusError>([this] { restore(); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    expect_nothing_beside();
  }
  void expect_nothing_beside() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_EQ(entry.path().filename().string().find("unfinished"), std::string::npos);
    }
    EXPECT_FALSE(fs::exists(back_));
  }
  // Changes the archive's index; digests of files stay as they are.
  void change_index(const std::function<void(nlohmann::json&)>& change) const {
    auto json = nlohmann::json::parse(read_bytes(archive_ / kArchiveIndex));
    change(json);
    write_bytes(archive_ / kArchiveIndex, json.dump());
  }

  TemporaryFolder folder_;
  const fs::path corpus_ = folder_ / "c", archive_ = folder_ / "a", back_ = folder_ / "b";
};

TEST_F(Archive, GivesTheCorpusBackByteForByte) {
  const ArchiveReport archived = archive({.threads = 3});
  const auto files = tree_of(corpus_);
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : files) bytes += content.size();
  EXPECT_EQ(archived.files, files.size());
  EXPECT_EQ(archived.bytes, bytes);
  EXPECT_LT(archived.compressed_bytes, bytes * 9 / 10);
  const ArchiveReport restored = restore({.threads = 2});
  EXPECT_EQ(restored.bytes, bytes);
  EXPECT_EQ(restored.compressed_bytes, archived.compressed_bytes);
  EXPECT_EQ(tree_of(back_), files);
}

TEST_F(Archive, HoldsFilesThatZstdReads) {
  archive();
  for (const auto& [name, content] : tree_of(corpus_)) {
    const fs::path file = archive_ / (name + ".zst");
    const auto source = open_byte_source(file);
    EXPECT_EQ(read_all(*source, 1 << 24, "f"), content);
  }
}

TEST_F(Archive, IsTheSameForAnyNumberOfThreads) {
  archive();
  const auto alone = tree_of(archive_);
  archive({.threads = 4, .force = true});
  EXPECT_EQ(tree_of(archive_), alone);
}

TEST_F(Archive, FindsDamageInEveryFile) {
  archive();
  const auto files = tree_of(archive_);
  std::mt19937 random(1);
  for (const auto& [name, content] : files) {
    if (name == kArchiveIndex) continue;
    flip_bit(archive_ / name, random() % content.size(), static_cast<int>(random() % 8));
    expect_refusal(name);
    write_bytes(archive_ / name, content.substr(0, content.size() - 1));
    expect_refusal(name);
    fs::remove(archive_ / name);
    expect_refusal(name);
    write_bytes(archive_ / name, content);
  }
  restore();
}

TEST_F(Archive, FindsDamageInItsIndex) {
  archive();
  const std::string good = read_bytes(archive_ / kArchiveIndex);
  const auto expect = [&](const std::function<void(nlohmann::json&)>& change,
                          const std::string& part) {
    change_index(change);
    expect_refusal(part);
    write_bytes(archive_ / kArchiveIndex, good);
  };
  for (const char* name :
       {"../out", "/tmp/out", "train/../../out", "", "train/", "./index.json", "train/./x"}) {
    expect([&](nlohmann::json& json) { json["files"][0]["file"] = name; }, "not a path inside");
  }
  expect([](nlohmann::json& json) { json["files"][0]["file"] = json["files"][1]["file"]; },
         "is there twice");
  expect([](nlohmann::json& json) { json["files"][0]["bytes"] = 10; },
         "what it holds is not the 10");
  expect([](nlohmann::json& json) { json["files"][0]["bytes"] = -1; }, "'bytes'");
  expect([](nlohmann::json& json) { json["files"][0]["sha256"] = std::string(64, '0'); },
         "what it holds is not");
  expect([](nlohmann::json& json) { json["files"][0].erase("compressed_sha256"); },
         "'compressed_sha256'");
  expect([](nlohmann::json& json) { json["corpus_digest"] = std::string(64, '0'); },
         "'corpus_digest'");
  expect([](nlohmann::json& json) { json["version"] = 2; }, "'version'");
  expect([](nlohmann::json& json) { json["files"].erase(json["files"].begin()); }, "");
  write_bytes(archive_ / kArchiveIndex, "{");
  expect_refusal("is not a JSON object");
}

// Its declared size is the limit, whatever a frame expands to.
TEST_F(Archive, DoesNotExpandBeyondWhatItDeclares) {
  archive();
  fs::path bomb;
  change_index([&](nlohmann::json& json) {
    auto& file = json["files"][0];
    bomb = archive_ / (file["file"].get<std::string>() + ".zst");
    write_bytes(folder_ / "zeros", "");
    fs::resize_file(folder_ / "zeros", 64 << 20);
    fs::remove(bomb);
    write_zstd_file(bomb, RegularFile(folder_ / "zeros"), 3);
    fs::remove(folder_ / "zeros");
    const std::string content = read_bytes(bomb);
    file["compressed_bytes"] = content.size();
    file["compressed_sha256"] = sha256_hex_of(content.data(), content.size());
  });
  expect_refusal("what it holds is not");
}

TEST_F(Archive, RefusesADamagedCorpus) {
  const CorpusIndex index = read_corpus_index(corpus_);
  flip_bit(corpus_ / index.train[0].file, index.train[0].payload[0].first + 5);
  EXPECT_NE(message_of<CorpusError>([this] { archive(); }).find(index.train[0].file),
            std::string::npos);
  EXPECT_FALSE(fs::exists(archive_));
  expect_nothing_beside();
}

TEST_F(Archive, RefusesOutputsThatWouldHarm) {
  EXPECT_THROW(archive_corpus(corpus_, corpus_ / "a", {}), std::invalid_argument);
  EXPECT_THROW(archive_corpus(corpus_, fs::path(corpus_) += "/", {.force = true}),
               std::invalid_argument);
  archive();
  EXPECT_THROW(archive(), std::invalid_argument);
  EXPECT_THROW(restore_corpus(archive_, archive_, {.force = true}), std::invalid_argument);
  EXPECT_THROW(archive_corpus(corpus_, folder_ / "x", {.level = 20}), std::invalid_argument);
  restore();
  EXPECT_THROW(restore(), std::invalid_argument);
  restore({.force = true});
  // A corpus is not an archive: it is not replaced by one.
  EXPECT_THROW(archive_corpus(corpus_, back_, {.force = true}), std::invalid_argument);
  EXPECT_EQ(tree_of(back_), tree_of(corpus_));
}

// Killed at any time, there is a whole archive or none, and the next run clears up.
TEST_F(Archive, IsThereWholeOrNotAtAll) {
  std::mt19937 random(2);
  for (int round = 0; round < 12; ++round) {
    const bool back = round % 2 == 1;
    if (back && !fs::exists(archive_)) archive();
    const std::uint64_t kill_at = 1 + random() % 12;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::uint64_t files = 0;
      ArchiveOptions options;
      options.progress = [&](std::uint64_t, std::uint64_t) {
        if (++files == kill_at) ::raise(SIGKILL);
      };
      if (back) {
        restore(options);
      } else {
        options.force = true;
        archive(options);
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (back) {
      EXPECT_EQ(fs::exists(back_), !WIFSIGNALED(status));
      if (WIFSIGNALED(status)) restore();
      EXPECT_EQ(tree_of(back_), tree_of(corpus_));
      fs::remove_all(back_);
    } else if (fs::exists(archive_)) {
      restore();
      EXPECT_EQ(tree_of(back_), tree_of(corpus_));
      fs::remove_all(back_);
    }
  }
  archive({.force = true});
  expect_nothing_beside();
}

}  // namespace
}  // namespace tupelo::archive_test

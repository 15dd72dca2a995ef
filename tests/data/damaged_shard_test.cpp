// Shards damaged at random, before they are opened and while they are open: whatever is handed out
// is what was written, and everything else an exception that names the file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <system_error>

#include "tests/data/spoiled_corpus.h"

namespace tupelo::damaged_shard_test {
namespace {

namespace fs = std::filesystem;

std::vector<SampleDocument> documents_with_sentences(std::uint64_t seed) {
  std::vector<SampleDocument> documents = sample_documents(seed, 120, 700);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (SampleDocument& document : documents) {
    for (std::size_t i = 0; i < document.ids.size(); ++i) {
      document.sent_start.push_back(i == 0 || random() % 20 == 0 ? 1 : 0);
    }
  }
  return documents;
}

// What became of all reads of a corpus.
struct Outcome {
  int right = 0, wrong = 0, refused = 0;
};

// With and without sentence starts.
class DamagedShard : public SpoiledCorpus, public testing::WithParamInterface<bool> {
 protected:
  DamagedShard() : SpoiledCorpus(documents_with_sentences(7), GetParam() ? 1 : 0) {}

  // Runs a read and compares what it gave with what was written.
  template <typename Read, typename Expected>
  void count(Outcome& outcome, Read read, const std::vector<Expected>& expected) const {
    std::vector<Expected> found(expected.size());
    try {
      read(found.data());
      ++(found == expected ? outcome.right : outcome.wrong);
    } catch (const CorpusError& error) {
      EXPECT_EQ(std::string(error.what()).find(shard_.string() + ": "), 0u) << error.what();
      ++outcome.refused;
    }
  }

  Outcome read_all(const ShardedCorpus& corpus) const {
    Outcome outcome;
    for (std::size_t d = 0; d < documents_.size(); ++d) {
      const SampleDocument& document = documents_[d];
      const std::size_t size = document.ids.size();
      const auto tokens = [&](std::uint32_t* ids) { corpus.read(d, 0, size, ids); };
      const auto words = [&](std::uint8_t* flags) { corpus.read_word_starts(d, 0, size, flags); };
      const auto sentences = [&](std::uint8_t* flags) {
        corpus.read_sentence_starts(d, 0, size, flags);
      };
      count(outcome, tokens, document.ids);
      count(outcome, words, document.word_start);
      if (GetParam()) count(outcome, sentences, document.sent_start);
      count(
          outcome, [&](std::uint64_t* hash) { *hash = corpus.hash(d); },
          std::vector<std::uint64_t>{document.hash});
      count(
          outcome, [&](std::uint64_t* source) { *source = corpus.source(d); },
          std::vector<std::uint64_t>{document.source});
    }
    return outcome;
  }

  // The damaged file gives no wrong token, neither with an index nor without, and is found.
  void expect_found(const std::string& bytes, const std::string& what) const {
    ASSERT_NE(bytes, sound_);
    write_bytes(shard_, bytes);
    try {
      const ShardedCorpus corpus(corpus_, Split::kTrain);
      EXPECT_EQ(read_all(corpus).wrong, 0) << what;
      EXPECT_THROW(corpus.verify_shard(0), CorpusError) << what;
    } catch (const CorpusError& error) {
      EXPECT_EQ(std::string(error.what()).find(shard_.string() + ": "), 0u) << error.what();
    }
    expect_no_wrong_tokens_without_index(what);
  }

  void expect_no_wrong_tokens_without_index(const std::string& what) const {
    try {
      const Shard shard(shard_, identity());
      std::vector<std::uint32_t> ids(shard.tokens());
      shard.read(0, ids.size(), ids.data());
      EXPECT_EQ(ids, all_ids()) << what;
    } catch (const CorpusError& error) {
      EXPECT_EQ(std::string(error.what()).find(shard_.string() + ": "), 0u) << error.what();
    }
  }

  std::vector<std::uint32_t> all_ids() const {
    std::vector<std::uint32_t> ids;
    for (const SampleDocument& document : documents_) {
      ids.insert(ids.end(), document.ids.begin(), document.ids.end());
    }
    return ids;
  }

  // Overwrites the file where it is, as `cp` does.
  void overwrite(const std::string& bytes) const {
    const int descriptor = ::open(shard_.c_str(), O_WRONLY);
    ASSERT_GE(descriptor, 0);
    ASSERT_EQ(::pwrite(descriptor, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    ::close(descriptor);
  }

  int reads() const { return static_cast<int>(documents_.size()) * (GetParam() ? 5 : 4); }
};

INSTANTIATE_TEST_SUITE_P(Sentences, DamagedShard, testing::Bool());

TEST_P(DamagedShard, TheUndamagedOneIsFine) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  const Outcome outcome = read_all(corpus);
  EXPECT_EQ(outcome.right, reads());
  EXPECT_NO_THROW(corpus.verify_shard(0));
}

TEST_P(DamagedShard, EveryFlippedBitIsFound) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t at = random() % sound_.size();
    std::string bytes = sound_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    expect_found(bytes, "bit in byte " + std::to_string(at));
  }
}

TEST_P(DamagedShard, EveryTruncationIsFound) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = random() % sound_.size();
    expect_found(sound_.substr(0, size), "cut to " + std::to_string(size));
  }
}

TEST_P(DamagedShard, EveryBlockOfZerosIsFound) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 200;) {
    const std::size_t block = std::size_t{512} << (random() % 4);
    const std::size_t at = random() % sound_.size() / block * block;
    std::string bytes = sound_;
    for (std::size_t b = at; b < std::min(at + block, bytes.size()); ++b) bytes[b] = '\0';
    if (bytes == sound_) continue;  // there were zeros already, before a page
    expect_found(bytes, std::to_string(block) + " zeros at " + std::to_string(at));
    ++i;
  }
}

// Not by verifying: whoever only reads does not get what is damaged.
TEST_P(DamagedShard, ReadingFindsEveryFlippedBitOfADataset) {
  std::mt19937_64 random(14);
  for (const CheckedDataset* dataset : datasets_.checked()) {
    for (int i = 0; i < 30; ++i) {
      const std::size_t at = random() % dataset->place.bytes();
      const std::uint64_t last_bit = datasets_.tokens.place.count - 1;
      if (dataset->place.type == ElementType::kUint8 && at == last_bit / 8) continue;  // spare bits
      std::string bytes = sound_;
      bytes[dataset->place.offset + at] ^= static_cast<char>(1 << random() % 8);
      write_bytes(shard_, bytes);
      try {
        const ShardedCorpus corpus(corpus_, Split::kTrain);
        EXPECT_GT(read_all(corpus).refused, 0) << dataset->name << " " << at;
      } catch (const CorpusError& error) {
        EXPECT_EQ(dataset->name, "doc_offsets") << error.what();
      }
    }
  }
}

TEST_P(DamagedShard, FindsDamageThatComesAfterOpening) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  EXPECT_EQ(read_all(corpus).right, reads());
  std::string bytes = sound_;
  bytes[datasets_.tokens.place.offset] ^= 1;
  overwrite(bytes);
  const Outcome outcome = read_all(corpus);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_GE(outcome.refused, 1) << "also where it has been read before";
  overwrite(sound_);
  EXPECT_EQ(read_all(corpus).right, reads());
}

// The other shard is as sound as the first, and its checksums fit its content.
TEST_P(DamagedShard, AnotherShardWrittenOverAnOpenOneIsNotReadForIt) {
  std::vector<SampleDocument> others = documents_;
  for (SampleDocument& other : others) {
    std::reverse(other.ids.begin(), other.ids.end());
    other.hash += 1;
  }
  const CorpusIndex index =
      write_sample_corpus(folder_ / "other", others, 0, 1u << 20, index_.info);
  const std::string bytes = read_bytes(folder_ / "other" / index.train[0].file);
  ASSERT_EQ(bytes.size(), sound_.size());
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  overwrite(bytes);
  const Outcome outcome = read_all(corpus);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_GT(outcome.refused, 2 * static_cast<int>(documents_.size()));
}

TEST_P(DamagedShard, AFileThatShrinksIsAnError) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  const std::uint64_t last = datasets_.doc_hash.place.offset + datasets_.doc_hash.place.bytes() - 1;
  for (const std::uint64_t size : {last, last / 2, std::uint64_t{0}}) {
    fs::resize_file(shard_, size);
    const Outcome outcome = read_all(corpus);
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_GT(outcome.refused, 0);
  }
  const std::string message = message_of<CorpusError>([&] {
    std::uint32_t id = 0;
    corpus.read(0, 0, 1, &id);
  });
  EXPECT_EQ(message, shard_.string() + ": ends at byte 0, but had " +
                         std::to_string(sound_.size()) + " bytes when it was opened");
}

TEST_P(DamagedShard, AFileThatIsDeletedOrReplacedIsReadOn) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  fs::remove(shard_);
  EXPECT_EQ(read_all(corpus).right, reads());
  write_bytes(folder_ / "other", std::string(sound_.size(), 'x'));
  fs::rename(folder_ / "other", shard_);
  EXPECT_EQ(read_all(corpus).right, reads());
  const std::string message =
      message_of<CorpusError>([this] { ShardedCorpus(corpus_, Split::kTrain); });
  EXPECT_EQ(message.find(shard_.string() + ": "), 0u) << message;
}

TEST_P(DamagedShard, ALinkToAShardIsFollowed) {
  fs::rename(shard_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", shard_);
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  EXPECT_EQ(read_all(corpus).right, reads());
}

TEST_P(DamagedShard, GarbageIsRefused) {
  std::mt19937 random(15);
  std::string garbage(sound_.size(), '\0');
  for (char& c : garbage) c = static_cast<char>(random());
  const std::string signature = sound_.substr(0, 8);
  for (const std::string& bytes :
       {garbage, signature + garbage.substr(8), sound_.substr(0, 96) + garbage.substr(96)}) {
    expect_found(bytes, "garbage");
    adapt_index();
    EXPECT_THROW(ShardedCorpus(corpus_, Split::kTrain), CorpusError);
    write_bytes(corpus_ / "index.json", format_corpus_index(index_));
  }
}

// Without the privileges that ignore permissions, while it lives.
class Unprivileged {
 public:
  Unprivileged() : user_(::geteuid()) {
    const uid_t other = user_ == 0 ? 65534 : user_;
    EXPECT_EQ(::seteuid(other), 0);
  }
  ~Unprivileged() { EXPECT_EQ(::seteuid(user_), 0); }

 private:
  uid_t user_;
};

TEST_P(DamagedShard, SaysWhichFileMayNotBeRead) {
  fs::permissions(folder_.path(), fs::perms::all);
  fs::permissions(shard_, fs::perms::none);
  std::string message;
  {
    const Unprivileged unprivileged;
    message = message_of<std::system_error>([this] { ShardedCorpus(corpus_, Split::kTrain); });
  }
  EXPECT_EQ(message, "cannot read " + shard_.string() + ": Permission denied");
}

}  // namespace
}  // namespace tupelo::damaged_shard_test

// Preparation by many processes, killed and gone on with: always the same bytes.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <new>
#include <random>
#include <set>
#include <stdexcept>

#include "data/corpus_files.h"
#include "data/errors.h"
#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::preparation_test {
namespace {

namespace fs = std::filesystem;
using Tree = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kCommonLine = "the same line of light and stone in many documents\n";
constexpr const char* kNoJson =
    ":81: is not JSON: column 2: syntax error while parsing value - invalid literal; last read: "
    "'no'";

std::string sentences(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> words = {"river", "stone", "light", "morning", "春天",
                                          "的",    "风",    "石头",  "清晨",    "光"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (std::uint64_t w = 3 + random() % 6; w > 0; --w) text += words[random() % 10] + " ";
    text += std::to_string(random() % 1000) + "。\n";
  }
  return text;
}

class Preparation : public testing::Test {
 protected:
  Preparation() {
    fs::create_directories(folder_ / "in/sub");
    std::string long_file, records;
    for (std::uint64_t d = 0; d < 150; ++d) {
      long_file += sentences(d % 120, 4) + (d % 10 == 3 ? kCommonLine : "") + "\n";
    }
    for (std::uint64_t d = 0; d < 80; ++d) {
      records += "{\"text\": \"river stone " + std::to_string(d % 60) +
                 " light of the morning, and more of the same\"}\n";
    }
    write_bytes(folder_ / "in/a.txt", long_file);
    write_bytes(folder_ / "in/b.jsonl", records + "not JSON\n" + records);
    for (std::uint64_t i = 0; i < 9; ++i) {
      write_bytes(folder_ / "in/sub" / (std::to_string(i) + ".txt"), sentences(500 + i, 6));
    }
  }

  PrepareOptions options(const std::string& output = "corpus") const {
    PrepareOptions options;
    options.inputs = {folder_ / "in"};
    options.output = folder_ / output;
    options.damaged_input = DamagedInput::kSkip;
    options.train_vocab_size = 200;
    options.min_count = 1;
    options.held_out = 0.1;
    options.shard_tokens = 700;
    options.sentence_starts = true;
    options.cleaning.enabled = true;
    options.unit_bytes = 2000;
    return options;
  }

  // The corpus of one process that reads everything as one unit.
  const Tree& expected() {
    if (expected_.empty()) {
      PrepareOptions whole = options("whole");
      whole.unit_bytes = 1 << 20;
      report_ = prepare_corpus(whole);
      expected_ = tree_of(whole.output);
    }
    return expected_;
  }

  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".")) names.push_back(name);
    }
    return names;
  }

  TemporaryFolder folder_;
  Tree expected_;
  PrepareReport report_;
};

// Processes that meet in shared memory.
class Team {
 public:
  explicit Team(int size) : size_(size) {
    void* const memory =
        ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table_ = new (memory) Table;
    pthread_barrierattr_t shared;
    ::pthread_barrierattr_init(&shared);
    ::pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&table_->barrier, &shared, static_cast<unsigned>(size));
    ::pthread_barrierattr_destroy(&shared);
  }
  ~Team() { ::munmap(table_, sizeof(Table)); }
  Team(const Team&) = delete;

  // What each process threw; empty when nothing.
  std::vector<std::string> run(const std::function<void(const PrepareTeam&)>& member) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < size_; ++rank) {
      children.push_back(::fork());
      if (children.back() == 0) be_member(rank, member);
    }
    std::vector<std::string> messages;
    for (int rank = 0; rank < size_; ++rank) {
      int status = 0;
      ::waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      messages.emplace_back(table_->thrown[rank]);
    }
    return messages;
  }

 private:
  static constexpr int kMost = 8;
  struct Table {
    pthread_barrier_t barrier;
    char errors[kMost][500] = {}, thrown[kMost][500] = {};
    std::atomic<bool> doubts = false;
  };

  [[noreturn]] void be_member(int rank, const std::function<void(const PrepareTeam&)>& member) {
    PrepareTeam team;
    team.rank = rank;
    team.size = size_;
    team.together = [&](const auto& action) { together(rank, action); };
    team.all_agree = [&](bool value) { return all_agree(value); };
    try {
      member(team);
    } catch (const std::exception& error) {
      write(table_->thrown[rank], error);
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  static void write(char (&to)[500], const std::exception& error) {
    std::snprintf(to, sizeof to, "%s", error.what());
  }
  void meet() { ::pthread_barrier_wait(&table_->barrier); }
  void together(int rank, const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception& error) {
      write(table_->errors[rank], error);
    }
    meet();
    for (const auto& error : table_->errors) {
      if (error[0] != 0) throw std::runtime_error(error);
    }
    meet();
  }
  bool all_agree(bool value) {
    if (!value) table_->doubts = true;
    meet();
    const bool agreed = !table_->doubts;
    meet();
    table_->doubts = false;
    meet();
    return agreed;
  }

  int size_;
  Table* table_;
};

TEST_F(Preparation, UnitsAndThreadsChangeNothing) {
  expected();
  EXPECT_EQ(report_.damaged_records, 1u);
  EXPECT_GT(report_.train_shards, 5);
  EXPECT_GT(report_.held_out_documents, 0u);
  EXPECT_GT(report_.cleaning.rules.back().lines, 0u);
  EXPECT_GT(report_.cleaning.rules[report_.cleaning.rules.size() - 3].documents, 0u);
  for (const std::uint64_t unit : {256u, 999u, 5000u}) {
    PrepareOptions chosen = options("unit" + std::to_string(unit));
    chosen.unit_bytes = unit;
    chosen.threads = static_cast<int>(unit % 3) + 1;
    const PrepareReport report = prepare_corpus(chosen);
    EXPECT_EQ(tree_of(chosen.output), expected());
    EXPECT_EQ(report.damage, report_.damage);
    EXPECT_EQ(report.input_bytes, report_.input_bytes);
    EXPECT_EQ(report.documents, report_.documents);
  }
  EXPECT_EQ(report_.damage, std::vector<std::string>{(folder_ / "in/b.jsonl").string() + kNoJson});
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Preparation, ProcessesChangeNothing) {
  expected();
  for (const int size : {2, 3, 5}) {
    const PrepareOptions chosen = options("team" + std::to_string(size));
    const auto messages = Team(size).run([&](const PrepareTeam& team) {
      const PrepareReport report = prepare_corpus(chosen, {}, team);
      EXPECT_EQ(report.documents, team.rank == 0 ? report_.documents : 0);
    });
    EXPECT_EQ(messages, std::vector<std::string>(static_cast<std::size_t>(size)));
    EXPECT_EQ(tree_of(chosen.output), expected());
  }
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Preparation, ProcessesLearnTheSameByteLevelBpe) {
  std::set<Tree> trees;
  for (const int size : {1, 3}) {
    PrepareOptions chosen = options("bpe" + std::to_string(size));
    chosen.train_kind = TokenizerKind::kByteBpe;
    chosen.train_vocab_size = 300;
    chosen.vocab_text_bytes = 8000;
    Team(size).run([&](const PrepareTeam& team) { prepare_corpus(chosen, {}, team); });
    trees.insert(tree_of(chosen.output));
  }
  EXPECT_EQ(trees.size(), 1u);
}

TEST_F(Preparation, AVocabularyNeedsNoMoreTextThanIsAskedFor) {
  PrepareOptions chosen = options();
  chosen.cleaning.enabled = false;
  chosen.vocab_text_bytes = 1;  // so, the first batch of each unit
  chosen.unit_bytes = 1 << 20;
  write_bytes(folder_ / "in/a.txt", "only these words\n");
  prepare_corpus(chosen);
  const std::string vocabulary = read_bytes(chosen.output / "tokenizer/vocab.txt");
  EXPECT_NE(vocabulary.find("\nwords\n"), std::string::npos);
}

// Prepares in another process, which ends itself by SIGKILL when `progress` is told `calls` times.
// Returns false when it came to its end before.
bool prepare_and_die(const PrepareOptions& options, int calls) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      prepare_corpus(options, [&](const PrepareProgress&) {
        if (--calls == 0) ::kill(::getpid(), SIGKILL);
      });
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

TEST_F(Preparation, GoesOnAfterAKill) {
  expected();
  int kills = 0;
  std::uint64_t most_skipped = 0;
  const PrepareOptions chosen = options();
  for (int calls = 1; prepare_and_die(chosen, calls); calls += 7) {
    ++kills;
    EXPECT_FALSE(fs::exists(chosen.output));
    EXPECT_EQ(leftovers().size(), 1u);
  }
  EXPECT_GT(kills, 10);
  // It came to its end by itself, with what all others had left.
  EXPECT_EQ(tree_of(chosen.output), expected());
  EXPECT_TRUE(leftovers().empty());

  PrepareOptions once = options("once");
  ASSERT_TRUE(prepare_and_die(once, 60));
  std::string phase;
  prepare_corpus(once, [&](const PrepareProgress& progress) {
    if (progress.phase == "tokenize" || phase.empty()) {
      phase = progress.phase;
      most_skipped = std::max(most_skipped, progress.skipped_bytes);
    }
  });
  EXPECT_GT(most_skipped, 0u);
  EXPECT_EQ(tree_of(once.output), expected());
}

TEST_F(Preparation, AnotherTeamGoesOn) {
  expected();
  for (const int calls : {5, 40, 60, 75}) {
    const PrepareOptions chosen = options("team-after-" + std::to_string(calls));
    ASSERT_TRUE(prepare_and_die(chosen, calls));
    Team(3).run([&](const PrepareTeam& team) { prepare_corpus(chosen, {}, team); });
    EXPECT_EQ(tree_of(chosen.output), expected()) << calls;
  }
}

TEST_F(Preparation, OtherSettingsBeginAnew) {
  PrepareOptions chosen = options();
  ASSERT_TRUE(prepare_and_die(chosen, 60));
  const auto left = leftovers();
  chosen.held_out = 0.2;
  ASSERT_TRUE(prepare_and_die(chosen, 60));
  EXPECT_EQ(leftovers().size(), 1u);
  EXPECT_NE(leftovers(), left);
  write_bytes(folder_ / "in/sub/0.txt", "changed\n");
  std::uint64_t skipped = 0;
  prepare_corpus(chosen,
                 [&](const PrepareProgress& progress) { skipped += progress.skipped_bytes; });
  EXPECT_EQ(skipped, 0u);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(Preparation, AnErrorOfOneProcessIsEverybodys) {
  PrepareOptions chosen = options();
  chosen.damaged_input = DamagedInput::kRefuse;
  const auto messages =
      Team(3).run([&](const PrepareTeam& team) { prepare_corpus(chosen, {}, team); });
  for (const std::string& message : messages) {
    EXPECT_EQ(message, (folder_ / "in/b.jsonl").string() + kNoJson);
  }
  EXPECT_TRUE(leftovers().empty());
  EXPECT_FALSE(fs::exists(chosen.output));
}

TEST_F(Preparation, DamagedIntermediateResultsAreNoticed) {
  std::mt19937_64 random(9);
  int refused = 0;
  for (int round = 0; round < 12; ++round) {
    const PrepareOptions chosen = options("damaged" + std::to_string(round));
    ASSERT_TRUE(prepare_and_die(chosen, 50 + 3 * round));
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / leftovers().at(0))) {
      const std::string part = entry.path().parent_path().filename().string();
      if (entry.is_regular_file() &&
          (part == "tokens" || part == "duplicates" || part == "fingerprints")) {
        files.push_back(entry.path());
      }
    }
    ASSERT_FALSE(files.empty());
    std::sort(files.begin(), files.end());
    const fs::path& file = files[random() % files.size()];
    flip_bit(file, random() % fs::file_size(file), static_cast<int>(random() % 8));
    try {
      prepare_corpus(chosen);
      EXPECT_EQ(tree_of(chosen.output), expected()) << file;  // the bit was none that counts
    } catch (const CorpusError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find("is not what was written"), std::string::npos);
    }
    EXPECT_TRUE(leftovers().empty());
  }
  EXPECT_GT(refused, 8);
}

TEST_F(Preparation, TheSameJobRunsOnce) {
  const PrepareOptions chosen = options();
  bool asked = false;
  prepare_corpus(chosen, [&](const PrepareProgress&) {
    if (asked) return;
    asked = true;
    EXPECT_NE(message_of<std::invalid_argument>([&] {
                prepare_corpus(chosen);
              }).find("is being made by another process"),
              std::string::npos);
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(tree_of(chosen.output), expected());
}

}  // namespace
}  // namespace tupelo::preparation_test

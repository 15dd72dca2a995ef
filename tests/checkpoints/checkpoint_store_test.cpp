#include "checkpoints/checkpoint_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>

#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo::checkpoint_store_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using Steps = std::vector<std::int64_t>;

class CheckpointStoreTest : public testing::Test {
 protected:
  CheckpointStore open(int keep = 2) { return CheckpointStore(run_, {keep}); }

  // The newest checkpoint's step, or -1; what was passed over goes to rejected_.
  std::int64_t newest() {
    rejected_.clear();
    const auto loaded = open().load_newest([this](std::int64_t step, const std::string& reason) {
      rejected_.emplace_back(step, reason);
    });
    return loaded ? loaded->step : -1;
  }

  void damage(const CheckpointStore& store, std::int64_t step) {
    const fs::path file = store.folder_of(step) / "model.safetensors";
    std::string bytes = bytes_of(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    overwrite(file, bytes);
  }

  TemporaryFolder temporary_;
  fs::path run_ = temporary_.path() / "run" / "checkpoints";
  std::vector<std::pair<std::int64_t, std::string>> rejected_;
};

TEST_F(CheckpointStoreTest, GivesBackWhatWasSaved) {
  CheckpointStore store = open();
  Checkpoint saved = sample_checkpoint(100);
  saved.files["optimizer"].emplace_back("step", torch::tensor(7));
  saved.files["empty"] = {};
  EXPECT_EQ(store.save(saved), run_ / "step-000000100");
  EXPECT_TRUE(same_content(store.load(100), saved));
  EXPECT_TRUE(same_content(open().load_newest({}).value(), saved));
}

TEST_F(CheckpointStoreTest, LaysFilesOutAsDocumentedAndPrivately) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(100));
  EXPECT_EQ(names_in(run_), Names{"step-000000100"});
  const fs::path folder = store.folder_of(100);
  EXPECT_EQ(names_in(folder),
            (Names{"manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"}));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0700));
  for (const std::string& name : names_in(folder)) {
    EXPECT_EQ(fs::status(folder / name).permissions(), fs::perms(0600)) << name;
  }
  EXPECT_EQ(bytes_of(folder / "state.json"), sample_checkpoint(100).state_json);
  EXPECT_EQ(read_safetensors(folder / "model.safetensors").metadata.at("format"), "pt");
}

TEST_F(CheckpointStoreTest, WritesTheManifestOfTheFormat) {
  CheckpointStore store = open();
  Checkpoint checkpoint;
  checkpoint.step = 7;
  store.save(checkpoint);
  // The SHA-256 of "{}".
  EXPECT_EQ(
      bytes_of(store.folder_of(7) / "manifest.json"),
      "{\n  \"format\": \"tupelo-checkpoint\",\n  \"version\": 1,\n  \"step\": 7,\n"
      "  \"files\": {\n    \"state.json\": {\n      \"size_bytes\": 2,\n      \"sha256\": "
      "\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"\n    }\n  }\n}\n");
  EXPECT_EQ(store.load(7).state_json, "{}");
}

TEST_F(CheckpointStoreTest, AnEmptyFolderHoldsNoCheckpoint) {
  EXPECT_EQ(newest(), -1);
  EXPECT_TRUE(fs::is_directory(run_));
  EXPECT_TRUE(open().steps().empty());
}

TEST_F(CheckpointStoreTest, NumbersBeyondNineDigitsStillSortByValue) {
  CheckpointStore store = open(9);
  for (const std::int64_t step : {0L, 9L, 10L, 999999999L, 1000000000L, 123456789012345L}) {
    store.save(sample_checkpoint(step));
  }
  EXPECT_EQ(store.steps(), (Steps{123456789012345, 1000000000, 999999999, 10, 9, 0}));
  EXPECT_EQ(store.folder_of(123456789012345).filename(), "step-123456789012345");
  EXPECT_EQ(newest(), 123456789012345);
}

TEST_F(CheckpointStoreTest, IgnoresNamesThatAreNotItsOwn) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(5));
  for (const char* name : {"step-6", "step-0000000007", "step--00000008", "step-000000009.bak",
                           "step-", "step-x", ".step-000000009", "latest"}) {
    fs::create_directory(run_ / name);
  }
  overwrite(run_ / "step-000000099", "a file");
  EXPECT_EQ(store.steps(), Steps{5});
  EXPECT_EQ(newest(), 5);
}

TEST_F(CheckpointStoreTest, PrunesAllButTheNewest) {
  CheckpointStore store = open(2);
  for (std::int64_t step = 1; step <= 5; ++step) store.save(sample_checkpoint(step));
  EXPECT_EQ(names_in(run_), (Names{"step-000000004", "step-000000005"}));
  open(1).save(sample_checkpoint(6));
  EXPECT_EQ(names_in(run_), Names{"step-000000006"});
}

TEST_F(CheckpointStoreTest, DamagedOnesDoNotCountWhenPruning) {
  CheckpointStore store = open(2);
  store.save(sample_checkpoint(1));
  store.save(sample_checkpoint(2));
  damage(store, 2);
  CheckpointStore resumed = open(2);
  resumed.save(sample_checkpoint(3));
  EXPECT_EQ(resumed.steps(), (Steps{3, 2, 1}));
  resumed.save(sample_checkpoint(4));
  EXPECT_EQ(resumed.steps(), (Steps{4, 3}));
}

TEST_F(CheckpointStoreTest, NeverPrunesWhatWasJustSavedNorTheNewest) {
  CheckpointStore store = open(1);
  store.save(sample_checkpoint(9));
  store.save(sample_checkpoint(5));
  EXPECT_EQ(store.steps(), (Steps{9, 5}));
  EXPECT_EQ(newest(), 9);
}

TEST_F(CheckpointStoreTest, FallsBackToTheNewestThatVerifiesAndSaysWhy) {
  CheckpointStore store = open(3);
  for (std::int64_t step = 1; step <= 3; ++step) store.save(sample_checkpoint(step));
  damage(store, 3);
  fs::remove(store.folder_of(2) / "manifest.json");
  EXPECT_EQ(newest(), 1);
  ASSERT_EQ(rejected_.size(), 2u);
  EXPECT_EQ(rejected_[0].first, 3);
  EXPECT_NE(rejected_[0].second.find("model.safetensors' has SHA-256"), std::string::npos);
  EXPECT_EQ(rejected_[1].first, 2);
  EXPECT_NE(rejected_[1].second.find("has no manifest.json"), std::string::npos);
}

TEST_F(CheckpointStoreTest, SaysSoWhenNoneVerifies) {
  CheckpointStore store = open();
  for (std::int64_t step = 1; step <= 2; ++step) {
    store.save(sample_checkpoint(step));
    damage(store, step);
  }
  EXPECT_THROW(newest(), CorruptCheckpoint);
  EXPECT_EQ(rejected_.size(), 2u);
  EXPECT_THROW(open().load_newest({}), CorruptCheckpoint);
}

TEST_F(CheckpointStoreTest, LoadingAStepThatIsNotThereIsAnErrorOfTheFileSystem) {
  try {
    open().load(4);
    ADD_FAILURE() << "loaded";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_NE(std::string(error.what()).find("step-000000004"), std::string::npos) << error.what();
  }
}

TEST_F(CheckpointStoreTest, SavingAStepAgainReplacesIt) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(1));
  store.save(sample_checkpoint(2));
  const Checkpoint again = sample_checkpoint(2, 20, 1);
  store.save(again);
  EXPECT_EQ(names_in(run_), (Names{"step-000000001", "step-000000002"}));
  EXPECT_TRUE(same_content(store.load(2), again));
  damage(store, 2);
  open().save(sample_checkpoint(2));
  EXPECT_TRUE(same_content(store.load(2), sample_checkpoint(2)));
}

constexpr char kRandom[] = "-0123456789abcdef";

TEST_F(CheckpointStoreTest, RemovesLeftoversOfInterruptedSaves) {
  open().save(sample_checkpoint(3));
  for (const char* name :
       {".partial-step-000000004", ".replaced-step-000000003", ".pruned-step-000000001"}) {
    fs::create_directory(run_ / (std::string(name) + kRandom));
    overwrite(run_ / (std::string(name) + kRandom) / "model.safetensors", "torn");
  }
  fs::create_directory(run_ / ".partial-of-somebody-else");
  open();
  EXPECT_EQ(names_in(run_), (Names{".partial-of-somebody-else", "step-000000003"}));
}

TEST_F(CheckpointStoreTest, PutsBackACheckpointWhoseReplacementNeverCame) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(3));
  fs::rename(store.folder_of(3), run_ / (std::string(".replaced-step-000000003") + kRandom));
  EXPECT_EQ(newest(), 3);
  EXPECT_EQ(names_in(run_), Names{"step-000000003"});
}

class Lock {
 public:
  explicit Lock(const fs::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY)) {
    EXPECT_EQ(::flock(descriptor_, LOCK_EX | LOCK_NB), 0);
  }
  ~Lock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

TEST_F(CheckpointStoreTest, LeavesASaveOfAnotherProcessAlone) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(3));
  const std::string running = std::string(".partial-step-000000004") + kRandom;
  fs::create_directory(run_ / running);
  {
    const Lock other(run_);
    EXPECT_EQ(newest(), 3);
    EXPECT_EQ(names_in(run_), (Names{running, "step-000000003"}));
    try {
      store.save(sample_checkpoint(4));
      ADD_FAILURE() << "saved";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), EWOULDBLOCK) << error.what();
    }
    EXPECT_EQ(names_in(run_), (Names{running, "step-000000003"}));
  }
  store.save(sample_checkpoint(4));
  EXPECT_EQ(names_in(run_), (Names{"step-000000003", "step-000000004"}));
}

TEST_F(CheckpointStoreTest, RefusesUnfitContentAndLeavesNothing) {
  CheckpointStore store = open();
  store.save(sample_checkpoint(1));
  for (const char* stem : {"", "Model", "../model", "a/b", "model.json", "a b"}) {
    Checkpoint checkpoint = sample_checkpoint(2);
    checkpoint.files[stem] = {};
    EXPECT_THROW(store.save(checkpoint), std::invalid_argument) << stem;
  }
  for (const char* state : {"[]", "{", "{\"a\":1,\"a\":2}", "3", "{}x"}) {
    Checkpoint checkpoint = sample_checkpoint(2);
    checkpoint.state_json = state;
    EXPECT_THROW(store.save(checkpoint), std::invalid_argument) << state;
  }
  Checkpoint checkpoint = sample_checkpoint(2);
  checkpoint.files["model"].push_back(checkpoint.files["model"].front());
  EXPECT_THROW(store.save(checkpoint), std::invalid_argument);
  EXPECT_EQ(names_in(run_), Names{"step-000000001"});
  EXPECT_THROW(open(0), std::invalid_argument);
}

TEST_F(CheckpointStoreTest, SaysWhenItsFolderCannotBe) {
  fs::create_directories(temporary_.path() / "run");
  overwrite(run_, "a file");
  EXPECT_THROW(open(), std::system_error);
}

}  // namespace
}  // namespace tupelo::checkpoint_store_test

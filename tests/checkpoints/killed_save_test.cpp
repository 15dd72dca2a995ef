// A process that saves in a loop is killed at random moments.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <thread>

#include "checkpoints/checkpoint_store.h"
#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo {
namespace {

constexpr int kKills = 30;
constexpr std::int64_t kElements = 200000;

// A child that reports numbers through a pipe until it is killed.
class Saver {
 public:
  using Report = std::function<void(std::int64_t)>;

  explicit Saver(const std::function<void(const Report&)>& loop) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      loop([&](std::int64_t number) {
        if (::write(ends[1], &number, sizeof(number)) != sizeof(number)) ::_exit(1);
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    reports_ = ends[0];
  }
  ~Saver() { ::close(reports_); }

  std::int64_t wait_for_report() {
    std::int64_t number = -1;
    EXPECT_EQ(::read(reports_, &number, sizeof(number)), static_cast<ssize_t>(sizeof(number)));
    return number;
  }

  // The last number reported before it died, or `otherwise`.
  std::int64_t kill(std::int64_t otherwise) {
    ::kill(child_, SIGKILL);
    int status = 0;
    ::waitpid(child_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
    std::int64_t last = otherwise;
    for (std::int64_t number; ::read(reports_, &number, sizeof(number)) == sizeof(number);) {
      last = number;
    }
    return last;
  }

 private:
  pid_t child_;
  int reports_;
};

void wait_at_random(std::mt19937& draw) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<int>(0, 150000)(draw)));
}

void expect_only_checkpoints(const std::filesystem::path& folder) {
  for (const std::string& name : names_in(folder)) {
    EXPECT_EQ(name.rfind("step-", 0), 0u) << name;
  }
}

Checkpoint load_without_rejections(const CheckpointStore& store) {
  auto loaded = store.load_newest([](std::int64_t step, const std::string& reason) {
    ADD_FAILURE() << "step " << step << " does not verify: " << reason;
  });
  return loaded.value();
}

TEST(KilledSave, LosesNoAcknowledgedCheckpoint) {
  const TemporaryFolder folder;
  std::mt19937 draw(17);
  std::int64_t acknowledged = 0;
  CheckpointStore(folder.path(), {2}).save(sample_checkpoint(0, kElements));
  for (int i = 0; i < kKills; ++i) {
    Saver saver([&](const Saver::Report& report) {
      CheckpointStore store(folder.path(), {2});
      report(0);
      for (std::int64_t step = acknowledged + 1;; ++step) {
        store.save(sample_checkpoint(step, kElements));
        report(step);
      }
    });
    saver.wait_for_report();
    wait_at_random(draw);
    const std::int64_t promised = saver.kill(acknowledged);

    const CheckpointStore store(folder.path(), {2});
    expect_only_checkpoints(folder.path());
    const Checkpoint newest = load_without_rejections(store);
    EXPECT_GE(newest.step, promised);
    EXPECT_LE(newest.step, promised + 1);
    EXPECT_TRUE(same_content(newest, sample_checkpoint(newest.step, kElements)));
    for (const std::int64_t step : store.steps()) EXPECT_NO_THROW(store.load(step));
    acknowledged = newest.step;
  }
  EXPECT_GT(acknowledged, kKills / 2);
}

TEST(KilledSave, OfTheSameStepLeavesTheOldOrTheNew) {
  const TemporaryFolder folder;
  std::mt19937 draw(18);
  std::int64_t acknowledged = 0;
  CheckpointStore(folder.path(), {1}).save(sample_checkpoint(5, kElements));
  for (int i = 0; i < kKills; ++i) {
    Saver saver([&](const Saver::Report& report) {
      CheckpointStore store(folder.path(), {1});
      report(0);
      for (std::int64_t variant = acknowledged + 1;; ++variant) {
        store.save(sample_checkpoint(5, kElements, variant));
        report(variant);
      }
    });
    saver.wait_for_report();
    wait_at_random(draw);
    const std::int64_t promised = saver.kill(acknowledged);

    const CheckpointStore store(folder.path(), {1});
    expect_only_checkpoints(folder.path());
    const Checkpoint found = load_without_rejections(store);
    const bool is_old = same_content(found, sample_checkpoint(5, kElements, promised));
    const bool is_new = same_content(found, sample_checkpoint(5, kElements, promised + 1));
    EXPECT_TRUE(is_old || is_new) << found.state_json << " after " << promised;
    acknowledged = is_new ? promised + 1 : promised;
  }
  EXPECT_GT(acknowledged, kKills / 2);
}

}  // namespace
}  // namespace tupelo

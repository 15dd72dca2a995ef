// How a job under mpirun ends when a rank misbehaves: in time, with a code that is not zero, with a
// message that names the culprit, and with no process left.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tupelo {
namespace {

namespace fs = std::filesystem;

struct Job {
  int exit_code = 0;
  std::string output;
};

// Every process of a job carries this variable.
std::string mark_of(const std::string& scenario) {
  return "TUPELO_FAULT_TEST=" + scenario + "." + std::to_string(getpid());
}

void become_job(const std::string& scenario, const std::string& route, int ranks, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  auto mark = mark_of(scenario);
  putenv(mark.data());
  const auto count = std::to_string(ranks);
  execl(TUPELO_MPIRUN, TUPELO_MPIRUN, "--oversubscribe", "-np", count.c_str(), TUPELO_RANKS,
        scenario.c_str(), route.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

Job run_job(const std::string& scenario, const std::string& route, int ranks) {
  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    become_job(scenario, route, ranks, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  Job job;
  std::array<char, 4096> buffer{};
  for (ssize_t size; (size = read(pipe_ends[0], buffer.data(), buffer.size())) > 0;) {
    job.output.append(buffer.data(), static_cast<std::size_t>(size));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  job.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return job;
}

// A zombie has no environment left, and nor has a process of somebody else for us.
std::vector<std::string> survivors(const std::string& scenario) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(mark_of(scenario)) != std::string::npos) found.push_back(entry.path());
  }
  return found;
}

// Of all jobs on this host, those of others included.
std::vector<std::string> named_segments() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const auto name = entry.path().filename().string();
    if (name.find("tupelo") != std::string::npos) found.push_back(name);
  }
  return found;
}

class FaultyJob : public ::testing::Test {
 protected:
  void run(const std::string& scenario, const std::string& route, int ranks = 3) {
    job_ = run_job(scenario, route, ranks);
    EXPECT_EQ(survivors(scenario), std::vector<std::string>{}) << job_.output;
    EXPECT_EQ(named_segments(), std::vector<std::string>{}) << job_.output;
  }

  void expect_exit_code(int code) const { EXPECT_EQ(job_.exit_code, code) << job_.output; }

  int count(const std::string& text) const {
    int found = 0;
    for (auto at = job_.output.find(text); at != std::string::npos;
         at = job_.output.find(text, at + 1)) {
      ++found;
    }
    return found;
  }

  const std::string& output() const { return job_.output; }

  void expect_output(const std::string& text) const {
    EXPECT_NE(job_.output.find(text), std::string::npos) << "no \"" << text << "\" in\n"
                                                         << job_.output;
  }

 private:
  Job job_;
};

// Whichever way bytes travel.
class MpiFaults : public FaultyJob, public ::testing::WithParamInterface<const char*> {
 protected:
  void run(const std::string& scenario, int ranks = 3) {
    FaultyJob::run(scenario, GetParam(), ranks);
  }
};

TEST_P(MpiFaults, AStuckRankTimesOutOnTheOthersWhoCanStillLeave) {
  run("stuck_rank");
  expect_exit_code(7);
  expect_output(
      "mpi all_reduce(sum) of 5 Float #1 on rank 0 failed: nothing came from rank 1 within 2000 "
      "ms");
}

TEST_P(MpiFaults, AfterATimeoutTheCommunicatorStaysDead) {
  run("stuck_rank", 2);
  expect_output("rank 0: still dead");
}

TEST_P(MpiFaults, ALargeCollectiveTimesOutAndTakesTheQueuedOnesAlong) {
  run("stuck_rank_large", 2);
  expect_exit_code(7);
  expect_output(
      "mpi all_reduce(sum) of 5000000 Float #1 on rank 0 failed: nothing came from rank 1");
}

TEST_P(MpiFaults, ARankThatEndsEarlyTimesOutOnTheOthers) {
  run("early_leaver");
  expect_exit_code(7);
  expect_output("nothing came from rank 1");
}

TEST_P(MpiFaults, ARankThatCreatesNoCommunicatorTimesOutOnTheOthers) {
  run("never_created");
  expect_exit_code(7);
  expect_output("mpi creation of the communicator #0 on rank");
}

TEST_P(MpiFaults, DifferentCollectivesAreNoticed) {
  run("different_collectives", 2);
  expect_exit_code(7);
  expect_output("so it is in another collective");
}

TEST_P(MpiFaults, ARankKilledWithSignal9EndsTheJob) {
  run("kill_9");
  expect_exit_code(137);
}

TEST_P(MpiFaults, AbortEndsTheJobWithItsCode) {
  run("abort_75");
  expect_exit_code(75);
}

TEST_P(MpiFaults, AnExceptionEndsTheJobAlthoughTheOthersSitInACollective) {
  run("exception");
  expect_exit_code(1);
}

TEST_P(MpiFaults, AStoppedRankTimesOutOnTheOthers) {
  run("stopped");
  expect_exit_code(7);
  expect_output("on rank 0 failed: nothing");
  expect_output("rank 1 within 2");
}

INSTANTIATE_TEST_SUITE_P(All, MpiFaults, ::testing::Values("messages", "shared", "hierarchical"),
                         [](const auto& test) { return std::string(test.param); });

class SharedMemoryFaults : public FaultyJob {};

TEST_F(SharedMemoryFaults, AnotherKindOfCollectiveIsNamed) {
  run("another_kind", "shared");
  expect_exit_code(7);
  expect_output(
      "mpi all_reduce(sum) of 5 Float #0 on rank 0 failed: rank 2 is at barrier #0, so it is in "
      "another collective");
}

// Rank 2, alone on its host, hears nothing from rank 0, which waits for rank 1: it is more patient
// than rank 0, so that the first to speak names rank 1.
TEST_F(SharedMemoryFaults, TheRankThatKnowsTheCulpritSpeaksFirst) {
  run("stuck_rank", "hierarchical");
  expect_output("on rank 0 failed: nothing came from rank 1 within 2000 ms");
  EXPECT_EQ(count("within 2000 ms"), 1) << output();
}

// Each of three ranks has the memory of three.
TEST_F(SharedMemoryFaults, ItsMemoryHasNoNameThatAKillCouldLeave) {
  run("kill_9", "shared");
  EXPECT_EQ(count("shares memory without a name"), 9) << output();
  EXPECT_EQ(count("under a name"), 0) << output();
}

TEST_F(SharedMemoryFaults, WithoutMemoryToShareAutoSendsMessagesAndSaysSo) {
  run("no_memory", "auto");
  expect_exit_code(0);
  for (const char* rank : {"rank 0", "rank 1", "rank 2"}) {
    expect_output(std::string(rank) +
                  ": mpi in messages, since rank 1 cannot allocate 1028 KiB of shared memory");
  }
}

TEST_F(SharedMemoryFaults, MemoryThatWasAskedForIsMissed) {
  run("no_memory", "shared");
  expect_exit_code(7);
  expect_output(
      "rank 0: ranks of a host cannot share memory: rank 1 cannot allocate 1028 KiB of shared "
      "memory");
}

}  // namespace
}  // namespace tupelo

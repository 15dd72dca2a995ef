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

void become_job(const std::string& scenario, int ranks, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  auto mark = mark_of(scenario);
  putenv(mark.data());
  const auto count = std::to_string(ranks);
  execl(TUPELO_MPIRUN, TUPELO_MPIRUN, "--oversubscribe", "-np", count.c_str(), TUPELO_RANKS,
        scenario.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

Job run_job(const std::string& scenario, int ranks) {
  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    become_job(scenario, ranks, pipe_ends[1]);
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

class MpiFaults : public ::testing::Test {
 protected:
  void run(const std::string& scenario, int ranks = 3) {
    job_ = run_job(scenario, ranks);
    EXPECT_EQ(survivors(scenario), std::vector<std::string>{}) << job_.output;
  }

  void expect_exit_code(int code) const { EXPECT_EQ(job_.exit_code, code) << job_.output; }

  void expect_output(const std::string& text) const {
    EXPECT_NE(job_.output.find(text), std::string::npos) << "no \"" << text << "\" in\n"
                                                         << job_.output;
  }

 private:
  Job job_;
};

TEST_F(MpiFaults, AStuckRankTimesOutOnTheOthersWhoCanStillLeave) {
  run("stuck_rank");
  expect_exit_code(7);
  expect_output(
      "mpi all_reduce(sum) of 5 Float #1 on rank 0 failed: nothing came from rank 1 within 2000 "
      "ms");
}

TEST_F(MpiFaults, AfterATimeoutTheCommunicatorStaysDead) {
  run("stuck_rank", 2);
  expect_output("rank 0: still dead");
}

TEST_F(MpiFaults, ALargeCollectiveTimesOutAndTakesTheQueuedOnesAlong) {
  run("stuck_rank_large", 2);
  expect_exit_code(7);
  expect_output(
      "mpi all_reduce(sum) of 5000000 Float #1 on rank 0 failed: nothing came from rank 1");
}

TEST_F(MpiFaults, ARankThatEndsEarlyTimesOutOnTheOthers) {
  run("early_leaver");
  expect_exit_code(7);
  expect_output("nothing came from rank 1");
}

TEST_F(MpiFaults, ARankThatCreatesNoCommunicatorTimesOutOnTheOthers) {
  run("never_created");
  expect_exit_code(7);
  expect_output("mpi creation of the communicator #0 on rank");
}

TEST_F(MpiFaults, DifferentCollectivesAreNoticed) {
  run("different_collectives", 2);
  expect_exit_code(7);
  expect_output("so it is in another collective");
}

TEST_F(MpiFaults, ARankKilledWithSignal9EndsTheJob) {
  run("kill_9");
  expect_exit_code(137);
}

TEST_F(MpiFaults, AbortEndsTheJobWithItsCode) {
  run("abort_75");
  expect_exit_code(75);
}

TEST_F(MpiFaults, AnExceptionEndsTheJobAlthoughTheOthersSitInACollective) {
  run("exception");
  expect_exit_code(1);
}

}  // namespace
}  // namespace tupelo

#include "launcher/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

#include "launcher/exit_codes.h"

namespace tupelo {
namespace {

constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGUSR1};

// A signal handler can reach nothing but objects with static storage.
std::atomic<int> first_signal{0};
std::atomic<long> first_second{0};
std::atomic<bool> speaks_of_signals{false};

// Of what a signal handler may call.
void say(std::string_view text) {
  if (!speaks_of_signals) return;
  const auto written = write(STDERR_FILENO, text.data(), text.size());
  (void)written;
}

void remember(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_second = now.tv_sec;
    say("stopping: this step is finished and saved; another signal ends the run without that\n");
    return;
  }
  // A terminal's Ctrl-C reaches a rank directly and by way of mpirun at almost the same time.
  if (now.tv_sec - first_second <= 1) return;
  say("error: a second signal came before the state was saved; the last checkpoint stands\n");
  _exit(static_cast<int>(ExitCode::kPreemptedNotSaved));
}

}  // namespace

StopSignal::StopSignal(bool speaks) {
  first_signal = 0;
  speaks_of_signals = speaks;
  struct sigaction action {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
}

StopSignal::~StopSignal() {
  for (int signal : kSignals) ::signal(signal, SIG_DFL);
}

int StopSignal::received() const { return first_signal; }

}  // namespace tupelo

// SIGTERM, SIGINT and SIGUSR1 ask a run to save and stop.
#pragma once

namespace tupelo {

// While it lives, the three signals only leave a mark. A second one more than a second after the
// first ends the process at once with ExitCode::kPreemptedNotSaved. One object per process.
class StopSignal {
 public:
  // `speaks`: tells on standard error what a signal does.
  explicit StopSignal(bool speaks);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The first signal received, 0 when none was.
  int received() const;
};

}  // namespace tupelo

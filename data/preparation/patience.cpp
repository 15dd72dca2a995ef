#include "data/preparation/patience.h"

#include <thread>

#include "data/errors.h"

namespace tupelo {

void be_patient(const std::function<bool()>& is_there,
                const std::function<std::filesystem::path()>& missing,
                std::chrono::milliseconds at_most) {
  constexpr std::chrono::milliseconds kPause(100);
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!is_there()) {
    if (std::chrono::steady_clock::now() >= end) {
      throw CorpusError(missing().string() +
                        ": was written by another process, but does not appear here: the output "
                        "must lie on a file system that all processes share, and they must see "
                        "the same input files");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tupelo

// RUN/metrics.jsonl: what happened, one JSON object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tupelo {

// Numbers are written with enough digits to be compared bit for bit. The file is flushed after
// every record; a torn last line (left by a killed process) is dropped when the log is opened
// again.
class MetricsLog {
 public:
  // Opens `file` for appending, first dropping every record of a step after `last_step`: a resumed
  // run writes those again, and the log stays the log of one run. Throws std::system_error.
  MetricsLog(std::filesystem::path file, std::int64_t last_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // `record` is one JSON object without line breaks. Throws std::system_error.
  void append(const std::string& record);

 private:
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace tupelo

#include "launcher/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "launcher/run_folder.h"

namespace tupelo {
namespace {

// The records of `text` up to and including `last_step`, torn lines left out.
std::string records_until(const std::string& text, std::int64_t last_step) {
  std::istringstream lines(text);
  std::string kept, line;
  while (std::getline(lines, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object() && record.value("step", std::int64_t{0}) <= last_step) {
      kept += line + "\n";
    }
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path file, std::int64_t last_step)
    : file_(std::move(file)) {
  if (std::filesystem::exists(file_)) {
    const std::string text = read_file(file_);
    const std::string kept = records_until(text, last_step);
    if (kept != text) write_atomically(file_, kept);
  }
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot open " + file_.string());
  }
}

MetricsLog::~MetricsLog() { close(descriptor_); }

void MetricsLog::append(const std::string& record) {
  const std::string line = record + "\n";
  if (write(descriptor_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno ? errno : ENOSPC, std::generic_category(),
                            "cannot write " + file_.string());
  }
}

}  // namespace tupelo

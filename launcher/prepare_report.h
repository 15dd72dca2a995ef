// What a person sees of a preparation, while it runs and at its end.
#pragma once

#include <chrono>
#include <string>

#include "data/prepare.h"

namespace tupelo {

class Console;

// Tells the progress: on a terminal all the time, elsewhere every 30 seconds.
class PreparePrinter {
 public:
  explicit PreparePrinter(Console& console) : console_(console) {}

  void operator()(const PrepareProgress& progress);

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::string text_of(const PrepareProgress& progress, Time now) const;
  bool counts_bytes() const { return phase_ != "shards" && phase_ != "verify"; }

  Console& console_;
  std::string phase_;
  Time started_;
  Time shown_ = std::chrono::steady_clock::now();
};

std::string prepare_report_json(const PrepareReport& report);

void print_prepare_report(const PrepareReport& report, const std::string& output, Console& console);

}  // namespace tupelo

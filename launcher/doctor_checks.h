// What the reports of all ranks say about a cluster. Pure functions: no rank asks anybody.
#pragma once

#include <string>
#include <vector>

#include "launcher/process_report.h"

namespace tupelo {

struct Finding {
  enum class Result { kOk, kWarning, kFailed };
  std::string check;  // "open files"
  Result result = Result::kOk;
  std::string found;   // one sentence
  std::string advice;  // what to do; empty when all is well
};
using Findings = std::vector<Finding>;

// One finding each of: ranks, devices, cores, numa, limits, networks, shared memory, free disk.
// `reports` by rank, at least one.
Findings check_reports(const std::vector<ProcessReport>& reports);

// Seconds that an exchange of equal size took between two hosts (or ranks of one host).
struct LinkTime {
  std::string first, second;
  double seconds = 0;
};

// Names the links that are more than four times as slow as a quarter of them can do, and an end
// that they all share.
Finding check_links(const std::vector<LinkTime>& links);

// `offsets`: seconds by which the clock of each host is ahead of rank 0's, known to within
// `uncertainty`.
Finding check_clocks(const std::vector<std::string>& hosts, const std::vector<double>& offsets,
                     double uncertainty);

}  // namespace tupelo

// A probe of attention as a page to look at.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "launcher/held_out_probe.h"

namespace tupelo {

struct ProbeReport {
  std::string checkpoint;  // folder
  std::int64_t step = 0;
  HeldOutProbe probe;
  std::map<std::string, double> gradient_norms;  // as in held_out_gradient_norms()
};

// A page of its own, without scripts: parts of the scores by layer; for each group heat maps of the
// correlation of positions in its first layer (at most 64 x 64 cells a head) and the bias by
// distance.
std::string probe_page(const ProbeReport& report);
// The same as data: probe_json(), gradient norms, and the bias by distance of every group.
nlohmann::ordered_json probe_report_json(const ProbeReport& report);

// Throws std::invalid_argument unless `folder` is a place where write_probe_report() may write: it
// is not there yet, empty, or holds an earlier report; std::system_error when it may not be
// written.
void check_probe_folder(const std::filesystem::path& folder);

// Writes `folder`/probe.json and `folder`/index.html. A folder that was not there appears with both
// files or not at all; in one that was, each file is replaced as a whole. Throws std::system_error.
void write_probe_report(const std::filesystem::path& folder, const ProbeReport& report);

}  // namespace tupelo

// What `tupelo doctor --json` has measured, as a fabric.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/fabric_model.h"

namespace tupelo::bench {

struct DoctorFile {
  Group group;  // of the ranks that doctor ran on
  AlphaBeta all_reduce;
};

// Throws std::invalid_argument, naming `source`, for what is no such report, and where hosts did
// not run equally many ranks.
DoctorFile doctor_report(const nlohmann::json& report, const std::string& source);

// The JSON of a file. Throws std::invalid_argument that names it.
nlohmann::json read_json(const std::string& path);

}  // namespace tupelo::bench

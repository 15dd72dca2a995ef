#include "bench/doctor_file.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace tupelo::bench {
namespace {

using Json = nlohmann::json;

Group group_of(const Json& ranks, const std::string& source) {
  std::map<std::string, int> ranks_of_host;
  for (const Json& rank : ranks) ++ranks_of_host[rank.at("host").get<std::string>()];
  if (ranks_of_host.empty()) throw std::invalid_argument(source + " names no ranks");
  const int first = ranks_of_host.begin()->second;
  for (const auto& [host, count] : ranks_of_host) {
    if (count == first) continue;
    throw std::invalid_argument(source + ": " + host + " ran " + std::to_string(count) +
                                " ranks and " + ranks_of_host.begin()->first + " " +
                                std::to_string(first) + "; the model needs equally many on each");
  }
  return {static_cast<int>(ranks_of_host.size()), first};
}

}  // namespace

DoctorFile doctor_report(const Json& report, const std::string& source) {
  try {
    std::vector<Measurement> measurements;
    for (const Json& each : report.at("all_reduce")) {
      measurements.push_back({each.at("bytes").get<double>(), each.at("seconds").get<double>()});
    }
    return {group_of(report.at("ranks"), source), fit_alpha_beta(measurements)};
  } catch (const Json::exception& error) {
    throw std::invalid_argument(source + " is no report of tupelo doctor --json: " + error.what());
  }
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument(path + " cannot be read");
  try {
    return Json::parse(file);
  } catch (const Json::exception& error) {
    throw std::invalid_argument(path + " is no JSON: " + error.what());
  }
}

}  // namespace tupelo::bench

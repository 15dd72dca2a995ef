// The costs of a position plan, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/plan_report.h"

namespace tupelo {

std::string plan_table(const PlanReport& report);
nlohmann::ordered_json plan_json(const PlanReport& report);

}  // namespace tupelo

// What cleaning did, written down.
#pragma once

#include <string>

#include "data/cleaning/cleaner.h"

namespace tupelo {

// report.json, as FORMAT.md has it.
std::string format_report_json(const CleaningReport& report);

// The same as a page for people that needs nothing else.
std::string format_report_html(const CleaningReport& report);

}  // namespace tupelo

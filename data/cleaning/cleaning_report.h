// What cleaning did, written down.
#pragma once

#include <string>
#include <vector>

#include "data/cleaning/cleaner.h"
#include "data/text_source.h"

namespace tupelo {

// report.json, as FORMAT.md has it, on the cleaning of `sources`.
std::string format_report_json(const CleaningReport& report,
                               const std::vector<TextSource>& sources);

// The same as a page for people that needs nothing else.
std::string format_report_html(const CleaningReport& report,
                               const std::vector<TextSource>& sources);

}  // namespace tupelo

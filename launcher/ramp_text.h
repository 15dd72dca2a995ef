// Values that change while a run goes on, as text: "64:1000,128:3000".
#pragma once

#include <cstdint>
#include <string>

#include "data/data_options.h"

namespace tupelo {

// "none" is a ramp without parts. Throws std::invalid_argument that quotes the part at fault: a
// value outside [least, most], no step, steps that do not rise.
Ramp parse_ramp(const std::string& text, std::int64_t least, std::int64_t most);
// What parses back to it.
std::string ramp_text(const Ramp& ramp);

}  // namespace tupelo

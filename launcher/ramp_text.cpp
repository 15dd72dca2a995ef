#include "launcher/ramp_text.h"

#include <sstream>
#include <stdexcept>

#include "launcher/value_text.h"

namespace tupelo {
namespace {

RampPart parse_part(const std::string& text, std::int64_t least, std::int64_t most) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw std::invalid_argument("'" + text + "' is not VALUE:STEP, as in 64:1000");
  }
  return {parse_integer(text.substr(0, colon), least, most),
          parse_integer(text.substr(colon + 1), 1, INT64_MAX)};
}

}  // namespace

Ramp parse_ramp(const std::string& text, std::int64_t least, std::int64_t most) {
  Ramp ramp;
  if (text == "none") return ramp;
  if (text.empty()) throw std::invalid_argument("it is empty; none stands for no ramp");
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    const RampPart next = parse_part(part, least, most);
    if (!ramp.empty() && next.until_step <= ramp.back().until_step) {
      throw std::invalid_argument("'" + part + "': step " + std::to_string(next.until_step) +
                                  " does not come after step " +
                                  std::to_string(ramp.back().until_step));
    }
    ramp.push_back(next);
  }
  return ramp;
}

std::string ramp_text(const Ramp& ramp) {
  std::string text;
  for (const RampPart& part : ramp) {
    text.append(text.empty() ? "" : ",").append(std::to_string(part.value)).append(":");
    text.append(std::to_string(part.until_step));
  }
  return text.empty() ? "none" : text;
}

}  // namespace tupelo

#include "launcher/run_config.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

#include "launcher/config_file.h"
#include "launcher/nearest_name.h"
#include "launcher/run_folder.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

const ConfigEntry& find_entry(const std::string& name, const std::string& origin) {
  std::vector<std::string> names;
  for (const ConfigEntry& entry : config_entries()) {
    if (entry.name == name || (!entry.alias.empty() && entry.alias == name)) return entry;
    names.push_back(entry.name);
  }
  throw std::invalid_argument(origin + ": " + unknown_name("key", name, names));
}

std::string environment_name(std::string name) {
  for (char& c : name) {
    c = c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return "TUPELO_" + name;
}

bool is_known_variable(const std::string& variable) {
  const auto& entries = config_entries();
  return std::any_of(entries.begin(), entries.end(), [&](const ConfigEntry& entry) {
    return variable == environment_name(entry.name);
  });
}

// Variables that look like settings and are none: TUPELO_TRAIN_STEPZ, TUPELO_STEPS. Others that
// begin with TUPELO_ are not ours to judge.
void refuse_unknown_variables() {
  std::vector<std::string> valid;
  std::set<std::string> prefixes, short_names;
  for (const ConfigEntry& entry : config_entries()) {
    const std::size_t dot = entry.name.find('.');
    valid.push_back(environment_name(entry.name));
    prefixes.insert(environment_name(entry.name.substr(0, dot + 1)));
    short_names.insert(environment_name(entry.name.substr(dot + 1)));
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name(*variable, std::strcspn(*variable, "="));
    if (is_known_variable(name)) continue;
    const bool in_section =
        std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (!in_section && short_names.count(name) == 0) continue;
    throw std::invalid_argument("environment: " + unknown_name("variable", name, valid));
  }
}

}  // namespace

void ConfigBuilder::set(const std::string& name, const std::string& value,
                        const std::string& origin) {
  const ConfigEntry& entry = find_entry(name, origin);
  origins_[entry.name] = origin;
  try {
    entry.set(config_, value);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(place_of(entry.name) + ": " + error.what());
  }
}

std::string ConfigBuilder::place_of(const std::string& name) const {
  const auto origin = origins_.find(name);
  if (origin == origins_.end()) return name;
  return origin->second == "--" + name ? origin->second : origin->second + ": " + name;
}

void ConfigBuilder::apply_file(const std::string& file) { apply_text(read_file(file), file); }

void ConfigBuilder::apply_text(const std::string& text, const std::string& name) {
  for (const ConfigLine& line : parse_config(text, name)) {
    set(line.name, line.value, name + ":" + std::to_string(line.line));
  }
}

void ConfigBuilder::apply_environment() {
  refuse_unknown_variables();
  for (const ConfigEntry& entry : config_entries()) {
    const std::string variable = environment_name(entry.name);
    if (const char* value = std::getenv(variable.c_str())) set(entry.name, value, "$" + variable);
  }
}

std::string ConfigBuilder::to_ini(bool with_origins) const {
  std::string text, section;
  for (const ConfigEntry& entry : config_entries()) {
    const std::size_t dot = entry.name.find('.');
    if (entry.name.substr(0, dot) != section) {
      section = entry.name.substr(0, dot);
      text += (text.empty() ? "[" : "\n[") + section + "]\n";
    }
    std::string line = entry.name.substr(dot + 1) + " = " + entry.get(config_);
    if (with_origins) {
      const auto origin = origins_.find(entry.name);
      line.resize(std::max<std::size_t>(line.size() + 2, 44), ' ');
      line += "# " + (origin == origins_.end() ? "default" : origin->second);
    }
    text += line + "\n";
  }
  return text;
}

std::int64_t frozen_position_steps(const RunConfig& config,
                                   const std::function<double(std::int64_t)>& epochs_after) {
  if (config.optim.positions == "freeze") return INT64_MAX;
  const Duration duration = parse_duration(config.optim.position_frozen_steps);
  if (!duration.in_epochs) return static_cast<std::int64_t>(duration.amount);
  // Also beyond the run, which may get longer at another start.
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 38;
  std::int64_t too_few = -1, enough = 1;
  while (epochs_after(enough) < duration.amount) {
    if (enough >= kMostSteps) return INT64_MAX;
    too_few = enough;
    enough *= 2;
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (epochs_after(middle) < duration.amount ? too_few : enough) = middle;
  }
  return enough;
}

}  // namespace tupelo

#include "launcher/run_config.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

#include "launcher/nearest_name.h"
#include "launcher/run_folder.h"
#include "launcher/update_settings.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

namespace po = boost::program_options;

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

// Line of `key` under its section, since the Boost parser does not tell; 0 when it cannot be found.
int line_of(const std::string& text, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string wanted_section = dot == std::string::npos ? "" : name.substr(0, dot);
  const std::string wanted_key = name.substr(dot == std::string::npos ? 0 : dot + 1);
  std::istringstream lines(text);
  std::string line, section;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1);
    const std::string key = line.substr(0, line.find_first_of(" \t=\r"));
    if ((section == wanted_section && key == wanted_key) || key == name) return number;
  }
  return 0;
}

}  // namespace

void ConfigBuilder::set(const std::string& name, const std::string& value,
                        const std::string& origin) {
  const ConfigEntry& entry = find_entry(name, origin);
  try {
    entry.set(config_, value);
  } catch (const std::invalid_argument& error) {
    const bool named = origin == "--" + entry.name;
    throw std::invalid_argument(origin + ": " + (named ? "" : entry.name + ": ") + error.what());
  }
  origins_[entry.name] = origin;
}

void ConfigBuilder::apply_file(const std::string& file) { apply_text(read_file(file), file); }

void ConfigBuilder::apply_text(const std::string& text, const std::string& name) {
  po::options_description nothing_registered;
  std::istringstream stream(text);
  std::vector<po::option> options;
  try {
    options = po::parse_config_file(stream, nothing_registered, true).options;
  } catch (const po::error& error) {
    throw std::invalid_argument(name + ": " + error.what());
  }
  std::set<std::string> seen;
  for (const po::option& option : options) {
    if (!seen.insert(option.string_key).second) {
      throw std::invalid_argument(name + ": " + option.string_key + " is set twice");
    }
    const int line = line_of(text, option.string_key);
    const std::string origin = line > 0 ? name + ":" + std::to_string(line) : name;
    std::string value = option.value.empty() ? "" : option.value.front();
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    set(option.string_key, value, origin);
  }
}

void ConfigBuilder::apply_environment() {
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
  std::int64_t too_few = -1, enough = config.train.steps;
  if (epochs_after(enough) < duration.amount) return INT64_MAX;  // not within the run
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (epochs_after(middle) < duration.amount ? too_few : enough) = middle;
  }
  return enough;
}

void validate(const RunConfig& config) {
  const auto require = [](bool holds, const std::string& sentence) {
    if (!holds) throw std::invalid_argument(sentence);
  };
  std::int64_t longest = config.data.sequence_length;
  for (const RampPart& part : config.data.length_ramp) longest = std::max(longest, part.value);
  require(longest <= config.model.max_positions,
          "data.sequence-length is " + std::to_string(longest) +
              ", longer than the position tables: model.max-positions is " +
              std::to_string(config.model.max_positions));
  require(config.model.hidden_size % config.model.heads == 0,
          "model.heads is " + std::to_string(config.model.heads) +
              ", which does not divide model.hidden-size " +
              std::to_string(config.model.hidden_size));
  require(config.data.mask_token_share + config.data.random_token_share <= 1.0,
          "data.mask-token-share and data.random-token-share add up to more than 1");
  require(!config.data.sentence_pairs || config.data.packing == Packing::kDocument,
          "objective.sop-weight needs data.packing doc: only there do rows keep to one document");
  require(config.optim.positions != "freeze" ||
              parse_duration(config.optim.position_frozen_steps).amount == 0,
          "optim.position-frozen-steps is " + config.optim.position_frozen_steps +
              ", which has no effect while optim.positions is freeze");
  try {
    optimizer_flavour(config.optim.optimizer);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("optim.flavour: ") + error.what());
  }
  validate_updates(config);
  try {
    learning_rate_schedule(config);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("[optim] warmup, schedule: ") + error.what());
  }
}

}  // namespace tupelo

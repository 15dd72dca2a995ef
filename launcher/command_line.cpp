#include "launcher/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <stdexcept>

#include "launcher/nearest_name.h"
#include "launcher/run_config.h"

namespace tupelo {
namespace {

namespace po = boost::program_options;
using Values = std::vector<std::string>;

po::options_description describe(const Verb& verb) {
  po::options_description description;
  auto add = description.add_options();
  for (const VerbOption& option : verb.options) {
    switch (option.takes) {
      case VerbOption::Takes::kNothing:
        add(option.name.c_str(), "");
        break;
      case VerbOption::Takes::kOneValue:
        add(option.name.c_str(), po::value<Values>(), "");
        break;
      case VerbOption::Takes::kManyValues:
        add(option.name.c_str(), po::value<Values>()->multitoken(), "");
        break;
    }
  }
  if (verb.configurable) {
    for (const ConfigEntry& entry : config_entries()) {
      add(entry.name.c_str(), po::value<Values>(), "");
      if (!entry.alias.empty()) add(entry.alias.c_str(), po::value<Values>(), "");
    }
  }
  return description;
}

std::vector<std::string> valid_options(const Verb& verb) {
  std::vector<std::string> names;
  for (const VerbOption& option : verb.options) names.push_back("--" + option.name);
  if (verb.configurable) {
    for (const ConfigEntry& entry : config_entries()) {
      names.push_back("--" + entry.name);
      if (!entry.alias.empty()) names.push_back("--" + entry.alias);
    }
  }
  return names;
}

const VerbOption* find_option(const Verb& verb, const std::string& name) {
  const auto found = std::find_if(verb.options.begin(), verb.options.end(),
                                  [&](const VerbOption& option) { return option.name == name; });
  return found == verb.options.end() ? nullptr : &*found;
}

po::parsed_options parse(const Verb& verb, const po::options_description& description,
                         const std::vector<std::string>& arguments) {
  namespace style = po::command_line_style;
  po::positional_options_description positional;
  po::command_line_parser parser(arguments);
  parser.options(description)
      .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
      .allow_unregistered();
  if (verb.positional) {
    positional.add(verb.positional->c_str(), -1);
    parser.positional(positional);
  }
  return parser.run();
}

std::string padded(const std::string& left, const std::string& help) {
  constexpr std::size_t kColumn = 32;
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn) {
    line += "\n";
    line.append(kColumn, ' ');
  } else {
    line.resize(kColumn, ' ');
  }
  return line + help + "\n";
}

}  // namespace

CommandLine::CommandLine(const Verb& verb, const std::vector<std::string>& arguments)
    : verb_(verb.name) {
  const std::string where = "tupelo " + verb.name + ": ";
  const po::options_description description = describe(verb);
  po::parsed_options parsed(nullptr);
  try {
    parsed = parse(verb, description, arguments);
  } catch (const po::error& error) {
    throw std::invalid_argument(where + error.what());
  }
  for (const po::option& option : parsed.options) {
    if (option.unregistered || (option.position_key >= 0 && !verb.positional)) {
      const std::string word =
          option.original_tokens.empty() ? option.string_key : option.original_tokens.front();
      if (!word.starts_with('-')) {
        throw std::invalid_argument(where + "'" + word + "' does not belong here; see tupelo " +
                                    verb.name + " --help");
      }
      throw std::invalid_argument(
          where + unknown_name("option", word.substr(0, word.find('=')), valid_options(verb)));
    }
    const VerbOption* own = find_option(verb, option.string_key);
    if (own == nullptr) {
      add_setting(option.string_key, option.value.front());
    } else {
      add(verb, *own, option.value);
    }
  }
}

void CommandLine::add(const Verb& verb, const VerbOption& option, const Values& values) {
  const std::string where = "tupelo " + verb_ + ": ";
  Values& all = values_[option.name];
  for (const std::string& value : values) {
    if (value.empty()) {
      throw std::invalid_argument(where + "option '--" + option.name + "' has an empty value");
    }
    if (!all.empty() && option.takes == VerbOption::Takes::kOneValue) {
      throw std::invalid_argument(verb.positional == option.name
                                      ? where + "one " + option.argument + " at a time, '" + value +
                                            "' is one too many"
                                      : where + "option '--" + option.name + "' is given twice");
    }
    all.push_back(value);
  }
}

void CommandLine::add_setting(const std::string& name, const std::string& value) {
  const auto& entries = config_entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const ConfigEntry& known) {
    return known.name == name || known.alias == name;
  });
  const auto same = [&](const auto& other) {
    return other.first == entry->name || other.first == entry->alias;
  };
  if (std::any_of(settings_.begin(), settings_.end(), same)) {
    throw std::invalid_argument("tupelo " + verb_ + ": '--" + name + "' is given twice");
  }
  settings_.emplace_back(name, value);
}

std::string CommandLine::value(const std::string& name, const std::string& fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? fallback : found->second.front();
}

const std::vector<std::string>& CommandLine::values(const std::string& name) const {
  static const Values none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

std::string CommandLine::required(const std::string& name) const {
  if (!has(name)) {
    throw std::invalid_argument("tupelo " + verb_ + ": --" + name + " is required; see tupelo " +
                                verb_ + " --help");
  }
  return value(name);
}

std::string help_text(const Verb& verb) {
  std::string text = "usage: " + verb.usage + "\n\n" + verb.summary + "\n\noptions\n";
  for (const VerbOption& option : verb.options) {
    text += padded("--" + option.name + (option.argument.empty() ? "" : " " + option.argument),
                   option.help);
  }
  if (verb.configurable) {
    const RunConfig defaults;
    std::string section;
    for (const ConfigEntry& entry : config_entries()) {
      const std::string entry_section = entry.name.substr(0, entry.name.find('.'));
      if (entry_section != section) {
        section = entry_section;
        text += "\n[" + section + "]\n";
      }
      const std::string value = entry.get(defaults);
      text += padded("--" + entry.name, entry.help + (value.empty() ? "" : " (" + value + ")") +
                                            (entry.alias.empty() ? "" : "; also --" + entry.alias));
    }
  }
  return verb.epilogue.empty() ? text : text + "\n" + verb.epilogue + "\n";
}

}  // namespace tupelo

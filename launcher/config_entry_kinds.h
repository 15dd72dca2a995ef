// The kinds of rows of config_entries(): what a value is, how it is read and printed.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "launcher/nearest_name.h"
#include "launcher/run_config.h"
#include "launcher/value_text.h"

namespace tupelo {

// The [optim] section.
std::vector<ConfigEntry> optim_entries();

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr double kHuge = std::numeric_limits<double>::max();

// `field` is a callable that returns a reference to the value inside a RunConfig, const or not.
template <typename Field>
ConfigEntry integer(std::string name, Field field, std::int64_t least, std::int64_t most,
                    std::string help, std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& text) {
            using Value = std::remove_reference_t<decltype(field(config))>;
            field(config) = static_cast<Value>(parse_integer(text, least, most));
          },
          [=](const RunConfig& config) { return std::to_string(field(config)); }};
}

template <typename Field>
ConfigEntry number(std::string name, Field field, double least, double most, std::string help) {
  return {std::move(name), "", std::move(help),
          [=](RunConfig& config, const std::string& text) {
            field(config) = parse_number(text, least, most);
          },
          [=](const RunConfig& config) { return number_text(field(config)); }};
}

template <typename Field>
ConfigEntry flag(std::string name, Field field, std::string help) {
  return {std::move(name), "", std::move(help),
          [=](RunConfig& config, const std::string& text) { field(config) = parse_flag(text); },
          [=](const RunConfig& config) { return field(config) ? "true" : "false"; }};
}

template <typename Field>
ConfigEntry text(std::string name, Field field, std::string help, std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& value) { field(config) = value; },
          [=](const RunConfig& config) { return std::string(field(config)); }};
}

// One of a few words, each standing for a value of an enumeration (or being the value itself).
template <typename Field, typename Value>
ConfigEntry choice(std::string name, Field field,
                   std::vector<std::pair<std::string, Value>> choices, std::string help,
                   std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& word) {
            std::vector<std::string> valid;
            for (const auto& [known, value] : choices) {
              if (known == word) {
                field(config) = value;
                return;
              }
              valid.push_back(known);
            }
            throw std::invalid_argument(unknown_name("value", word, valid));
          },
          [=](const RunConfig& config) {
            for (const auto& [known, value] : choices) {
              if (field(config) == value) return known;
            }
            return std::string();
          }};
}

inline std::vector<std::pair<std::string, std::string>> words(
    const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& name : names) result.emplace_back(name, name);
  return result;
}

}  // namespace tupelo

#include "launcher/settings.h"

namespace tupelo {

InheritedSettings model_settings(const RunConfig& config, const std::string& origin) {
  InheritedSettings settings{origin, {}};
  for (const ConfigEntry& entry : config_entries()) {
    if (entry.name.starts_with("model.")) {
      settings.values.emplace_back(entry.name, entry.get(config));
    }
  }
  return settings;
}

ConfigBuilder gather_settings(const CommandLine& line, const InheritedSettings& inherited) {
  ConfigBuilder builder;
  for (const auto& [name, value] : inherited.values) builder.set(name, value, inherited.origin);
  if (line.has("config")) builder.apply_file(line.value("config"));
  builder.apply_environment();
  for (const auto& [name, value] : line.settings()) builder.set(name, value, "--" + name);
  return builder;
}

}  // namespace tupelo

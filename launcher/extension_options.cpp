#include "launcher/extension_options.h"

#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

}  // namespace

std::vector<VerbOption> extension_options(const std::string& policy_help) {
  return {{"extend-policy", Takes::kOneValue, "NAME", policy_help},
          {"extend-alpha", Takes::kOneValue, "A",
           "with --extend-policy hier: between 0 and 1, not 0.5 (0.4)"}};
}

LengthExtension extension_from(const CommandLine& line) {
  LengthExtension extension;
  if (line.has("extend-policy")) {
    extension.tables = reading_option(
        "extend-policy", [&] { return parse_table_extension(line.value("extend-policy")); });
  }
  if (!line.has("extend-alpha")) return extension;
  reading_option("extend-alpha", [&] {
    if (extension.tables != TableExtension::kHierarchical) {
      throw std::invalid_argument("belongs to --extend-policy hier");
    }
    extension.hierarchical_alpha = parse_number(line.value("extend-alpha"), 0, 1);
    check_hierarchical_alpha("hier", extension.hierarchical_alpha);
  });
  return extension;
}

}  // namespace tupelo

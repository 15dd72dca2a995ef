#include "model/position/position_plan.h"

#include <algorithm>
#include <stdexcept>

#include "model/layer_set.h"
#include "model/position/encoding_call.h"
#include "model/position/option_reader.h"

namespace tupelo {
namespace {

constexpr const char* kSetting = "position plan";
constexpr const char* kShare = "share";
const std::vector<std::string> kSharings = {"group", "layer", "model"};

struct Entry {
  std::vector<std::int64_t> layers;
  std::string encoding;  // "none" or a name of the table
  PositionOptions options;
  std::string share = "group";
};

[[noreturn]] void reject(const std::string& entry, const std::string& what) {
  throw std::invalid_argument(std::string(kSetting) + ": entry '" + entry + "' " + what);
}

// The options of an encoding, and the one that the plan obeys itself.
std::vector<PositionOptionKind> options_of_entry(const PositionEncodingKind& kind) {
  std::vector<PositionOptionKind> options = kind.options;
  options.push_back({kShare, kSharings.front(), kSharings, "whose parameters a layer uses"});
  return options;
}

Entry parse_entry(const std::string& text, std::int64_t layers) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    reject(text, "has no ':'; write LAYERS:NAME or LAYERS:NAME(option=value,...)");
  }
  Entry entry;
  entry.layers = parse_layer_set(trimmed(text.substr(0, colon)), layers, kSetting);
  EncodingCall call = parse_encoding_call(text.substr(colon + 1),
                                          [&](const std::string& what) { reject(text, what); });
  entry.encoding = call.name;
  if (call.name == "none") {
    return entry;
  }
  const PositionEncodingKind& kind = position_encoding_kind(call.name);
  entry.encoding = kind.name;
  const OptionReader options(kind.name, options_of_entry(kind), call.options);
  entry.share = options.text(kShare);
  entry.options = options.canonical();
  std::erase_if(entry.options, [](const auto& option) { return option.first == kShare; });
  return entry;
}

// The groups that one entry adds; with share=model it may join an earlier one.
void add_groups(const Entry& entry, std::vector<PositionPlan::Group>& groups,
                std::vector<bool>& joinable) {
  if (entry.share == "layer") {
    for (const std::int64_t layer : entry.layers) {
      groups.push_back({entry.encoding, entry.options, {layer}});
      joinable.push_back(false);
    }
    return;
  }
  const bool shared = entry.share == "model";
  for (std::size_t i = 0; shared && i < groups.size(); ++i) {
    if (joinable[i] && groups[i].encoding == entry.encoding && groups[i].options == entry.options) {
      auto& layers = groups[i].layers;
      layers.insert(layers.end(), entry.layers.begin(), entry.layers.end());
      std::sort(layers.begin(), layers.end());
      return;
    }
  }
  groups.push_back({entry.encoding, entry.options, entry.layers});
  joinable.push_back(shared);
}

void check_cover(const std::vector<Entry>& entries, std::int64_t layers) {
  std::vector<int> named(static_cast<std::size_t>(layers), 0);
  for (const Entry& entry : entries) {
    for (const std::int64_t layer : entry.layers) {
      ++named[static_cast<std::size_t>(layer)];
    }
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const int count = named[static_cast<std::size_t>(layer)];
    if (count != 1) {
      throw std::invalid_argument(std::string(kSetting) + ": layer " + std::to_string(layer) +
                                  (count == 0 ? " is missing; use none for a layer without encoding"
                                              : " is named by more than one entry"));
    }
  }
}

std::string entry_text(const PositionPlan::Group& group, std::int64_t layers) {
  return layer_set_text(group.layers, layers) + ":" +
         encoding_call_text(group.encoding, group.options);
}

}  // namespace

PositionPlan PositionPlan::parse(const std::string& text, std::int64_t layers) {
  std::vector<Entry> entries;
  for (const std::string& piece : split_outside_parentheses(text, ',')) {
    entries.push_back(parse_entry(piece, layers));
  }
  check_cover(entries, layers);
  PositionPlan plan;
  std::vector<bool> joinable;
  for (const Entry& entry : entries) {
    if (entry.encoding != "none") {
      add_groups(entry, plan.groups, joinable);
    }
  }
  std::sort(plan.groups.begin(), plan.groups.end(), [](const Group& left, const Group& right) {
    return left.layers.front() < right.layers.front();
  });
  plan.group_of_layer.assign(static_cast<std::size_t>(layers), -1);
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    for (const std::int64_t layer : plan.groups[i].layers) {
      plan.group_of_layer[static_cast<std::size_t>(layer)] = static_cast<std::int64_t>(i);
    }
  }
  return plan;
}

std::string PositionPlan::to_string() const {
  const auto layers = static_cast<std::int64_t>(group_of_layer.size());
  std::vector<Group> entries = groups;
  Group none{"none", {}, {}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (group_of_layer[static_cast<std::size_t>(layer)] < 0) {
      none.layers.push_back(layer);
    }
  }
  if (!none.layers.empty()) {
    entries.push_back(none);
  }
  std::sort(entries.begin(), entries.end(), [](const Group& left, const Group& right) {
    return left.layers.front() < right.layers.front();
  });
  std::string text;
  for (const Group& entry : entries) {
    if (!text.empty()) {
      text += ',';
    }
    text += entry_text(entry, layers);
  }
  return text;
}

}  // namespace tupelo

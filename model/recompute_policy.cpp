#include "model/recompute_policy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "model/layer_set.h"
#include "model/position/spelling.h"

namespace tupelo {
namespace {

constexpr std::string_view kBudgetPrefix = "auto:", kEveryPrefix = "every-";

struct PartName {
  std::string_view name;
  Recomputed part;
};
// The first name of a part is the one that is written.
constexpr PartName kPartNames[] = {{"none", Recomputed::kNothing},
                                   {"full", Recomputed::kLayer},
                                   {"all", Recomputed::kLayer},
                                   {"attention", Recomputed::kAttention},
                                   {"ffn", Recomputed::kFeedForward}};

[[noreturn]] void reject(const std::string& setting, const std::string& what) {
  throw std::invalid_argument(setting + ": " + what);
}

std::optional<Recomputed> part_called(std::string_view name) {
  for (const PartName& known : kPartNames) {
    if (known.name == name) return known.part;
  }
  return std::nullopt;
}

std::string name_of(Recomputed part) {
  for (const PartName& known : kPartNames) {
    if (known.part == part) return std::string(known.name);
  }
  return "";
}

[[noreturn]] void reject_policy(const std::string& text, const std::string& setting) {
  std::string what = "'" + text + "' is no policy";
  what += spelling_hint(text, {"none", "full", "attention", "ffn", "every-2", "auto:"});
  what +=
      "; valid: none, full, attention, ffn, every-K (every-2), auto:BYTES (auto:6GiB) or layers "
      "(0-3:attention,4-7:full)";
  reject(setting, what);
}

std::int64_t parse_budget(const std::string& text, const std::string& setting) {
  constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{{"", 1.0},
                                                                           {"B", 1.0},
                                                                           {"kB", 1e3},
                                                                           {"MB", 1e6},
                                                                           {"GB", 1e9},
                                                                           {"TB", 1e12},
                                                                           {"KiB", 0x1p10},
                                                                           {"MiB", 0x1p20},
                                                                           {"GiB", 0x1p30},
                                                                           {"TiB", 0x1p40}}};
  constexpr double kMost = 0x1p60;
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double bytes = 0;
  for (const auto& [name, factor] : kUnits) {
    if (name == unit) bytes = amount * factor;
  }
  if (error != std::errc() || !(bytes >= 1.0 && bytes <= kMost)) {
    std::string what = "auto:";
    what += text;
    what += " needs a number of bytes, such as auto:6GiB, auto:512MiB or auto:1.5GB";
    reject(setting, what);
  }
  return static_cast<std::int64_t>(std::floor(bytes));
}

std::vector<Recomputed> every(const std::string& count_text, std::int64_t layers,
                              const std::string& setting) {
  std::int64_t count = 0;
  const char* const text_end = count_text.data() + count_text.size();
  const auto [end, error] = std::from_chars(count_text.data(), text_end, count);
  if (error != std::errc() || end != text_end || count < 1 || count > layers) {
    std::string what = "every-";
    what += count_text;
    what += " needs a whole number from 1 to " + std::to_string(layers) + ", the number of layers";
    reject(setting, what);
  }
  std::vector<Recomputed> parts(static_cast<std::size_t>(layers), Recomputed::kNothing);
  for (std::int64_t layer = count - 1; layer < layers; layer += count) {
    parts[static_cast<std::size_t>(layer)] = Recomputed::kLayer;
  }
  return parts;
}

std::vector<Recomputed> listed(const std::string& text, std::int64_t layers,
                               const std::string& setting) {
  std::vector<Recomputed> parts(static_cast<std::size_t>(layers), Recomputed::kNothing);
  std::vector<bool> named(parts.size(), false);
  std::istringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t colon = item.find(':');
    const std::string word = colon == std::string::npos ? "full" : item.substr(colon + 1);
    const std::optional<Recomputed> part = part_called(word);
    if (!part || word == "all") {
      std::string what = "'" + item + "' needs one of none, full, attention and ffn behind the :";
      what += spelling_hint(word, {"none", "full", "attention", "ffn"});
      reject(setting, what);
    }
    for (const std::int64_t layer : parse_layer_set(item.substr(0, colon), layers, setting)) {
      const auto index = static_cast<std::size_t>(layer);
      if (named[index]) {
        reject(setting, "layer " + std::to_string(layer) + " is named by more than one entry");
      }
      named[index] = true;
      parts[index] = *part;
    }
  }
  return parts;
}

}  // namespace

bool recomputes_attention(Recomputed part) {
  return part == Recomputed::kAttention || part == Recomputed::kLayer;
}

bool recomputes_feed_forward(Recomputed part) {
  return part == Recomputed::kFeedForward || part == Recomputed::kLayer;
}

std::string RecomputePolicy::to_string() const {
  if (budget_bytes) return std::string(kBudgetPrefix) + std::to_string(*budget_bytes);
  const auto all_do = [&](Recomputed part) {
    return std::all_of(layers.begin(), layers.end(), [&](Recomputed own) { return own == part; });
  };
  for (const PartName& known : kPartNames) {
    if (all_do(known.part)) return std::string(known.name);
  }
  std::vector<std::pair<std::int64_t, std::string>> entries;  // first layer, text
  for (const Recomputed part :
       {Recomputed::kAttention, Recomputed::kFeedForward, Recomputed::kLayer}) {
    std::vector<std::int64_t> set;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i] == part) set.push_back(static_cast<std::int64_t>(i));
    }
    if (set.empty()) continue;
    std::string entry = layer_set_text(set, static_cast<std::int64_t>(layers.size()));
    entry += ':';
    entry += name_of(part);
    entries.emplace_back(set.front(), entry);
  }
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const auto& [first, entry] : entries) {
    text += text.empty() ? "" : ",";
    text += entry;
  }
  return text;
}

RecomputePolicy parse_recompute(const std::string& text, std::int64_t layers,
                                const std::string& setting) {
  const auto uniform = [&](Recomputed part) {
    return std::vector<Recomputed>(static_cast<std::size_t>(layers), part);
  };
  if (const std::optional<Recomputed> part = part_called(text)) return {uniform(*part), {}};
  if (text.rfind(kBudgetPrefix, 0) == 0) {
    return {uniform(Recomputed::kNothing),
            parse_budget(text.substr(kBudgetPrefix.size()), setting)};
  }
  if (text.rfind(kEveryPrefix, 0) == 0) {
    return {every(text.substr(kEveryPrefix.size()), layers, setting), {}};
  }
  const bool is_list = text.find(':') != std::string::npos ||
                       (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())));
  if (!is_list) reject_policy(text, setting);
  return {listed(text, layers, setting), {}};
}

}  // namespace tupelo

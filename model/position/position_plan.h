// Which layer uses which group of which encoding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/position/position_encoding.h"

namespace tupelo {

// Grammar: entries "LAYERS:NAME" or "LAYERS:NAME(option=value,...)", separated by commas; LAYERS is
// "all", a layer "7" or a range "6-11" (several joined by "+": "0-2+6-8"). Layers count from 0.
// Every layer must be named exactly once.
//
// One entry is one group: its layers share parameters and, in each forward pass, the terms computed
// from them. Option share=layer gives every layer of the entry a group of its own; share=model
// merges all entries with the same name and options into one group.
struct PositionPlan {
  struct Group {
    std::string encoding;     // never "none"
    PositionOptions options;  // checked; only those that differ from their defaults, without share
    std::vector<std::int64_t> layers;
  };
  std::vector<Group> groups;
  std::vector<std::int64_t> group_of_layer;  // index into groups, -1 for "none"

  // Throws std::invalid_argument: unknown encoding (with the nearest name), layer out of range,
  // named twice or missing, malformed entry (with the text at fault).
  static PositionPlan parse(const std::string& text, std::int64_t layers);

  // Canonical text: parse(to_string()) is the same plan, and equal plans have equal text.
  std::string to_string() const;
};

}  // namespace tupelo

// Sets of layers as users write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

// "all", a layer "7", a range "6-11", or several joined by "+" ("0-2+6-8"), sorted. Layers count
// from 0. Throws std::invalid_argument with the text at fault for anything else, for a layer >=
// `layers` and for one named twice; `setting` says in the message whose value it is.
std::vector<std::int64_t> parse_layer_set(const std::string& text, std::int64_t layers,
                                          const std::string& setting);

// The shortest such text for sorted, distinct layers; "all" when there are `layers` of them.
std::string layer_set_text(const std::vector<std::int64_t>& set, std::int64_t layers);

}  // namespace tupelo

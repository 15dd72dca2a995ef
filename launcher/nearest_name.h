// "Did you mean ...?"
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// The candidate with the smallest edit distance to `name`, when it is close enough to be a likely
// slip; else empty. A candidate's last dotted part counts as well ("layers" is near
// "model.layers").
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// "unknown <what> 'x'; did you mean 'y'?", with a list of what is valid when that is short or
// nothing is near.
std::string unknown_name(const std::string& what, const std::string& name,
                         const std::vector<std::string>& valid);

// `value` when it is valid; throws std::invalid_argument with that sentence when it is not.
std::string one_of(const std::string& value, const std::vector<std::string>& valid);

}  // namespace tupelo

// "Did you mean ...?"
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// The candidate with the smallest edit distance to `name`, when it is close enough to be a likely
// slip; else empty. A candidate's last dotted part counts as well ("layers" is near
// "model.layers").
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// "unknown <what> 'x'; did you mean 'y'?" or a list of what is valid when nothing is near.
std::string unknown_name(const std::string& what, const std::string& name,
                         const std::vector<std::string>& valid);

}  // namespace tupelo

// {token: id} as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tupelo {

// Tokens in order of their ids. Throws CorpusError "WHERE: ..." unless `vocabulary` is an object
// whose values are 0 to its size - 1, each once.
std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary, const std::string& where);

}  // namespace tupelo

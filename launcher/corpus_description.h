// What a corpus holds, for `tupelo inspect` and `tupelo corpus info`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tupelo {

// Opens both splits; with `verify` re-hashes every shard. Throws CorpusError, std::system_error.
nlohmann::ordered_json describe_corpus(const std::string& folder, bool verify);

// The same as lines for people, on standard output.
void print_corpus(const nlohmann::ordered_json& description);

}  // namespace tupelo

// JSON that somebody else made, parsed with suspicion.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace tupelo {

// Throws CorpusError "WHAT FILE: ..." for what is not JSON, is nested deeper than 16, or holds a
// key twice; otherwise as read_bounded_file.
nlohmann::json read_json_file(const std::filesystem::path& file, std::size_t max_bytes,
                              const std::string& what);

}  // namespace tupelo

// Waiting for what another host wrote.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

namespace tupelo {

// Asks `is_there` again and again, for a minute. Then throws CorpusError that names `missing`.
void be_patient(const std::function<bool()>& is_there,
                const std::function<std::filesystem::path()>& missing,
                std::chrono::milliseconds at_most = std::chrono::minutes(1));

}  // namespace tupelo

// What `tupelo corpus` does: one function for each action, which prints what it did.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/console.h"

namespace tupelo::corpus_actions {

// `words` are what follows the action on the command line, at least one, and exactly one where a
// single corpus is meant. All throw std::invalid_argument that names an option, or what the
// function in data/ throws that they call.
using Words = std::vector<std::string>;

void info(const Words& words, const CommandLine& line);
void verify(const Words& words, const CommandLine& line);
void head(const Words& words, const CommandLine& line);
void merge(const Words& words, const CommandLine& line);
void split(const Words& words, const CommandLine& line);
void export_text(const Words& words, const CommandLine& line);
void archive(const Words& words, const CommandLine& line);
void restore(const Words& words, const CommandLine& line);
void import_from_megatron(const Words& words, const CommandLine& line);
void import_from_nvidia(const Words& words, const CommandLine& line);
void export_to_nvidia(const Words& words, const CommandLine& line);

// ---- what they share ----

using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Shows how many of these things ("rows") are done, as long as `console` is there.
Progress showing_progress(Console& console, const std::string& things);
std::uint64_t count_option(const CommandLine& line, const std::string& name,
                           std::uint64_t fallback);
std::string count(std::uint64_t number);
// One line, or with --json an object, about a corpus that was made.
void tell_corpus(const std::filesystem::path& folder, const CommandLine& line);

}  // namespace tupelo::corpus_actions

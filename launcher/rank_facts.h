// What must be the same on every rank of a run, and the refusal when it is not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/run_config.h"

namespace tupelo {

class Communicator;

struct Fact {
  std::string name, value;
  std::string advice;  // what to do where values differ
};
using Facts = std::vector<Fact>;

// Every rank's text, by rank, on every rank. Collective.
std::vector<std::string> gather(Communicator& communicator, const std::string& text);

// The program itself by its SHA-256; the libraries whose results or protocols enter a run, by
// version and build; the instructions that LibTorch chose for this processor.
Facts program_facts();
// Every setting, by name.
Facts setting_facts(const RunConfig& config);

// One sentence that names the first fact which differs, and both sides of it; nothing when all
// ranks agree. `hosts` by rank.
std::optional<std::string> first_difference(const std::vector<Facts>& by_rank,
                                            const std::vector<std::string>& hosts);
std::vector<Facts> gather_facts(Communicator& communicator, const Facts& facts);

// Throws AgreedError (ExitCode::kUsage) with that sentence, on all ranks alike. Collective.
void require_same(Communicator& communicator, const std::vector<std::string>& hosts,
                  const Facts& facts);

}  // namespace tupelo

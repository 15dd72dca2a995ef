#include "launcher/rank_facts.h"

#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "distributed/backends.h"
#include "distributed/runtime.h"
#include "launcher/exit_codes.h"
#include "launcher/loaded_code.h"

namespace tupelo {
namespace {

std::string named(const Fact& fact, std::size_t rank, const std::vector<std::string>& hosts) {
  std::string text = fact.value;
  text += " on rank " + std::to_string(rank);
  text += " (" + hosts[rank] + ")";
  return text;
}

Facts facts_of(const std::string& text) {
  Facts facts;
  for (const auto& each : nlohmann::json::parse(text)) facts.push_back({each[0], each[1], each[2]});
  return facts;
}

}  // namespace

std::vector<std::string> gather(Communicator& communicator, const std::string& text) {
  const auto world = static_cast<std::size_t>(communicator.world_size());
  auto sizes = torch::zeros({communicator.world_size()}, torch::kInt64);
  auto size = torch::full({1}, static_cast<std::int64_t>(text.size()), torch::kInt64);
  communicator.all_gather(sizes, size)->wait();
  const auto longest = std::max<std::int64_t>(1, sizes.max().item<std::int64_t>());
  auto mine = torch::zeros({longest}, torch::kUInt8);
  std::memcpy(mine.data_ptr(), text.data(), text.size());
  auto all = torch::zeros({longest * communicator.world_size()}, torch::kUInt8);
  communicator.all_gather(all, mine)->wait();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < world; ++rank) {
    const char* from =
        static_cast<const char*>(all.const_data_ptr()) + rank * static_cast<std::size_t>(longest);
    texts.emplace_back(from, static_cast<std::size_t>(sizes.const_data_ptr<std::int64_t>()[rank]));
  }
  return texts;
}

Facts program_facts() {
  const std::string install = "install the same one on every host";
  Facts facts = {
      {"the tupelo program (SHA-256)", program_digest(), "start the same program file everywhere"},
      {"LibTorch", TORCH_VERSION, install},
      {"the MPI library", Runtime::library_version(), install}};
  if (nccl_is_available()) facts.push_back({"NCCL", nccl_version(), install});
  for (const LoadedLibrary& library : loaded_libraries()) {
    facts.push_back({"the build of " + library.name, library.build, install});
  }
  facts.push_back({"the instruction set that LibTorch uses", at::get_cpu_capability(),
                   "set ATEN_CPU_CAPABILITY to what every host offers (default, avx2, avx512), "
                   "since replicas would drift apart"});
  return facts;
}

Facts setting_facts(const RunConfig& config) {
  Facts facts;
  for (const ConfigEntry& entry : config_entries()) {
    facts.push_back({"the setting " + entry.name, entry.get(config),
                     "give every rank the same options, configuration file and environment"});
  }
  return facts;
}

std::optional<std::string> first_difference(const std::vector<Facts>& by_rank,
                                            const std::vector<std::string>& hosts) {
  const Facts& first = by_rank.front();
  for (std::size_t at = 0; at < first.size(); ++at) {
    for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
      const Fact missing{first[at].name, "missing", ""};
      const Fact& other = at < by_rank[rank].size() ? by_rank[rank][at] : missing;
      if (other.name == first[at].name && other.value == first[at].value) continue;
      const Fact& theirs = other.name == first[at].name ? other : missing;
      return "ranks do not match: " + first[at].name + " is " + named(first[at], 0, hosts) +
             ", but " + named(theirs, rank, hosts) + "; " + first[at].advice;
    }
  }
  return std::nullopt;
}

std::vector<Facts> gather_facts(Communicator& communicator, const Facts& facts) {
  nlohmann::json object = nlohmann::json::array();
  for (const Fact& fact : facts) object.push_back({fact.name, fact.value, fact.advice});
  std::vector<Facts> by_rank;
  // A value can come from a damaged file: what is not UTF-8 is replaced.
  const auto lenient = nlohmann::json::error_handler_t::replace;
  for (const std::string& text : gather(communicator, object.dump(-1, ' ', false, lenient))) {
    by_rank.push_back(facts_of(text));
  }
  return by_rank;
}

void require_same(Communicator& communicator, const std::vector<std::string>& hosts,
                  const Facts& facts) {
  if (communicator.world_size() == 1) return;
  const auto difference = first_difference(gather_facts(communicator, facts), hosts);
  if (difference) throw AgreedError(ExitCode::kUsage, *difference);
}

}  // namespace tupelo

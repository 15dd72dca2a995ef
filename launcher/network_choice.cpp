#include "launcher/network_choice.h"

#include <arpa/inet.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "launcher/process_report.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

constexpr const char* kOption = "interface";
constexpr int kAddressBits = 32;

std::optional<std::uint32_t> number_of(const std::string& address) {
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

std::optional<std::string> given(const std::vector<std::string>& words) {
  const std::string flag = std::string("--") + kOption;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (words[at] == flag && at + 1 < words.size()) return words[at + 1];
    if (words[at].starts_with(flag + "=")) return words[at].substr(flag.size() + 1);
  }
  return std::nullopt;
}

// The name of this host's interface that `choice` means.
std::string interface_of(const std::string& choice) {
  const bool is_network = choice.find('/') != std::string::npos;
  std::string valid;
  for (const NetworkAddress& each : network_addresses()) {
    if (is_network ? lies_in(each.address, choice) : each.interface == choice) {
      return each.interface;
    }
    valid += (valid.empty() ? "" : ", ") + each.interface + " (" + each.address + ")";
  }
  throw std::invalid_argument(
      "--interface: this host has no " + choice +
      " that is up and has an IPv4 address; valid here: " + (valid.empty() ? "none" : valid) +
      ", or a network such as 10.1.0.0/16");
}

}  // namespace

VerbOption interface_option() {
  return {kOption, VerbOption::Takes::kOneValue, "NAME",
          "network interface (eth0), or network (10.1.0.0/16), that ranks talk over"};
}

bool lies_in(const std::string& address, const std::string& network) {
  const std::size_t slash = network.find('/');
  const auto base = number_of(network.substr(0, slash));
  if (slash == std::string::npos || !base) {
    throw std::invalid_argument("--interface: " + network +
                                " is no IPv4 network; valid: one such as 10.1.0.0/16");
  }
  const auto bits = reading_option(
      kOption, [&] { return parse_integer(network.substr(slash + 1), 0, kAddressBits); });
  const std::uint32_t mask =
      bits == 0 ? 0 : ~std::uint32_t{0} << static_cast<unsigned>(kAddressBits - bits);
  const auto number = number_of(address);
  return number && (*number & mask) == (*base & mask);
}

void choose_network(const std::vector<std::string>& words) {
  const auto choice = given(words);
  if (!choice) return;
  const std::string name = interface_of(*choice);
  // Open MPI refuses to be told both what to use and what not to. "=": exactly this name.
  unsetenv("OMPI_MCA_btl_tcp_if_exclude");
  setenv("OMPI_MCA_btl_tcp_if_include", name.c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", ("=" + name).c_str(), 1);
}

}  // namespace tupelo

// --interface: the network that ranks talk over.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_line.h"

namespace tupelo {

VerbOption interface_option();

// Reads --interface from the words of a command line, before MPI starts, and tells Open MPI's TCP
// transport and NCCL by their environment variables: "eth0", or a network such as "10.1.0.0/16",
// for clusters on which names of interfaces differ. Does nothing without the option. Throws
// std::invalid_argument when this host has no such interface, naming those it has.
void choose_network(const std::vector<std::string>& words);

// Whether `address` ("10.1.2.3") lies in `network` ("10.1.0.0/16"). Throws std::invalid_argument
// for what is no network.
bool lies_in(const std::string& address, const std::string& network);

}  // namespace tupelo

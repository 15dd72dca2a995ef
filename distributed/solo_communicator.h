// A world of one: nothing to wait for, on any device. Internal to distributed/.
#pragma once

#include <memory>
#include <string>

#include "distributed/communicator.h"

namespace tupelo {

std::unique_ptr<Communicator> make_solo_communicator(std::string backend);

}  // namespace tupelo

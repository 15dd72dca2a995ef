// Recording work of a CUDA device as graphs.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "model/recorded_work.h"

namespace tupelo {

// Throws std::invalid_argument, which begins with where the setting that asks for graphs stands,
// unless `device` is CUDA's.
void require_graphs(const std::string& place_of_setting, c10::Device device);

// Records on a stream of its own, into memory that all recordings share which exist together.
// Random numbers of a replay follow the device's default generator, so they are those of the work
// itself. Other threads may use the device meanwhile. Throws std::invalid_argument for a device
// that is not CUDA's, which in a build without CUDA is every one; a recording throws c10::Error for
// work that cannot be recorded, such as what waits for the device.
WorkRecorder cuda_graph_recorder(c10::Device device);

}  // namespace tupelo

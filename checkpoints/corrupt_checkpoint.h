// The error of damaged data.
#pragma once

#include <stdexcept>

namespace tupelo {

// A file or folder that is not what it claims to be: names the file and what is wrong with it.
class CorruptCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tupelo

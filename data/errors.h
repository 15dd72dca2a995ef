// What can be wrong with text and corpora on disk.
#pragma once

#include <stdexcept>

namespace tupelo {

// A corpus, shard or vocabulary that is damaged, incomplete or does not fit: names the file (and
// dataset or line) and what is valid. Settings that a user got wrong are std::invalid_argument; a
// file system that refuses is std::system_error.
class CorpusError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tupelo

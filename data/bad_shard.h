// Which shard is to blame for an error.
#pragma once

#include <string>
#include <utility>

namespace tupelo {

// A shard of a corpus, by names that all processes have for it.
struct ShardName {
  std::string corpus_digest, file;  // the file is relative to the corpus

  auto operator<=>(const ShardName&) const = default;
};

// Mixed into an error: it came of opening or reading a shard, and the same shard is likely to fail
// again. To be caught by itself, or found in an error by dynamic_cast.
class BadShard {
 public:
  explicit BadShard(ShardName shard) : shard_(std::move(shard)) {}
  BadShard(const BadShard&) = default;
  BadShard& operator=(const BadShard&) = default;
  virtual ~BadShard() = default;

  const ShardName& shard() const { return shard_; }

 private:
  ShardName shard_;
};

// `Error`, with the shard that is to blame.
template <typename Error>
class ErrorOfShard : public Error, public BadShard {
 public:
  ErrorOfShard(const Error& error, ShardName shard) : Error(error), BadShard(std::move(shard)) {}
};

}  // namespace tupelo

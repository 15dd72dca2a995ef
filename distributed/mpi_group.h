// Collectives of a few ranks, made of messages, on plain memory. Internal to distributed/.
#pragma once

#include <cstddef>
#include <vector>

#include "distributed/mpi_exchange.h"
#include "distributed/reduction.h"

namespace tupelo {

// The ranks `members`, in that order; the index of a rank among them is its place. Every member
// calls the same. Meant for a chunk of a large tensor at a time: what arrives is kept in a buffer
// as large as the chunk (times the members, for small ones).
class MpiGroup {
 public:
  struct Part {  // in elements
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  struct Bytes {
    const std::byte* data = nullptr;
    std::size_t size = 0;
  };

  // `exchange` must outlive it. `members` holds the own rank.
  MpiGroup(MpiExchange& exchange, std::vector<int> members,
           Patience::Wait wait = Patience::Wait::kForTheCulprit);

  int size() const { return static_cast<int>(members_.size()); }
  int place() const { return place_; }

  // The part of `whole` that belongs to place `index` of `count`.
  static Part slice_of(Part whole, int index, int count);

  // Reduces `count` elements over the members, in their order. Each reduces one slice and hands the
  // result to the others, which moves 2 (size - 1) / size times the data and gives all the same
  // bits; a few elements are sent to everybody and reduced everywhere, one message time. `output`
  // may be `input` where their types are the same.
  void all_reduce(const std::byte* input, std::byte* output, std::size_t count,
                  Reduction reduction);

  // Receives `count` elements from every other member, sending each what `mine_for(place)`, a
  // Bytes, names, and reduces them in order of places together with what that names for the own
  // one.
  template <typename MineFor>
  void reduce_scatter(MineFor mine_for, std::byte* output, std::size_t count, Reduction reduction);

  // From the member at `root` to all.
  void broadcast(std::byte* data, std::size_t bytes, int root);
  // Messages between members, by place.
  struct Message {
    int place = 0;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  void exchange(const std::vector<Message>& sends, const std::vector<Message>& receives);
  void barrier();

 private:
  MpiMessage to(int place, const std::byte* data, std::size_t bytes) const;
  void swap_slices(std::byte* data, std::size_t count, std::size_t width);

  MpiExchange& exchange_;
  std::vector<int> members_;
  int place_ = 0;
  Patience::Wait wait_;
  std::vector<std::byte> scratch_;
};

template <typename MineFor>
void MpiGroup::reduce_scatter(MineFor mine_for, std::byte* output, std::size_t count,
                              Reduction reduction) {
  const std::size_t bytes = count * width_of(reduction.input);
  if (scratch_.size() < bytes * members_.size()) scratch_.resize(bytes * members_.size());
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  std::vector<const void*> inputs;
  for (int place = 0; place < size(); ++place) {
    const std::byte* arriving = scratch_.data() + static_cast<std::size_t>(place) * bytes;
    const Bytes mine = mine_for(place);
    inputs.push_back(place == place_ ? mine.data : arriving);
    if (place == place_) continue;
    if (bytes > 0) receives.push_back(to(place, arriving, bytes));
    if (mine.size > 0) sends.push_back(to(place, mine.data, mine.size));
  }
  exchange_.exchange(sends, receives, wait_);
  reduce_in_order(inputs, output, count, reduction);
}

}  // namespace tupelo

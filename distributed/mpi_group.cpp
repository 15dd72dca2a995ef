#include "distributed/mpi_group.h"

#include <algorithm>
#include <utility>

namespace tupelo {
namespace {

// Up to here a second round trip costs more than sending everything to everybody.
constexpr std::size_t kSmallBytes = 8u << 10;

}  // namespace

MpiGroup::MpiGroup(MpiExchange& exchange, std::vector<int> members, Patience::Wait wait)
    : exchange_(exchange), members_(std::move(members)), wait_(wait) {
  const auto own = std::find(members_.begin(), members_.end(), exchange.rank());
  place_ = static_cast<int>(own - members_.begin());
}

MpiGroup::Part MpiGroup::slice_of(Part whole, int index, int count) {
  const auto at = [&](int i) {
    return whole.size * static_cast<std::size_t>(i) / static_cast<std::size_t>(count);
  };
  return {whole.begin + at(index), at(index + 1) - at(index)};
}

// Messages that are sent are only read.
MpiMessage MpiGroup::to(int place, const std::byte* data, std::size_t bytes) const {
  return {members_[static_cast<std::size_t>(place)], const_cast<std::byte*>(data), bytes};
}

void MpiGroup::all_reduce(const std::byte* input, std::byte* output, std::size_t count,
                          Reduction reduction) {
  const std::size_t width = width_of(reduction.input);
  if (count * width <= kSmallBytes) {
    const auto everything = [&](int) { return Bytes{input, count * width}; };
    return reduce_scatter(everything, output, count, reduction);
  }
  const auto slice_for = [&](int place) {
    const Part slice = slice_of({0, count}, place, size());
    return Bytes{input + slice.begin * width, slice.size * width};
  };
  const Part own = slice_of({0, count}, place_, size());
  const std::size_t output_width = width_of(reduction.output);
  reduce_scatter(slice_for, output + own.begin * output_width, own.size, reduction);
  swap_slices(output, count, output_width);
}

void MpiGroup::swap_slices(std::byte* data, std::size_t count, std::size_t width) {
  const auto message = [&](int place, int index) {
    const Part slice = slice_of({0, count}, index, size());
    return to(place, data + slice.begin * width, slice.size * width);
  };
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  for (int place = 0; place < size(); ++place) {
    if (place == place_) continue;
    sends.push_back(message(place, place_));
    receives.push_back(message(place, place));
  }
  exchange_.exchange(sends, receives, wait_);
}

// The root hands each of the others one slice, and they hand it on, so that the root sends the data
// once and not once for each member. A few bytes go to everybody directly.
void MpiGroup::broadcast(std::byte* data, std::size_t bytes, int root) {
  const int others = size() - 1;
  const auto place_at = [&](int index) { return index < root ? index : index + 1; };
  const bool direct = bytes <= kSmallBytes || others == 1;
  const auto message = [&](int place, int index) {
    const Part slice = direct ? Part{0, bytes} : slice_of({0, bytes}, index, others);
    return to(place, data + slice.begin, slice.size);
  };
  if (place_ == root) {
    std::vector<MpiMessage> sends;
    for (int i = 0; i < others; ++i) sends.push_back(message(place_at(i), i));
    return exchange_.exchange(sends, {}, wait_);
  }
  const int own = place_ < root ? place_ : place_ - 1;
  exchange_.exchange({}, {message(root, own)}, wait_);
  if (direct) return;
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  for (int i = 0; i < others; ++i) {
    if (i == own) continue;
    sends.push_back(message(place_at(i), own));
    receives.push_back(message(place_at(i), i));
  }
  exchange_.exchange(sends, receives, wait_);
}

void MpiGroup::exchange(const std::vector<Message>& sends, const std::vector<Message>& receives) {
  const auto translated = [&](const std::vector<Message>& messages) {
    std::vector<MpiMessage> result;
    for (const auto& each : messages) result.push_back(to(each.place, each.data, each.bytes));
    return result;
  };
  exchange_.exchange(translated(sends), translated(receives), wait_);
}

void MpiGroup::barrier() {
  std::vector<MpiMessage> messages;
  for (int place = 0; place < size(); ++place) {
    if (place != place_) messages.push_back(to(place, nullptr, 0));
  }
  exchange_.exchange(messages, messages, wait_);
}

}  // namespace tupelo

// What the optimizer of a rank updates: whole parameters, their float32 copies, or slices of them.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/gradient_reducer.h"

namespace tupelo {

// The part of a parameter that this rank updates.
struct ParameterSlice {
  std::int64_t first = 0;  // of the flattened parameter
  // The parameter itself; or its float32 copy, of the same shape; or elements [first, first +
  // size(0)) of it as [n], where n may be 0. `.grad` is the sum over ranks, once the reducer has
  // finished.
  torch::Tensor master;
};

// Stands between a GradientReducer and an optimizer. Nothing happens here for float32 parameters
// that every rank updates. Otherwise parameters move into flat buffers that are laid out as the
// reducer's buckets, and
//   - 16-bit parameters have float32 masters, which the optimizer updates (Micikevicius et al.,
//     "Mixed Precision Training", 2018);
//   - with a scattering reducer a rank has masters of its slice of each bucket only (ZeRO-1), and
//     publish() gathers what the ranks have updated.
// All ranks construct and call the same, in the same order; one thread each.
class ParameterShards {
 public:
  // `parameters` are those of the reducer, in its order; `values` [shapes of the parameters] are
  // what masters begin with (parameters in full precision), and may be the parameters themselves.
  // `reducer` must outlive the object, and so must its communicator.
  ParameterShards(const GradientReducer& reducer, Communicator& communicator,
                  const std::vector<torch::Tensor>& values);
  ~ParameterShards();
  ParameterShards(const ParameterShards&) = delete;

  // One for each parameter.
  const std::vector<ParameterSlice>& slices() const;

  // Sends the masters' values to the parameters of all ranks, those that were made first ahead.
  // They may be read, and masters changed again, after wait() only.
  void publish();
  void wait();
  // The same for one parameter; on the host at least those of its bucket are there.
  void wait_for(std::size_t parameter);

  // `part` has the size of a parameter's slice, such as an optimizer's moments of it: the whole
  // tensor, shaped like the parameter, on every rank. Collective.
  torch::Tensor whole(std::size_t parameter, const torch::Tensor& part) const;
  // The part of such a whole that belongs to this rank, shaped like the slice's master.
  torch::Tensor part(std::size_t parameter, const torch::Tensor& whole) const;

  // Bytes of float32 masters that this rank holds beside the parameters.
  std::size_t master_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo

// Trading time for memory: a segment whose activations are not kept but computed again in backward.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace tupelo {

// A pure function of its inputs, of the parameters named beside it, of tensors that need no
// gradient, and of the default random generator of its device.
using Segment = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)>;

// segment(inputs), keeping only inputs and parameters for backward, which runs the segment once
// more under the generator state of the first time, so that dropout and gradients are bitwise those
// of a plain call.
//   inputs      everything differentiable that enters from outside (hidden states, shared position
//   terms);
//               all defined
//   parameters  the leaves that the segment reads by itself; their gradients arrive as from any
//   other node,
//               so hooks on them fire once per backward pass even when several segments share them
// Without gradient mode it is a plain call. The segment must own what it captures: it lives as long
// as the graph does. Backward runs on the thread that LibTorch gives it and leaves the generator as
// it was.
torch::Tensor recompute(const Segment& segment, const std::vector<torch::Tensor>& inputs,
                        const std::vector<torch::Tensor>& parameters);

}  // namespace tupelo

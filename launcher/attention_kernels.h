// Which of LibTorch's attention kernels may run.
#pragma once

#include <ATen/Context.h>

namespace tupelo {

// For a process that computes on rows of many lengths: cuDNN's attention makes a plan for every
// shape that it meets, which takes it long (https://github.com/modelscope/FunASR/issues/3704);
// others take any shape.
inline void take_any_shape() { at::globalContext().setSDPUseCuDNN(false); }

}  // namespace tupelo

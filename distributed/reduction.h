// The arithmetic of a reduction, shared by the backends that do it themselves.
// Internal to distributed/.
#pragma once

#include <cstddef>
#include <vector>

#include "distributed/element_type.h"
#include "distributed/reduce_op.h"

namespace tupelo {

// What comes in, what goes out, and how it is reduced. The types are the same, or one is a 16-bit
// float and the other its partial_of(): sums that are not complete yet are neither rounded when
// they are kept nor when they are taken up.
struct Reduction {
  ElementType input = ElementType::kFloat32;
  ElementType output = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
};

// output[i] = inputs[0][i] op inputs[1][i] op ..., evaluated from left to right; 16-bit floats in
// float32, rounded once at the end; integers modulo 2^bits. `output` may be one of the inputs where
// the types are the same. `inputs` are given in rank order, so that every backend and every rank
// computes the same bits.
void reduce_in_order(const std::vector<const void*>& inputs, void* output, std::size_t count,
                     Reduction reduction);

}  // namespace tupelo

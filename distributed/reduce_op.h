// The operations of a reduction.
#pragma once

namespace tupelo {

// Integers wrap. kMax and kMin may lose a NaN: agree on finiteness with all_agree() instead.
enum class ReduceOp { kSum, kMax, kMin };

}  // namespace tupelo

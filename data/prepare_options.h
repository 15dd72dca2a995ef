// What may be asked of prepare_corpus.
#pragma once

#include "data/prepare.h"

namespace tupelo {

// Throws std::invalid_argument that says what is valid. Looks at no file, except to see that the
// output does not lie inside an input.
void check_prepare_options(const PrepareOptions& options);

}  // namespace tupelo

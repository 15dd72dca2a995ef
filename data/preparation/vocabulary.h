// The tokenizer of a corpus in the making.
#pragma once

#include <memory>

#include "data/preparation/duplicates.h"
#include "data/preparation/job.h"

namespace tupelo {

// Collective. Stores the tokenizer that was given, or learns one ("vocabulary"), unless it is there
// already; then loads it. `duplicates` is nullptr when none were looked for.
std::unique_ptr<Tokenizer> make_tokenizer(PreparationJob& job, const DuplicateTable* duplicates);

}  // namespace tupelo

// Documents to tokens, by many processes.
#pragma once

#include "data/preparation/duplicates.h"
#include "data/preparation/job.h"
#include "data/preparation/part_folder.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// Of each token in intermediate files and shards.
std::size_t token_bytes_of(const Tokenizer& tokenizer);

// Collective ("tokenize"): the TokenParts of all documents that are not there yet. `duplicates` is
// nullptr when none were looked for. Returns their folder, complete.
PartFolder tokenize_documents(PreparationJob& job, const Tokenizer& tokenizer,
                              const DuplicateTable* duplicates);

}  // namespace tupelo

// Tokenized documents to shards, by many processes.
#pragma once

#include "data/corpus_index.h"
#include "data/preparation/job.h"
#include "data/preparation/part_folder.h"

namespace tupelo {

// Collective ("shards"): writes the shards that are not there yet, cut as CorpusWriter cuts them.
// The index holds info, shards, fraction and shard_tokens, on the first process alone. Throws
// CorpusError when there is no document at all, or none to train on.
CorpusIndex assemble_shards(PreparationJob& job, const PartFolder& tokens, const CorpusInfo& info);

}  // namespace tupelo

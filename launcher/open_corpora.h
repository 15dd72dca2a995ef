// The corpora that a run trains on, open on every rank.
#pragma once

#include <string>
#include <vector>

#include "data/corpus.h"
#include "distributed/communicator.h"

namespace tupelo {

// Both halves of each corpus of the mixture.
struct OpenCorpora {
  std::vector<std::string> folders;
  std::vector<ShardedCorpus> train, held_out;

  std::vector<const ShardedCorpus*> pointers(const std::vector<ShardedCorpus>& halves) const {
    std::vector<const ShardedCorpus*> result;
    for (const ShardedCorpus& half : halves) result.push_back(&half);
    return result;
  }
};

// Opens those of corpora.folders: training shards each when it is first read, the others now.
// Collective; all ranks throw alike: CorpusError for one that is damaged or has another vocabulary,
// std::invalid_argument for one that is named twice.
void open_corpora(Communicator& communicator, OpenCorpora& corpora);

}  // namespace tupelo

#include "launcher/open_corpora.h"

#include <stdexcept>

#include "data/errors.h"
#include "launcher/agreement.h"

namespace tupelo {
namespace {

void require_one_tokenizer(const OpenCorpora& corpora) {
  const std::string& first = corpora.train.front().info().tokenizer_fingerprint;
  for (std::size_t i = 1; i < corpora.train.size(); ++i) {
    const std::string& other = corpora.train[i].info().tokenizer_fingerprint;
    if (other == first) continue;
    throw CorpusError("corpora " + corpora.folders.front() + " and " + corpora.folders[i] +
                      " were made with different vocabularies (" + first.substr(0, 12) + "..., " +
                      other.substr(0, 12) + "...)");
  }
}

void require_different(const OpenCorpora& corpora) {
  for (std::size_t i = 0; i < corpora.train.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (corpora.train[i].info().digest != corpora.train[k].info().digest) continue;
      throw std::invalid_argument("--corpus: " + corpora.folders[k] + " and " + corpora.folders[i] +
                                  " are the same corpus; data.mixture sets how often its rows are "
                                  "used beside those of others");
    }
  }
}

}  // namespace

void open_corpora(Communicator& communicator, OpenCorpora& corpora) {
  together(communicator, [&] {
    for (const std::string& folder : corpora.folders) {
      corpora.train.emplace_back(folder, Split::kTrain, Open::kWhenRead);
      corpora.held_out.emplace_back(folder, Split::kHeldOut);
      ShardedCorpus::load_tokenizer(
          folder);  // throws when the vocabulary does not match the shards
    }
    require_one_tokenizer(corpora);
    require_different(corpora);
  });
}

}  // namespace tupelo

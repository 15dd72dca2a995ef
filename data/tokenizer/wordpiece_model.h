// A WordPiece tokenizer from tokens that were read already.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

// `tokens` by id: distinct, none empty or with white space. Throws CorpusError "WHERE: ..." when a
// special token is not among them.
std::unique_ptr<Tokenizer> make_wordpiece(std::vector<std::string> tokens, WordPieceOptions options,
                                          const std::string& where);

}  // namespace tupelo

#include "data/tokenizer/json_vocabulary.h"

#include "data/errors.h"

namespace tupelo {

std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    throw CorpusError(where + ": the vocabulary is not an object of tokens and their ids");
  }
  std::vector<std::string> tokens(vocabulary.size());
  std::vector<bool> taken(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size();
    if (!fits || taken[id.get<std::size_t>()]) {
      throw CorpusError(where + ": the token '" + token + "' has the id " +
                        id.dump().substr(0, 40) + ", but ids must be 0 to " +
                        std::to_string(tokens.size() - 1) + ", each once");
    }
    tokens[id.get<std::size_t>()] = token;
    taken[id.get<std::size_t>()] = true;
  }
  return tokens;
}

}  // namespace tupelo

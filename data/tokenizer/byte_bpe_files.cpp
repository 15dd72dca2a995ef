// vocab.json and merges.txt.
#include "data/errors.h"
#include "data/tokenizer/bounded_file.h"
#include "data/tokenizer/byte_bpe_model.h"
#include "data/tokenizer/json_file.h"
#include "data/tokenizer/json_vocabulary.h"

namespace tupelo {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{32} << 20;

std::vector<ByteBpeModel::Merge> read_merges(const std::filesystem::path& file) {
  const std::string bytes = read_bounded_file(file, kMaxFileBytes, "merges");
  std::vector<ByteBpeModel::Merge> merges;
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view text(bytes.data() + begin, end - begin);
    begin = end + 1;
    ++line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.starts_with("#version")) continue;
    const std::size_t space = text.find(' ');
    if (space == text.npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != text.npos) {
      throw CorpusError(std::string("merges ") + file.string() + ": line " + std::to_string(line) +
                        " is not two tokens with a space between them");
    }
    merges.push_back({std::string(text.substr(0, space)), std::string(text.substr(space + 1))});
  }
  return merges;
}

}  // namespace

std::unique_ptr<Tokenizer> load_byte_bpe(const std::filesystem::path& vocab_file,
                                         const std::filesystem::path& merges_file,
                                         ByteBpeOptions options) {
  ByteBpeModel model;
  model.options = options;
  model.tokens = tokens_by_id(read_json_file(vocab_file, kMaxFileBytes, "vocabulary"),
                              "vocabulary " + vocab_file.string());
  model.merges = read_merges(merges_file);
  return make_byte_bpe(std::move(model), "vocabulary " + vocab_file.string() + " with merges " +
                                             merges_file.string());
}

}  // namespace tupelo

#include "data/import/imported_corpus.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/segmenter_info.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/load_tokenizer.h"

namespace tupelo {
namespace {

constexpr std::uint64_t kMostShardTokens = std::uint64_t{256} << 20;

const ImportOptions& checked(const ImportOptions& options) {
  if (!(options.held_out >= 0 && options.held_out < 1)) {
    throw std::invalid_argument("the held-out share is not at least 0 and below 1");
  }
  if (options.shard_tokens < 1 || options.shard_tokens > kMostShardTokens) {
    throw std::invalid_argument("shard tokens " + std::to_string(options.shard_tokens) +
                                " is not between 1 and " + std::to_string(kMostShardTokens));
  }
  if (!options.segmenter_dictionary && !options.user_dictionaries.empty()) {
    throw std::invalid_argument("user dictionaries only add to a dictionary, but none was given");
  }
  return options;
}

// By how each token is written, since the text is not there any more.
std::vector<bool> tokens_that_begin_words(const Tokenizer& tokenizer) {
  std::vector<bool> begins(tokenizer.vocab_size());
  const bool wordpiece = tokenizer.kind() == kWordPieceKind;
  for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string& token = tokenizer.token(id);
    begins[id] = wordpiece ? !token.starts_with("##")
                           : token.starts_with("\u0120") || token.starts_with("\u2581");
  }
  return begins;
}

std::vector<bool> tokens_to_leave_out(const Tokenizer& tokenizer) {
  std::vector<bool> left_out(tokenizer.vocab_size());
  for (const std::uint32_t id : tokenizer.reserved_ids()) left_out[id] = true;
  left_out[tokenizer.special_tokens().unk] = false;
  return left_out;
}

}  // namespace

ImportedCorpus::ImportedCorpus(const ImportOptions& options)
    : options_(checked(options)),
      tokenizer_(load_tokenizer(options.tokenizer,
                                {.wordpiece = {.lowercase = options.lowercase}, .byte_bpe = {}})),
      rules_(options.segmenter_dictionary, options.user_dictionaries, /*presegmented=*/false),
      begins_word_(tokens_that_begin_words(*tokenizer_)),
      left_out_(tokens_to_leave_out(*tokenizer_)),
      corpus_(options.output, options.force),
      writer_(corpus_.folder(), info(), options.held_out, options.shard_tokens) {}

CorpusInfo ImportedCorpus::info() const {
  CorpusInfo info;
  info.language = options_.language;
  info.tokenizer_kind = tokenizer_->kind();
  info.tokenizer_fingerprint = tokenizer_->fingerprint();
  info.vocab_size = tokenizer_->vocab_size();
  info.special = tokenizer_->special_tokens();
  info.reserved_ids = tokenizer_->reserved_ids();
  info.segmenter = segmenter_info(rules_);
  return info;
}

void ImportedCorpus::add_sequence(std::span<const std::uint32_t> ids) {
  bool first = true;
  for (const std::uint32_t id : ids) {
    if (left_out_[id]) continue;
    ids_.push_back(id);
    starts_.push_back(first || begins_word_[id] ? 1 : 0);
    first = false;
  }
}

bool ImportedCorpus::end_document() {
  if (ids_.empty()) {
    ++empty_documents_;
    return false;
  }
  const std::uint32_t unknown = tokenizer_->special_tokens().unk;
  unknown_tokens_ += static_cast<std::uint64_t>(std::count(ids_.begin(), ids_.end(), unknown));
  if (rules_.segmenter() != nullptr) find_words();
  writer_.add(ids_, starts_, sources_.size(), document_hash(tokenizer_->decode(ids_), digest_));
  ++documents_;
  ids_.clear();
  starts_.clear();
  return true;
}

void ImportedCorpus::find_words() {
  const std::uint32_t unknown = tokenizer_->special_tokens().unk;
  for (std::size_t begin = 0; begin < ids_.size();) {
    const auto next =
        std::find(ids_.begin() + static_cast<std::ptrdiff_t>(begin), ids_.end(), unknown);
    const auto end = static_cast<std::size_t>(next - ids_.begin());
    if (end > begin) find_words(begin, end);
    begin = end + 1;
  }
}

// Of a run without [UNK].
void ImportedCorpus::find_words(std::size_t begin, std::size_t end) {
  const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(begin);
  const std::vector<std::uint32_t> run(first, first + static_cast<std::ptrdiff_t>(end - begin));
  std::vector<std::uint32_t> again;
  std::vector<std::uint8_t> starts, sentences;
  TextRules::encode(*tokenizer_, rules_.divide(tokenizer_->decode(run)), again, starts, sentences);
  if (again != run) return;
  std::copy(starts.begin(), starts.end(), starts_.begin() + static_cast<std::ptrdiff_t>(begin));
}

void ImportedCorpus::end_source(CorpusIndex::Source source) {
  input_bytes_ += source.bytes;
  sources_.push_back(std::move(source));
}

CorpusIndex ImportedCorpus::publish() {
  CorpusIndex index = writer_.finish();
  if (index.train.empty()) {
    throw CorpusError("nothing to train on: " + std::to_string(documents_) +
                      " documents with tokens in " +
                      (sources_.empty() ? "no file" : sources_.front().file) +
                      (documents_ > 0 ? ", all of them held out" : ""));
  }
  index.sources = sources_;
  index.input_bytes = input_bytes_;
  index.empty_documents = empty_documents_;
  index.unknown_tokens = unknown_tokens_;
  store_tokenizer(corpus_.folder() / kTokenizerFolder, *tokenizer_);
  publish_corpus(corpus_, index);
  return index;
}

}  // namespace tupelo

#include "data/import/megatron.h"

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/corpus_writer.h"
#include "data/document_text.h"
#include "data/errors.h"
#include "data/mapped_file.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/load_tokenizer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::uint64_t kHeaderBytes = sizeof(kMagic) + 8 + 1 + 8 + 8;
// Types of ids: Megatron's code, bytes.
const std::map<int, std::uint64_t> kIdBytes = {{3, 2}, {4, 4}, {5, 8}, {8, 2}};

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

fs::path with_extension(const fs::path& prefix, const std::string& extension) {
  const std::string given = prefix.extension().string();
  const fs::path stem =
      given == ".idx" || given == ".bin" ? fs::path(prefix).replace_extension("") : prefix;
  return stem.string() + extension;
}

// One pair of files, its sizes and places checked.
class IndexedDataset {
 public:
  explicit IndexedDataset(const fs::path& prefix)
      : index_path_(with_extension(prefix, ".idx")),
        data_path_(with_extension(prefix, ".bin")),
        index_(index_path_),
        data_(data_path_) {
    const auto bytes = index_.bytes();
    if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
      refuse("it does not begin as an index of Megatron (MMIDIDX)");
    }
    const auto version = number_at<std::uint64_t>(bytes, 9);
    if (version != 1) refuse("its version is " + std::to_string(version) + ", known is 1");
    code_ = number_at<std::uint8_t>(bytes, 17);
    if (!kIdBytes.contains(code_)) {
      refuse("its ids are of type " + std::to_string(code_) +
             "; known are 3 (int16), 4 (int32), 5 (int64) and 8 (uint16)");
    }
    sequences_ = number_at<std::uint64_t>(bytes, 18);
    boundaries_ = number_at<std::uint64_t>(bytes, 26);
    check_index_size();
    check_sequences();
    check_boundaries();
  }

  const fs::path& index_path() const { return index_path_; }
  std::uint64_t bytes() const { return index_.bytes().size() + data_.bytes().size(); }
  std::uint64_t documents() const { return boundaries_ - 1; }
  // Of document `d` <= documents(): its first sequence.
  std::uint64_t first_sequence(std::uint64_t d) const { return int64(boundaries_at() + 8 * d); }

  // Appends the ids of a sequence, all below `vocab_size`.
  void read(std::uint64_t sequence, std::uint32_t vocab_size,
            std::vector<std::uint32_t>& ids) const {
    const std::uint64_t begin = place(sequence), count = length(sequence);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int64_t id = id_at(begin + i * kIdBytes.at(code_));
      if (id < 0 || id >= static_cast<std::int64_t>(vocab_size)) {
        throw CorpusError(data_path_.string() + ": sequence " + std::to_string(sequence) +
                          " has token id " + std::to_string(id) + ", but the vocabulary has " +
                          std::to_string(vocab_size) + " tokens");
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(index_path_.string() + ": " + what);
  }
  std::uint64_t places_at() const { return kHeaderBytes + 4 * sequences_; }
  std::uint64_t boundaries_at() const { return places_at() + 8 * sequences_; }
  std::uint64_t int64(std::uint64_t offset) const {
    return number_at<std::uint64_t>(index_.bytes(), offset);
  }
  std::uint64_t length(std::uint64_t sequence) const {
    return number_at<std::uint32_t>(index_.bytes(), kHeaderBytes + 4 * sequence);
  }
  std::uint64_t place(std::uint64_t sequence) const { return int64(places_at() + 8 * sequence); }

  std::int64_t id_at(std::uint64_t offset) const {
    const auto bytes = data_.bytes();
    switch (code_) {
      case 3:
        return number_at<std::int16_t>(bytes, offset);
      case 4:
        return number_at<std::int32_t>(bytes, offset);
      case 5:
        return number_at<std::int64_t>(bytes, offset);
      default:
        return number_at<std::uint16_t>(bytes, offset);
    }
  }

  void check_index_size() const {
    const std::uint64_t bytes = index_.bytes().size();
    const bool fits = sequences_ <= bytes / 12 && boundaries_ <= bytes / 8 &&
                      kHeaderBytes + 12 * sequences_ + 8 * boundaries_ <= bytes;
    if (!fits) {
      refuse("it has " + std::to_string(bytes) + " bytes, too few for its " +
             std::to_string(sequences_) + " sequences and " + std::to_string(boundaries_) +
             " document boundaries");
    }
  }

  void check_sequences() const {
    const std::uint64_t width = kIdBytes.at(code_), bytes = data_.bytes().size();
    for (std::uint64_t s = 0; s < sequences_; ++s) {
      const std::uint64_t begin = place(s), count = length(s);
      if (count > 0x7FFFFFFF || begin > bytes || count * width > bytes - begin) {
        refuse("sequence " + std::to_string(s) + " lies outside " + data_path_.string());
      }
    }
  }

  void check_boundaries() const {
    if (boundaries_ < 1 || first_sequence(0) != 0 || first_sequence(documents()) != sequences_) {
      refuse("its documents do not reach from the first sequence to the last");
    }
    for (std::uint64_t d = 0; d < documents(); ++d) {
      if (first_sequence(d) > first_sequence(d + 1)) {
        refuse("document " + std::to_string(d) + " ends before it begins");
      }
    }
  }

  fs::path index_path_, data_path_;
  MappedFile index_, data_;
  int code_ = 0;
  std::uint64_t sequences_ = 0, boundaries_ = 0;
};

// By how each token is written, since the text is not there any more.
class WordStarts {
 public:
  explicit WordStarts(const Tokenizer& tokenizer) : begins_(tokenizer.vocab_size()) {
    const bool wordpiece = tokenizer.kind() == kWordPieceKind;
    for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string& token = tokenizer.token(id);
      begins_[id] = wordpiece ? !token.starts_with("##")
                              : token.starts_with("\u0120") || token.starts_with("\u2581");
    }
  }
  std::uint8_t operator()(std::uint32_t id) const { return begins_[id] ? 1 : 0; }

 private:
  std::vector<bool> begins_;
};

class Import {
 public:
  explicit Import(const MegatronImport& options)
      : options_(options),
        tokenizer_(load_tokenizer(options.tokenizer,
                                  {.wordpiece = {.lowercase = options.lowercase}, .byte_bpe = {}})),
        begins_word_(*tokenizer_),
        reserved_(tokenizer_->vocab_size()),
        corpus_(options.output, options.force),
        writer_(corpus_.folder(), info(), options.held_out, options.shard_tokens) {
    for (const std::uint32_t id : tokenizer_->reserved_ids()) reserved_[id] = true;
    reserved_[tokenizer_->special_tokens().unk] = false;
  }

  CorpusIndex run() {
    for (const fs::path& prefix : options_.prefixes) add(IndexedDataset(prefix));
    CorpusIndex index = writer_.finish();
    if (index.train.empty()) {
      throw CorpusError("nothing to train on: " + std::to_string(documents_) +
                        " documents with tokens in " + options_.prefixes.front().string() +
                        (documents_ > 0 ? ", all of them held out" : ""));
    }
    index.sources = sources_;
    index.input_bytes = input_bytes_;
    index.empty_documents = empty_documents_;
    store_tokenizer(corpus_.folder() / kTokenizerFolder, *tokenizer_);
    publish_corpus(corpus_, index);
    return index;
  }

 private:
  CorpusInfo info() const {
    CorpusInfo info;
    info.language = options_.language;
    info.tokenizer_kind = tokenizer_->kind();
    info.tokenizer_fingerprint = tokenizer_->fingerprint();
    info.vocab_size = tokenizer_->vocab_size();
    info.special = tokenizer_->special_tokens();
    info.reserved_ids = tokenizer_->reserved_ids();
    return info;
  }

  void add(const IndexedDataset& dataset) {
    for (std::uint64_t d = 0; d < dataset.documents(); ++d) add_document(dataset, d);
    sources_.push_back({dataset.index_path().string(), dataset.bytes()});
    input_bytes_ += dataset.bytes();
  }

  void add_document(const IndexedDataset& dataset, std::uint64_t document) {
    ids_.clear();
    starts_.clear();
    for (std::uint64_t s = dataset.first_sequence(document);
         s < dataset.first_sequence(document + 1); ++s) {
      sequence_.clear();
      dataset.read(s, tokenizer_->vocab_size(), sequence_);
      bool first = true;
      for (const std::uint32_t id : sequence_) {
        if (reserved_[id]) continue;
        ids_.push_back(id);
        starts_.push_back(first ? 1 : begins_word_(id));
        first = false;
      }
    }
    if (ids_.empty()) {
      ++empty_documents_;
      return;
    }
    ++documents_;
    writer_.add(ids_, starts_, sources_.size(), document_hash(tokenizer_->decode(ids_), digest_));
  }

  const MegatronImport& options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  WordStarts begins_word_;
  std::vector<bool> reserved_;
  UnfinishedCorpus corpus_;
  CorpusWriter writer_;
  ContentDigest digest_;
  std::vector<CorpusIndex::Source> sources_;
  std::uint64_t documents_ = 0, empty_documents_ = 0, input_bytes_ = 0;
  std::vector<std::uint32_t> ids_, sequence_;
  std::vector<std::uint8_t> starts_;
};

}  // namespace

CorpusIndex import_megatron(const MegatronImport& options) {
  if (options.prefixes.empty())
    throw std::invalid_argument("no Megatron files are given to import");
  if (!(options.held_out >= 0 && options.held_out < 1)) {
    throw std::invalid_argument("the held-out share is not at least 0 and below 1");
  }
  return Import(options).run();
}

}  // namespace tupelo

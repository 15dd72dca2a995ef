#include "data/corpus_rewrite.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "data/corpus_files.h"
#include "data/corpus_writer.h"
#include "data/stored_tokenizer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

// A corpus with both of its splits open and verified.
class Input {
 public:
  explicit Input(const fs::path& folder)
      : folder_(folder),
        index_(read_corpus_index(folder)),
        train_(folder, Split::kTrain),
        held_out_(folder, Split::kHeldOut) {
    for (const ShardedCorpus* split : {&train_, &held_out_}) {
      for (std::size_t shard = 0; shard < split->shards().size(); ++shard) {
        split->verify_shard(shard);
      }
    }
  }

  const fs::path& folder() const { return folder_; }
  const CorpusIndex& index() const { return index_; }
  const ShardedCorpus& split(Split split) const {
    return split == Split::kTrain ? train_ : held_out_;
  }
  std::uint64_t tokens() const { return train_.tokens() + held_out_.tokens(); }

 private:
  fs::path folder_;
  CorpusIndex index_;
  ShardedCorpus train_, held_out_;
};

void require_alike(const Input& first, const Input& other) {
  const auto require = [&](bool alike, const std::string& what) {
    if (alike) return;
    throw std::invalid_argument("corpora " + first.folder().string() + " and " +
                                other.folder().string() + " have different " + what +
                                "; prepare them alike to put them together");
  };
  const CorpusIndex &a = first.index(), &b = other.index();
  require(a.info.tokenizer_fingerprint == b.info.tokenizer_fingerprint, "tokenizers");
  require(a.info.segmenter.kind == b.info.segmenter.kind &&
              a.info.segmenter.fingerprint == b.info.segmenter.fingerprint,
          "rules of where words begin");
  require(a.info.sentence_rules == b.info.sentence_rules, "rules of where sentences begin");
  require(a.held_out_fraction == b.held_out_fraction,
          "held-out fractions, so that a text could be trained on and held out");
}

// Which documents of a split go to a corpus.
struct Range {
  std::uint64_t first, end;
};

class Rewriter {
 public:
  Rewriter(const fs::path& output, const CorpusInfo& info, double held_out_fraction,
           const RewriteOptions& options, std::uint64_t total_tokens)
      : options_(options),
        total_tokens_(total_tokens),
        corpus_(output, options.force),
        writer_(corpus_.folder(), info, held_out_fraction, options.shard_tokens) {}

  void copy(const Input& input, Split split, Range documents) {
    const ShardedCorpus& from = input.split(split);
    for (std::uint64_t d = documents.first; d < documents.end; ++d) {
      const std::uint64_t length = from.length(d);
      ids_.resize(length);
      starts_.resize(length);
      from.read(d, 0, length, ids_.data());
      from.read_word_starts(d, 0, length, starts_.data());
      if (from.info().sentence_rules != 0) {
        sentences_.resize(length);
        from.read_sentence_starts(d, 0, length, sentences_.data());
      }
      writer_.add_to(split, ids_, starts_, first_source_ + from.source(d), from.hash(d),
                     sentences_);
      tell(length);
    }
  }

  // Sources of what is copied from now on come after those of `input`.
  void close(const Input& input) {
    const CorpusIndex& from = input.index();
    first_source_ += from.sources.size();
    sources_.insert(sources_.end(), from.sources.begin(), from.sources.end());
    counts_.input_bytes += from.input_bytes;
    counts_.invalid_bytes += from.invalid_bytes;
    counts_.empty_documents += from.empty_documents;
    counts_.unknown_tokens += from.unknown_tokens;
  }

  // Then all is written but not yet to be seen.
  void finish(const fs::path& tokenizer) {
    index_ = writer_.finish();
    index_.sources = sources_;
    index_.input_bytes = counts_.input_bytes;
    index_.invalid_bytes = counts_.invalid_bytes;
    index_.empty_documents = counts_.empty_documents;
    index_.unknown_tokens = counts_.unknown_tokens;
    copy_tokenizer(tokenizer);
  }
  CorpusIndex publish() {
    publish_corpus(corpus_, index_);
    return index_;
  }

 private:
  void tell(std::uint64_t tokens) {
    constexpr std::uint64_t kStride = 1u << 20;
    const std::uint64_t before = done_tokens_;
    done_tokens_ += tokens;
    if (options_.progress && before / kStride != done_tokens_ / kStride) {
      options_.progress(done_tokens_, total_tokens_);
    }
  }

  void copy_tokenizer(const fs::path& from) {
    const fs::path folder = corpus_.folder() / kTokenizerFolder;
    fs::create_directory(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      write_corpus_file(folder / entry.path().filename(),
                        read_corpus_text(entry.path(), kMaxTokenizerFileBytes));
    }
  }

  static constexpr std::size_t kMaxTokenizerFileBytes = std::size_t{256} << 20;

  const RewriteOptions& options_;
  std::uint64_t total_tokens_, done_tokens_ = 0, first_source_ = 0;
  UnfinishedCorpus corpus_;
  CorpusWriter writer_;
  std::vector<CorpusIndex::Source> sources_;
  CorpusIndex counts_, index_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint8_t> starts_, sentences_;
};

std::string five_digits(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// Documents of part `part`: those whose first token lies in its share of the tokens.
Range share_of(const ShardedCorpus& corpus, std::uint64_t part, std::uint64_t parts) {
  const std::vector<std::uint64_t>& offsets = corpus.document_offsets();
  const auto document_at = [&](std::uint64_t share) {
    const std::uint64_t token =
        corpus.tokens() / parts * share + corpus.tokens() % parts * share / parts;
    const auto found = std::lower_bound(offsets.begin(), offsets.end() - 1, token);
    return static_cast<std::uint64_t>(found - offsets.begin());
  };
  return {document_at(part), part + 1 == parts ? corpus.documents() : document_at(part + 1)};
}

// The same documents twice are a slip: weights say how often a corpus is used.
void require_different(const std::vector<Input>& corpora, const std::vector<fs::path>& folders) {
  for (std::size_t i = 0; i < corpora.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (corpora[i].index().info.digest != corpora[k].index().info.digest) continue;
      throw std::invalid_argument("corpora " + folders[k].string() + " and " + folders[i].string() +
                                  " are the same; merge different ones");
    }
  }
}

void check_no_output_inside(const fs::path& output, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    if (fs::weakly_canonical(output) == fs::weakly_canonical(input)) {
      throw std::invalid_argument("output " + output.string() + " is one of the inputs");
    }
  }
}

}  // namespace

CorpusIndex merge_corpora(const std::vector<fs::path>& inputs, const fs::path& output,
                          const RewriteOptions& options) {
  if (inputs.empty()) throw std::invalid_argument("no corpus is given to put together");
  check_no_output_inside(output, inputs);
  std::vector<Input> corpora;
  std::uint64_t tokens = 0;
  for (const fs::path& input : inputs) {
    corpora.emplace_back(input);
    require_alike(corpora.front(), corpora.back());
    tokens += corpora.back().tokens();
  }
  require_different(corpora, inputs);
  const CorpusIndex& first = corpora.front().index();
  CorpusInfo info = first.info;
  for (const Input& corpus : corpora) {
    if (corpus.index().info.language != info.language) info.language = "mul";  // ISO 639-2
  }
  Rewriter rewriter(output, info, first.held_out_fraction, options, tokens);
  for (const Input& corpus : corpora) {
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      rewriter.copy(corpus, split, {0, corpus.split(split).documents()});
    }
    rewriter.close(corpus);
  }
  rewriter.finish(inputs.front() / kTokenizerFolder);
  return rewriter.publish();
}

std::vector<fs::path> split_corpus(const fs::path& input, const fs::path& output,
                                   std::uint64_t parts, const RewriteOptions& options) {
  if (parts < 1) throw std::invalid_argument("a corpus cannot be split into 0 parts");
  const Input corpus(input);
  for (std::uint64_t part = 0; part < parts; ++part) {
    const Range documents = share_of(corpus.split(Split::kTrain), part, parts);
    if (documents.first < documents.end) continue;
    throw std::invalid_argument("corpus " + input.string() + " cannot be split into " +
                                std::to_string(parts) +
                                " parts: some would have no training "
                                "document");
  }
  std::vector<fs::path> folders;
  std::vector<std::unique_ptr<Rewriter>> rewriters;
  for (std::uint64_t part = 0; part < parts; ++part) {
    folders.push_back(output.string() + "-" + five_digits(part) + "-of-" + five_digits(parts));
    check_no_output_inside(folders.back(), {input});
    rewriters.push_back(std::make_unique<Rewriter>(folders.back(), corpus.index().info,
                                                   corpus.index().held_out_fraction, options,
                                                   corpus.tokens() / parts));
    Rewriter& rewriter = *rewriters.back();
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      rewriter.copy(corpus, split, share_of(corpus.split(split), part, parts));
    }
    rewriter.close(corpus);
    rewriter.finish(input / kTokenizerFolder);
  }
  // All parts or none, as far as several folders can.
  for (const auto& rewriter : rewriters) rewriter->publish();
  return folders;
}

void decode_documents(
    const fs::path& folder, Split split, std::uint64_t first, std::uint64_t count,
    const std::function<void(std::uint64_t document, const std::string& text)>& sink) {
  const ShardedCorpus corpus(folder, split);
  const auto tokenizer = ShardedCorpus::load_tokenizer(folder);
  const std::vector<std::uint64_t>& offsets = corpus.document_offsets();
  const std::uint64_t end = std::min(corpus.documents(), first + std::min(count, ~first));
  std::vector<std::uint32_t> ids;
  for (std::uint64_t d = first; d < end; ++d) {
    ids.resize(offsets[d + 1] - offsets[d]);
    corpus.read(d, 0, ids.size(), ids.data());
    sink(d, tokenizer->decode(ids));
  }
}

}  // namespace tupelo

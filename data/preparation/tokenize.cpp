#include "data/preparation/tokenize.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/content_digest.h"
#include "data/document_text.h"
#include "data/preparation/document_parts.h"
#include "data/preparation/token_part.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

// Turns batches into small parts.
class BatchTokenizer {
 public:
  BatchTokenizer(const PreparationJob& job, const Tokenizer& tokenizer)
      : job_(job), tokenizer_(tokenizer), token_bytes_(token_bytes_of(tokenizer)) {}

  TokenPart empty_part() const {
    TokenPart part(token_bytes_, job_.rules().finds_sentences());
    part.report.cleaning = job_.texts().empty_report();
    return part;
  }

  TokenPart operator()(DocumentTexts::Batch&& batch) const {
    TokenPart part = empty_part();
    ContentDigest digest;
    for (std::size_t i = 0; i < batch.raw.documents.size(); ++i) {
      const std::uint64_t source = batch.raw.documents[i].source;
      TextCounts counts;
      std::optional<std::string> text =
          job_.texts().take_text(batch, i, counts, part.report.cleaning);
      part.report.counts.add(counts);
      SourceReport& report = part.report.sources[source];
      report.invalid_bytes += counts.invalid_bytes;
      if (!text) continue;
      ++report.documents;
      report.text_bytes += text->size();
      add_text(std::move(*text), source, digest, part);
    }
    return part;
  }

 private:
  void add_text(std::string text, std::uint64_t source, ContentDigest& digest,
                TokenPart& part) const {
    const DividedText divided = job_.rules().divide(std::move(text));
    std::vector<std::uint32_t> ids;
    std::vector<std::uint8_t> word_start, sentence_start;
    TextRules::encode(tokenizer_, divided, ids, word_start, sentence_start);
    if (ids.empty()) {
      ++part.report.empty_documents;
      return;
    }
    const std::uint32_t unknown = tokenizer_.special_tokens().unk;
    part.report.unknown_tokens +=
        static_cast<std::uint64_t>(std::count(ids.begin(), ids.end(), unknown));
    part.add_document(ids, word_start, sentence_start, source, document_hash(divided.text, digest));
  }

  const PreparationJob& job_;
  const Tokenizer& tokenizer_;
  std::size_t token_bytes_;
};

// The parts of a group, as make_parts() collects them.
class CollectedPart {
 public:
  explicit CollectedPart(TokenPart empty) : part_(std::move(empty)) {}

  std::uint64_t add(std::uint64_t, TokenPart&& batch) {
    part_.append(batch);
    return batch.tokens();
  }
  void finish(const DocumentReader& reader) {
    part_.report.input_bytes = reader.bytes_read();
    part_.report.damaged_files = reader.damaged_files();
  }
  void write(const std::filesystem::path& file) const { part_.write(file); }

 private:
  TokenPart part_;
};

}  // namespace

std::size_t token_bytes_of(const Tokenizer& tokenizer) {
  return tokenizer.vocab_size() <= shard_layout::kNarrowVocabulary ? 2 : 4;
}

PartFolder tokenize_documents(PreparationJob& job, const Tokenizer& tokenizer,
                              const DuplicateTable* duplicates) {
  PartFolder folder(job.scratch() / "tokens", job.groups().size());
  const BatchTokenizer tokenize(job, tokenizer);
  job.together([&] {
    folder.look();
    job.begin_phase("tokenize", job.input_bytes(), bytes_done(job, folder));
    for (const std::size_t group : groups_to_do(job, folder)) {
      DocumentTexts::Duplicates of_group;
      if (duplicates != nullptr) {
        of_group = [=](std::uint64_t part) { return duplicates->positions({group, part}); };
      }
      make_parts<CollectedPart>(
          job, folder, group, of_group, [&] { return CollectedPart(tokenize.empty_part()); },
          [&](DocumentTexts::Batch&& batch) { return tokenize(std::move(batch)); });
    }
  });
  job.together([&] { folder.wait_until_complete(); });
  return folder;
}

}  // namespace tupelo

#include "data/preparation/vocabulary.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus_writer.h"
#include "data/document_text.h"
#include "data/errors.h"
#include "data/ordered_pipeline.h"
#include "data/preparation/document_parts.h"
#include "data/preparation/patience.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/byte_bpe_trainer.h"
#include "data/tokenizer/wordpiece_model.h"
#include "data/tokenizer/wordpiece_trainer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;

fs::path words_file(const PreparationJob& job, int rank) {
  return job.scratch() /
         ("words-" + std::to_string(rank) + "-of-" + std::to_string(job.processes()));
}

// Words as they stand: count, bytes, word.
void write_words(const fs::path& file, const std::vector<CountedWord>& words) {
  std::vector<std::byte> bytes;
  const auto append = [&](const void* data, std::size_t size) {
    const auto* const begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  for (const CountedWord& word : words) {
    const std::uint64_t size = word.word.size();
    append(&word.count, sizeof word.count);
    append(&size, sizeof size);
    append(word.word.data(), size);
  }
  write_sections(file, "words", {bytes});
}

std::vector<CountedWord> read_words(const fs::path& path) {
  be_patient([&] { return fs::exists(path); }, [&] { return path; });
  const SectionFile file(path);
  std::span<const std::byte> bytes = file.section(0);
  std::vector<CountedWord> words;
  const auto number = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
    return value;
  };
  while (!bytes.empty()) {
    CountedWord word{{}, number()};
    const std::uint64_t size = number();
    word.word.assign(reinterpret_cast<const char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
    words.push_back(std::move(word));
  }
  return words;
}

// Of how many batches one is read.
std::uint64_t stride_of(const PreparationJob& job) {
  const std::uint64_t wanted = job.options().vocab_text_bytes;
  return wanted == 0 ? 1 : std::max<std::uint64_t>(1, (job.input_bytes() + wanted - 1) / wanted);
}

Texts training_texts(const PreparationJob& job, DocumentTexts::Batch&& batch) {
  ContentDigest digest;
  CleaningReport unused = job.texts().empty_report();
  TextCounts ignored;
  Texts texts;
  for (std::size_t i = 0; i < batch.raw.documents.size(); ++i) {
    std::optional<std::string> raw = job.texts().take_text(batch, i, ignored, unused);
    if (!raw) continue;
    std::string text = job.rules().plain_text(std::move(*raw));
    if (is_held_out(document_hash(text, digest), job.options().held_out)) continue;
    texts.push_back(std::move(text));
  }
  return texts;
}

// The texts of a group that are not held out, of every `stride`-th batch.
void read_group(PreparationJob& job, std::size_t group, const DuplicateTable* table,
                std::uint64_t stride, const std::function<void(const Texts&)>& add) {
  DocumentTexts::Duplicates duplicates;
  if (table != nullptr) {
    duplicates = [=](std::uint64_t part) { return table->positions({group, part}); };
  }
  DocumentTexts::Pass pass(job.texts(), job.groups()[group], duplicates);
  std::uint64_t batches = 0, told = 0;
  const auto tell = [&] {
    job.advance(pass.reader().bytes_read() - told);
    told = pass.reader().bytes_read();
  };
  ordered_pipeline<DocumentTexts::Batch>(
      job.options().threads,
      [&](DocumentTexts::Batch& batch) {
        do {
          batch = {};
          if (!pass.next(kBatchBytes, batch)) return false;
        } while (batches++ % stride != 0);
        return true;
      },
      [&](DocumentTexts::Batch&& batch) { return training_texts(job, std::move(batch)); },
      [&](Texts&& texts) {
        add(texts);
        tell();
      });
  tell();
}

// Collective: the words of all groups, on the first process.
template <typename Trainer>
void count_words(PreparationJob& job, const DuplicateTable* duplicates, Trainer& trainer) {
  std::vector<std::uint64_t> costs;
  for (const TextGroup& group : job.groups()) costs.push_back(group.bytes);
  job.together([&] {
    job.begin_phase("vocabulary", job.input_bytes(), 0);
    for (const std::size_t group : job.share(costs)) {
      read_group(job, group, duplicates, stride_of(job),
                 [&](const Texts& texts) { trainer.add(texts); });
    }
    if (!job.is_first()) write_words(words_file(job, job.rank()), trainer.counted());
  });
  job.together([&] {
    if (!job.is_first()) return;
    for (int rank = 1; rank < job.processes(); ++rank) {
      trainer.add_counted(read_words(words_file(job, rank)));
      fs::remove(words_file(job, rank));
    }
  });
}

// nullptr on all but the first process.
std::unique_ptr<Tokenizer> trained_tokenizer(PreparationJob& job,
                                             const DuplicateTable* duplicates) {
  const PrepareOptions& options = job.options();
  std::unique_ptr<Tokenizer> tokenizer;
  if (options.train_kind == TokenizerKind::kByteBpe) {
    ByteBpeTrainer trainer({.vocab_size = *options.train_vocab_size,
                            .size_multiple = options.vocab_multiple,
                            .min_count = options.min_count,
                            .byte_bpe = {.add_prefix_space = options.add_prefix_space},
                            .threads = options.threads});
    count_words(job, duplicates, trainer);
    job.together([&] {
      if (job.is_first()) tokenizer = trainer.train();
    });
    return tokenizer;
  }
  WordPieceTrainer trainer({.vocab_size = *options.train_vocab_size,
                            .size_multiple = options.vocab_multiple,
                            .min_count = options.min_count,
                            .wordpiece = {.lowercase = options.lowercase},
                            .threads = options.threads});
  count_words(job, duplicates, trainer);
  job.together([&] {
    if (!job.is_first()) return;
    tokenizer =
        make_wordpiece(trainer.train(), {.lowercase = options.lowercase}, "trained vocabulary");
  });
  return tokenizer;
}

void store(const fs::path& folder, const Tokenizer& tokenizer) {
  const fs::path written = folder.string() + ".new";
  fs::remove_all(written);
  store_tokenizer(written, tokenizer);
  fs::rename(written, folder);
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(PreparationJob& job, const DuplicateTable* duplicates) {
  const fs::path folder = job.corpus() / kTokenizerFolder;
  if (!job.all_agree(fs::exists(folder))) {
    std::unique_ptr<Tokenizer> trained;
    const Tokenizer* tokenizer = job.given_tokenizer();
    if (tokenizer == nullptr) {
      trained = trained_tokenizer(job, duplicates);
      tokenizer = trained.get();
    }
    job.together([&] {
      if (job.is_first()) store(folder, *tokenizer);
    });
  }
  std::unique_ptr<Tokenizer> stored;
  job.together([&] {
    be_patient([&] { return fs::exists(folder); }, [&] { return folder; });
    stored = load_stored_tokenizer(folder);
  });
  return stored;
}

}  // namespace tupelo

// What is exported for NVIDIA's recipes is what training would see, and comes back as it was.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/export/nvidia.h"
#include "data/export/static_rows.h"
#include "data/hdf5_arrays.h"
#include "data/import/number_rows.h"
#include "data/import/nvidia.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/load_tokenizer.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::export_nvidia_test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kVocabulary = 400;

// Special tokens, five unused ones, characters, and every fifth a piece that goes on.
std::string vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < 5; ++i) text += "[unused" + std::to_string(i) + "]\n";
  for (std::uint32_t id = 10; id < kVocabulary; ++id) {
    text += (id % 5 == 0 ? "##w" : "w") + std::to_string(id) + "\n";
  }
  return text;
}

class ExportNvidia : public testing::Test {
 protected:
  ExportNvidia() {
    write_bytes(folder_ / "vocab.txt", vocabulary());
    const auto tokenizer = load_tokenizer(folder_ / "vocab.txt", {});
    CorpusInfo info = sample_info(kVocabulary);
    info.tokenizer_fingerprint = tokenizer->fingerprint();
    info.reserved_ids = tokenizer->reserved_ids();
    write_sample_corpus(corpus_, documents_, 0.2, 2000, info);
    store_tokenizer(corpus_ / kTokenizerFolder, *tokenizer);
  }

  NvidiaExport options() const {
    NvidiaExport options;
    options.corpus = corpus_;
    options.output = folder_ / "e";
    options.rows.sequence_length = 64;
    options.rows.packing = Packing::kDocument;
    options.max_predictions = 20;
    options.force = true;
    return options;
  }

  static std::vector<Ids> documents_of(const ShardedCorpus& corpus) {
    std::vector<Ids> documents;
    for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
      documents.emplace_back(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d]);
      corpus.read(d, 0, documents.back().size(), documents.back().data());
    }
    return documents;
  }

  // All documents of both splits, sorted.
  static std::vector<Ids> all_documents(const fs::path& corpus) {
    std::vector<Ids> all = documents_of(ShardedCorpus(corpus, Split::kTrain));
    for (Ids& document : documents_of(ShardedCorpus(corpus, Split::kHeldOut))) {
      all.push_back(std::move(document));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  static std::vector<std::vector<std::int64_t>> table(const fs::path& file,
                                                      const std::string& name) {
    const Hdf5Arrays arrays(file);
    const RegularFile bytes(file);
    const StoredArray array = arrays.array(name);
    const auto rows = open_number_rows(arrays, bytes, name, array);
    std::vector<std::vector<std::int64_t>> result(array.rows);
    for (std::uint64_t r = 0; r < array.rows; ++r) rows->read(r, result[r]);
    return result;
  }

  const std::vector<SampleDocument> documents_ = sample_documents(5, 200, 62, kVocabulary);
  TemporaryFolder folder_;
  const fs::path corpus_ = folder_ / "c";
};

TEST_F(ExportNvidia, ComesBackAsTheSameDocuments) {
  NvidiaExport twice = options();
  twice.duplicates = 2;
  twice.rows_per_file = 100;
  const NvidiaExportReport exported = export_nvidia(twice);
  EXPECT_EQ(exported.train_rows + exported.held_out_rows, 2 * documents_.size());
  EXPECT_EQ(exported.files, (exported.train_rows + 99) / 100 + (exported.held_out_rows + 99) / 100);
  std::uint64_t tokens = 0;
  for (const SampleDocument& document : documents_) tokens += document.ids.size();
  EXPECT_EQ(exported.tokens, 2 * tokens);

  NvidiaImport import;
  import.inputs = {folder_ / "e"};
  import.tokenizer = corpus_;
  import.output = folder_ / "back";
  const NvidiaImportReport imported = import_nvidia(import);
  EXPECT_EQ(imported.rows, 2 * documents_.size());
  EXPECT_EQ(imported.unrestored_rows, 0u);
  std::vector<Ids> once = all_documents(corpus_);
  once.erase(std::unique(once.begin(), once.end()), once.end());
  EXPECT_EQ(imported.duplicates, imported.rows - once.size());
  EXPECT_EQ(all_documents(folder_ / "back"), once);
}

TEST_F(ExportNvidia, LaysRowsOutAsTheLoaderReadsThem) {
  export_nvidia(options());
  const fs::path file = folder_ / "e" / "corpus_training_00000.hdf5";
  const Hdf5Arrays arrays(file);
  for (const auto& [name, bytes, columns] : {std::tuple{"input_ids", 4u, 64u},
                                             {"input_mask", 1u, 64u},
                                             {"segment_ids", 1u, 64u},
                                             {"masked_lm_positions", 4u, 20u},
                                             {"masked_lm_ids", 4u, 20u},
                                             {"next_sentence_labels", 1u, 1u}}) {
    const StoredArray array = arrays.array(name);
    EXPECT_EQ(array.type.bytes, bytes) << name;
    EXPECT_TRUE(array.type.is_signed) << name;
    EXPECT_EQ(array.columns, columns) << name;
  }
  const auto ids = table(file, "input_ids"), mask = table(file, "input_mask");
  const auto positions = table(file, "masked_lm_positions"), masked = table(file, "masked_lm_ids");
  const std::vector<Ids> documents = documents_of(ShardedCorpus(corpus_, Split::kTrain));
  ASSERT_EQ(ids.size(), documents.size());
  for (std::size_t r = 0; r < ids.size(); ++r) {
    std::vector<std::int64_t> restored = ids[r];
    std::int64_t last = 0;
    for (std::size_t i = 0; i < 20 && positions[r][i] > 0; ++i) {
      EXPECT_GT(positions[r][i], last);
      last = positions[r][i];
      restored[static_cast<std::size_t>(last)] = masked[r][i];
    }
    std::vector<std::int64_t> expected = {2};
    expected.insert(expected.end(), documents[r].begin(), documents[r].end());
    expected.push_back(3);
    std::vector<std::int64_t> ones(expected.size(), 1);
    expected.resize(64);
    ones.resize(64);
    EXPECT_EQ(restored, expected);
    EXPECT_EQ(mask[r], ones);
  }
}

TEST_F(ExportNvidia, MasksAsTrainingDoes) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  for (const Masking masking : {Masking::kToken, Masking::kWholeWord}) {
    DataOptions rows = options().rows;
    rows.masking = masking;
    const Masker masker(corpus.info(), rows);
    StaticRows exported(corpus, rows, 64);
    std::uint64_t total = 0;
    for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
      Ids tokens(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d]);
      std::vector<std::uint8_t> flags(tokens.size());
      corpus.read(d, 0, tokens.size(), tokens.data());
      corpus.read_word_starts(d, 0, flags.size(), flags.data());
      std::vector<MaskedToken> masked;
      masker.mask(3, d, tokens.size(), 0, tokens, {0, flags}, masked);
      const StaticRow row = exported.row(3, d);
      ASSERT_EQ(row.positions.size(), masked.size());
      EXPECT_EQ(row.unmasked, 0u);
      for (std::size_t i = 0; i < masked.size(); ++i) {
        EXPECT_EQ(row.positions[i], masked[i].index + 1);
        EXPECT_EQ(row.originals[i], masked[i].original);
      }
      EXPECT_EQ(Ids(row.ids.begin() + 1, row.ids.end() - 1), tokens);
      total += masked.size();
    }
    EXPECT_GT(total, 500u);
  }
}

TEST_F(ExportNvidia, KeepsWholeWordsWithinTheMostPredictions) {
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  DataOptions rows = options().rows;
  rows.masking = Masking::kWholeWord;
  StaticRows all(corpus, rows, 64), few(corpus, rows, 6);
  std::uint64_t unmasked = 0, first = 0, rows_cut = 0;
  for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
    const StaticRow whole = all.row(0, d), cut = few.row(0, d);
    EXPECT_LE(cut.positions.size(), 6u);
    EXPECT_EQ(cut.positions.size() + cut.unmasked, whole.positions.size());
    unmasked += cut.unmasked;
    if (cut.unmasked == 0) {
      EXPECT_EQ(cut.ids, whole.ids);
      continue;
    }
    ++rows_cut;
    first += cut.positions.front() == whole.positions.front() ? 1 : 0;
    // A word is masked whole or stands there whole: every token is as in one row or the other.
    std::vector<std::uint8_t> starts(whole.ids.size() - 2);
    corpus.read_word_starts(d, 0, starts.size(), starts.data());
    const auto is_kept = [&](std::uint32_t position) {
      return std::binary_search(cut.positions.begin(), cut.positions.end(), position);
    };
    for (const std::uint32_t position : whole.positions) {
      if (starts[position - 1] == 0) {
        EXPECT_EQ(is_kept(position), is_kept(position - 1));
      }
    }
  }
  EXPECT_GT(unmasked, 100u);
  EXPECT_LT(first, rows_cut);  // not always the row's first ones
}

TEST_F(ExportNvidia, GivesTheSameBytesAgainAndOthersForAnotherSeed) {
  export_nvidia(options());
  const auto first = tree_of(folder_ / "e");
  export_nvidia(options());
  EXPECT_EQ(tree_of(folder_ / "e"), first);
  NvidiaExport other = options();
  other.rows.seed = 2;
  export_nvidia(other);
  EXPECT_NE(tree_of(folder_ / "e"), first);
  const auto json = nlohmann::json::parse(read_bytes(folder_ / "e" / "export.json"));
  EXPECT_EQ(json["corpus_digest"], read_corpus_index(corpus_).info.digest);
  EXPECT_EQ(json["seed"], 2);
}

TEST_F(ExportNvidia, JoinsDocumentsWhereRowsAreFull) {
  NvidiaExport full = options();
  full.rows.packing = Packing::kFull;
  full.rows.sequence_length = 128;
  const NvidiaExportReport report = export_nvidia(full);
  std::uint64_t tokens = 0;
  for (const SampleDocument& document : documents_) tokens += document.ids.size();
  EXPECT_EQ(report.tokens, tokens);
  const auto ids = table(folder_ / "e" / "corpus_training_00000.hdf5", "input_ids");
  for (std::size_t r = 0; r + 1 < ids.size(); ++r) {
    EXPECT_EQ(ids[r].front(), 2);
    EXPECT_EQ(ids[r].back(), 3);
  }
}

// Killed on the way, neither is there in part, and the next run clears up.
TEST_F(ExportNvidia, IsThereWholeOrNotAtAll) {
  NvidiaExport many = options();
  many.duplicates = 12;
  many.rows_per_file = 500;
  const auto killed = [](auto& options, auto run) {
    const pid_t child = ::fork();
    if (child == 0) {
      options.progress = [](std::uint64_t, std::uint64_t) { ::raise(SIGKILL); };
      run(options);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  };
  EXPECT_TRUE(killed(many, export_nvidia));
  EXPECT_FALSE(fs::exists(folder_ / "e"));
  export_nvidia(many);
  const auto first = tree_of(folder_ / "e");
  EXPECT_TRUE(killed(many, export_nvidia));
  EXPECT_EQ(tree_of(folder_ / "e"), first);

  NvidiaImport import;
  import.inputs = {folder_ / "e"};
  import.tokenizer = corpus_;
  import.output = folder_ / "back";
  EXPECT_TRUE(killed(import, import_nvidia));
  EXPECT_FALSE(fs::exists(folder_ / "back"));
  import_nvidia(import);
  EXPECT_TRUE(fs::exists(folder_ / "back"));
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find(".back.unfinished"), std::string::npos);
  }
}

TEST_F(ExportNvidia, RefusesWhatDoesNotFit) {
  const auto expect = [&](const std::function<void(NvidiaExport&)>& change,
                          const std::string& part) {
    NvidiaExport wrong = options();
    change(wrong);
    const std::string message = message_of<std::invalid_argument>([&] { export_nvidia(wrong); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_FALSE(fs::exists(folder_ / "e"));
  };
  expect([](NvidiaExport& o) { o.rows.sequence_length = 3; }, "sequence length must be 4");
  expect([](NvidiaExport& o) { o.rows.packing = Packing::kBestFit; }, "pack full or doc");
  expect([](NvidiaExport& o) { o.max_predictions = 65; }, "max predictions must be 1");
  expect([](NvidiaExport& o) { o.duplicates = 0; }, "1 to 1000 times");
  expect([](NvidiaExport& o) { o.rows_per_file = 0; }, "rows per file must be 1");
  fs::create_directory(folder_ / "full");
  write_bytes(folder_ / "full" / "mine.txt", "keep");
  NvidiaExport over = options();
  over.output = folder_ / "full";
  EXPECT_NE(message_of<std::invalid_argument>([&] { export_nvidia(over); }).find("not replaced"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "full" / "mine.txt"));
  const auto shard = corpus_ / read_corpus_index(corpus_).train[0].file;
  flip_bit(shard, read_corpus_index(corpus_).train[0].payload[0].first);
  EXPECT_THROW(export_nvidia(options()), CorpusError);
  EXPECT_FALSE(fs::exists(folder_ / "e"));
}

}  // namespace
}  // namespace tupelo::export_nvidia_test

// Corpora in the layout of NVIDIA's BERT recipes: rows come back as they were before masking, and
// what does not fit is refused.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "data/import/nvidia.h"
#include "tests/data/foreign_hdf5.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::import_nvidia_test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then words and pieces from 5.
constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nsat\n天\n地\n";

// Two rows of 8 tokens, 3 of them recorded at most: "the cats sat" with "cat" masked and "sat" left
// as it is, and "天地 the [UNK]" with 天 replaced by "the" and [UNK] masked.
const Table kInput = {{2, 5, 4, 7, 8, 3, 0, 0}, {2, 5, 10, 3, 5, 4, 3, 0}};
const Table kMask = {{1, 1, 1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 0}};
const Table kPositions = {{2, 4, 0}, {1, 5, 0}};
const Table kMaskedIds = {{6, 8, 0}, {9, 1, 0}};
const std::vector<Ids> kDocuments = {{5, 6, 7, 8}, {9, 10, 5, 1}};

class ImportNvidia : public testing::Test {
 protected:
  ImportNvidia() { write_bytes(folder_ / "vocab.txt", kVocabulary); }

  NvidiaImport options() const {
    NvidiaImport options;
    options.inputs = {file_};
    options.tokenizer = folder_ / "vocab.txt";
    options.output = folder_ / "c";
    options.held_out = 0;
    options.force = true;
    return options;
  }

  // The file above, all datasets stored alike.
  void write(const Storage& storage = {}) const {
    const ForeignFile file(file_);
    file.add("input_ids", kInput, storage);
    file.add("input_mask", kMask, storage);
    file.add("segment_ids", kMask, storage);
    file.add("masked_lm_positions", kPositions, storage);
    file.add("masked_lm_ids", kMaskedIds, storage);
    Storage labels = storage;
    if (!labels.chunk.empty()) labels.chunk.resize(1);
    file.add("next_sentence_labels", {2}, {0, 0}, labels);
  }

  std::vector<Ids> documents() const {
    const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
    std::vector<Ids> documents;
    for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
      documents.emplace_back(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d]);
      corpus.read(d, 0, documents.back().size(), documents.back().data());
    }
    return documents;
  }
  Flags word_starts(std::uint64_t document) const {
    const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
    Flags flags(corpus.document_offsets()[document + 1] - corpus.document_offsets()[document]);
    corpus.read_word_starts(document, 0, flags.size(), flags.data());
    return flags;
  }

  // It is refused with one sentence that names the file, and nothing is left behind.
  void expect_refusal(const std::string& part) const {
    fs::remove_all(folder_ / "c");
    const std::string message = message_of<CorpusError>([&] { import_nvidia(options()); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(file_.string()), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_TRUE(entry.path() == file_ || entry.path().extension() != "") << entry.path();
    }
  }
  void expect_refusal(const std::function<void(const ForeignFile&)>& change,
                      const std::string& part) const {
    write();
    change(ForeignFile(file_, /*existing=*/true));
    expect_refusal(part);
  }
  // The same of a dataset that is put in the place of another.
  void expect_refusal_of(const std::string& name, const Table& rows, const std::string& part,
                         const Storage& storage = {}) const {
    expect_refusal(
        [&](const ForeignFile& file) {
          file.remove(name);
          file.add(name, rows, storage);
        },
        part);
  }

  TemporaryFolder folder_;
  const fs::path file_ = folder_ / "f.hdf5";
};

TEST_F(ImportNvidia, PutsBackWhatWasMaskedOfAnyWidth) {
  for (const hid_t type : {H5T_STD_I8LE, H5T_STD_U8LE, H5T_STD_I16LE, H5T_STD_U16LE, H5T_STD_I32LE,
                           H5T_STD_I64LE, H5T_STD_U64LE, H5T_STD_I16BE, H5T_STD_U32BE}) {
    write({.type = type});
    const NvidiaImportReport report = import_nvidia(options());
    EXPECT_EQ(report.rows, 2u);
    EXPECT_EQ(report.duplicates + report.unrestored_rows, 0u);
    EXPECT_EQ(report.index.unknown_tokens, 1u);
    EXPECT_EQ(documents(), kDocuments);
  }
  EXPECT_EQ(word_starts(0), (Flags{1, 1, 0, 1}));
  EXPECT_EQ(word_starts(1), (Flags{1, 1, 1, 1}));
}

TEST_F(ImportNvidia, ReadsChunksThroughEveryKnownFilter) {
  for (const std::vector<hsize_t>& chunk : {std::vector<hsize_t>{1, 3}, {2, 2}, {5, 3}, {1, 1}}) {
    for (int filters = 0; filters < 8; ++filters) {
      write({.type = H5T_STD_I32LE,
             .chunk = chunk,
             .shuffle = (filters & 1) != 0,
             .deflate = (filters & 2) != 0,
             .fletcher32 = (filters & 4) != 0});
      import_nvidia(options());
      EXPECT_EQ(documents(), kDocuments) << chunk[0] << " by " << chunk[1] << ", " << filters;
    }
  }
}

TEST_F(ImportNvidia, ReadsManyBandsOfChunks) {
  Table input, positions, masked;
  std::vector<Ids> expected;
  for (std::int64_t r = 0; r < 500; ++r) {
    const std::int64_t digits[] = {5 + r % 6, 5 + r / 6 % 6, 5 + r / 36 % 6, 5 + r / 216 % 6};
    input.push_back({2, digits[0], 4, digits[2], digits[3], 3, 0, 0});
    positions.push_back({2, 0});
    masked.push_back({digits[1], 0});
    expected.emplace_back(std::begin(digits), std::end(digits));
  }
  const ForeignFile* file = nullptr;
  for (const Storage& storage : {Storage{H5T_STD_I16LE, {64, 3}, true, true, true}, Storage{}}) {
    {
      const ForeignFile made(file_);
      file = &made;
      file->add("input_ids", input, storage);
      file->add("masked_lm_positions", positions, {H5T_STD_I32LE, {7, 1}, false, true, false});
      file->add("masked_lm_ids", masked, {H5T_STD_I32LE, {1000, 2}, false, true, false});
    }
    import_nvidia(options());
    EXPECT_EQ(documents(), expected);
  }
}

TEST_F(ImportNvidia, ReadsRowsOfVaryingLength) {
  {
    const ForeignFile file(file_);
    file.add_varying("input_ids", {{2, 5, 4, 7, 8, 3}, {2, 5, 10, 3, 5, 4, 3}}, H5T_STD_I16LE);
    file.add_varying("segment_ids", {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 1, 1}}, H5T_STD_I8LE);
    file.add_varying("masked_lm_positions", {{2, 4}, {1, 5}}, H5T_STD_I16LE);
    file.add_varying("masked_lm_ids", {{6, 8}, {9, 1}}, H5T_STD_I16LE);
    file.add("next_sentence_labels", {2}, {0, 0}, {.type = H5T_STD_I8LE});
  }
  import_nvidia(options());
  EXPECT_EQ(documents(), kDocuments);
}

TEST_F(ImportNvidia, ReadsManyVaryingRows) {
  Table input, none;
  std::vector<Ids> expected;
  for (std::int64_t r = 0; r < 3000; ++r) {
    input.push_back({2});
    for (std::int64_t i = 0, number = r; i < 1 + r % 40; ++i, number /= 2) {
      input.back().push_back(5 + number % 2);
    }
    expected.emplace_back(input.back().begin() + 1, input.back().end());
    none.emplace_back();
  }
  {
    const ForeignFile file(file_);
    file.add_varying("input_ids", input, H5T_STD_I16LE);
    file.add_varying("masked_lm_positions", none, H5T_STD_I16LE);
    file.add_varying("masked_lm_ids", none, H5T_STD_I16LE);
  }
  NvidiaImport all = options();
  all.keep_duplicates = true;
  import_nvidia(all);
  EXPECT_EQ(documents(), expected);
}

TEST_F(ImportNvidia, DropsPaddingWithoutAMask) {
  write();
  {
    const ForeignFile file(file_, true);
    file.remove("input_mask");
    file.remove("segment_ids");
    file.remove("next_sentence_labels");
  }
  import_nvidia(options());
  EXPECT_EQ(documents(), kDocuments);
}

TEST_F(ImportNvidia, PartsWhatWasPutTogetherAtRandom) {
  write();
  {
    const ForeignFile file(file_, true);
    file.remove("next_sentence_labels");
    file.add("next_sentence_labels", {2}, {0, 1}, {.type = H5T_STD_I8LE});
  }
  import_nvidia(options());
  EXPECT_EQ(documents(), (std::vector<Ids>{{5, 6, 7, 8}, {9, 10}, {5, 1}}));
}

TEST_F(ImportNvidia, KeepsTheFirstOfEqualDocuments) {
  write();
  const fs::path more = folder_ / "more";
  fs::create_directory(more);
  {
    // The same two texts, masked otherwise, and a new one between them.
    const ForeignFile file(more / "b.hdf5");
    file.add("input_ids", {{2, 4, 6, 7, 8, 3}, {2, 8, 8, 3, 0, 0}, {2, 9, 10, 5, 1, 3}});
    file.add("masked_lm_positions", {{1, 0}, {0, 0}, {0, 0}});
    file.add("masked_lm_ids", {{5, 0}, {0, 0}, {0, 0}});
    fs::copy_file(file_, more / "a.h5");
    write_bytes(more / "notes.txt", "not a corpus");
  }
  NvidiaImport both = options();
  both.inputs = {more, file_};
  NvidiaImportReport report = import_nvidia(both);
  EXPECT_EQ(report.rows, 7u);
  EXPECT_EQ(report.duplicates, 4u);
  EXPECT_EQ(documents(), (std::vector<Ids>{{5, 6, 7, 8}, {9, 10, 5, 1}, {8, 8}}));
  const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
  EXPECT_EQ(corpus.source(0), 0u);
  EXPECT_EQ(corpus.source(2), 1u);
  EXPECT_EQ(report.index.sources.size(), 3u);
  both.keep_duplicates = true;
  report = import_nvidia(both);
  EXPECT_EQ(report.duplicates, 0u);
  EXPECT_EQ(documents().size(), 7u);
}

TEST_F(ImportNvidia, CountsRowsThatCannotBeRestored) {
  for (const std::int64_t rows : {150, 50}) {
    Table input(static_cast<std::size_t>(rows), {2, 5, 6, 3});
    input[7][2] = 4;
    const Table none(static_cast<std::size_t>(rows), {0});
    {
      const ForeignFile file(file_);
      file.add("input_ids", input);
      file.add("masked_lm_positions", none);
      file.add("masked_lm_ids", none);
    }
    if (rows == 50) {
      expect_refusal("more than one row in a hundred has a [MASK]");
    } else {
      NvidiaImport all = options();
      all.keep_duplicates = true;
      EXPECT_EQ(import_nvidia(all).unrestored_rows, 1u);
      EXPECT_EQ(documents(), std::vector<Ids>(149, {5, 6}));
    }
  }
}

TEST_F(ImportNvidia, FindsWordsByADictionary) {
  write_bytes(folder_ / "dict.txt", "天地 100 n\n天 10 n\n地 10 n\n");
  write();
  NvidiaImport words = options();
  words.segmenter_dictionary = folder_ / "dict.txt";
  const NvidiaImportReport report = import_nvidia(words);
  EXPECT_EQ(report.index.info.segmenter.kind, "dictionary");
  EXPECT_EQ(documents(), kDocuments);
  EXPECT_EQ(word_starts(0), (Flags{1, 1, 0, 1}));
  EXPECT_EQ(word_starts(1), (Flags{1, 0, 1, 1}));  // 天地 | the | [UNK]
}

TEST_F(ImportNvidia, RefusesNumbersThatDoNotFit) {
  expect_refusal_of("input_ids", {kInput[0], {2, 5, 11, 3, 5, 4, 3, 0}},
                    "dataset 'input_ids', row 1: token id 11, but the vocabulary has 11 tokens");
  expect_refusal_of("input_ids", {kInput[0], {2, 5, -7, 3, 5, 4, 3, 0}}, "row 1: token id -7");
  expect_refusal_of("input_ids", {kInput[0], {5, 5, 6, 3, 5, 4, 3, 0}},
                    "row 1: does not begin with [CLS] (2)");
  expect_refusal_of("masked_lm_ids", {{6, 99, 0}, {9, 1, 0}},
                    "dataset 'masked_lm_ids', row 0: token id 99");
  expect_refusal_of("masked_lm_positions", {{2, 6, 0}, {1, 5, 0}},
                    "dataset 'masked_lm_positions', row 0: position 6 in a row of 6 tokens");
  expect_refusal_of("masked_lm_positions", {{2, -1, 0}, {1, 5, 0}}, "position -1");
  expect_refusal_of("masked_lm_positions", {{2, 4}, {1, 5}},
                    "dataset 'masked_lm_ids', row 0: has 3 ids for 2 positions");
  expect_refusal_of("masked_lm_ids", {{6, 8, 0}}, "has 1 rows, but 'input_ids' has 2");
  expect_refusal_of("input_mask", {kMask[0], {1, 0, 1, 1, 1, 1, 1, 0}},
                    "dataset 'input_mask', row 1: is not ones followed by zeros");
  expect_refusal_of("input_mask", {kMask[0], {1, 1, 2, 1, 1, 1, 1, 0}}, "is not ones");
  expect_refusal_of("input_mask", {{1, 1}, {1, 1}}, "is not ones");
  expect_refusal_of("input_mask", {Table{{0, 0, 0, 0, 0, 0, 0, 0}, kMask[1]}},
                    "row 0: does not begin with [CLS]");
}

TEST_F(ImportNvidia, RefusesFoldersWithWhatIsNoFile) {
  fs::create_directory(folder_ / "shards");
  const fs::path odd = folder_ / "shards/x.hdf5";
  for (const char* target : {"x.hdf5", "/dev/null", "."}) {
    fs::create_symlink(target, odd);
    const std::string message =
        message_of<CorpusError>([&] { nvidia_files({folder_ / "shards"}); });
    EXPECT_EQ(message, odd.string() + ": is not a regular file");
    fs::remove(odd);
  }
}

TEST_F(ImportNvidia, RefusesOtherStructures) {
  for (const char* name : {"input_ids", "masked_lm_positions", "masked_lm_ids"}) {
    expect_refusal([&](const ForeignFile& file) { file.remove(name); },
                   std::string("dataset '") + name + "' is missing");
    for (const hid_t type : {H5T_IEEE_F32LE, H5T_C_S1, H5T_STD_REF_OBJ, H5T_STD_B32LE}) {
      expect_refusal(
          [&](const ForeignFile& file) {
            file.remove(name);
            file.add_empty(name, type, {2, 8});
          },
          "does not hold whole numbers");
    }
    expect_refusal(
        [&](const ForeignFile& file) {
          file.remove(name);
          file.add(name, {2, 1, 8}, std::vector<std::int64_t>(16));
        },
        "does not have one or two dimensions");
    expect_refusal(
        [&](const ForeignFile& file) {
          file.remove(name);
          H5Gclose(H5Gcreate2(file.id(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        },
        "is not a dataset of this file itself");
  }
  expect_refusal(
      [](const ForeignFile& file) {
        file.add("packed_input_len", {2}, {1, 1});
      },
      "several packed sequences");
  NvidiaImport nothing = options();
  nothing.inputs = {folder_ / "nowhere.hdf5"};
  EXPECT_NE(message_of<CorpusError>([&] { import_nvidia(nothing); }).find("is missing"),
            std::string::npos);
  fs::create_directory(folder_ / "empty");
  nothing.inputs = {folder_ / "empty"};
  EXPECT_THROW(import_nvidia(nothing), std::invalid_argument);
  nothing.inputs = {};
  EXPECT_THROW(import_nvidia(nothing), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::import_nvidia_test

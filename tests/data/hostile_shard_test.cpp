// Shards that are damaged, or made to harm: each is refused with one sentence that names the file.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string_view>

#include "tests/data/spoiled_corpus.h"

namespace tupelo::hostile_shard_test {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// In which the HDF5 library changes things.
class HostileShard : public SpoiledCorpus {
 protected:
  HostileShard() : SpoiledCorpus(sample_documents(1, 40, 60)) {}

  void edit(const std::function<void(hid_t)>& change) const {
    const hid_t file = H5Fopen(shard_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0);
    change(file);
    ASSERT_GE(H5Fclose(file), 0);
    adapt_index();
  }

  // The opener says this about a file that was changed so, and names the file.
  void expect_refusal(const std::function<void(hid_t)>& change, const std::string& sentence) const {
    edit(change);
    const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, shard_.string())) << message;
    EXPECT_TRUE(contains(message, sentence)) << message;
    EXPECT_FALSE(contains(message, "\n")) << message;
  }

  // Puts a dataset of this type, shape and layout in the place of `name`.
  void replace(hid_t file, const char* name, hid_t type, std::vector<hsize_t> sizes,
               hid_t layout = H5P_DATASET_CREATE_DEFAULT) const {
    const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
    H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    const std::vector<std::uint64_t> zeros(tokens(), 0);
    if (sizes == std::vector<hsize_t>{tokens()} && H5Pget_layout(layout) != H5D_VIRTUAL) {
      H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
    }
    H5Dclose(dataset);
    H5Sclose(space);
  }

  static void replace_attribute(hid_t file, const char* name, std::uint64_t value) {
    H5Adelete(file, name);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, name, H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_UINT64, &value);
    H5Aclose(attribute);
    H5Sclose(space);
  }

  std::uint64_t tokens() const { return datasets_.tokens.place.count; }
};

TEST_F(HostileShard, TheUnspoiledOneIsFine) { EXPECT_NO_THROW(open_and_verify()); }

TEST_F(HostileShard, RefusesOtherElementTypes) {
  for (const hid_t type : {H5T_STD_I16LE, H5T_STD_U16BE, H5T_STD_U32LE, H5T_IEEE_F32LE}) {
    expect_refusal([&](hid_t file) { replace(file, "tokens", type, {tokens()}); },
                   "dataset 'tokens' is not of type uint16");
  }
  const hid_t varying = H5Tvlen_create(H5T_STD_U16LE);
  const hid_t pair = H5Tcreate(H5T_COMPOUND, 2);
  H5Tinsert(pair, "x", 0, H5T_STD_U16LE);
  for (const hid_t type : {varying, pair}) {
    expect_refusal([&](hid_t file) { replace(file, "tokens", type, {2}); },
                   "dataset 'tokens' is not of type uint16");
    H5Tclose(type);
  }
}

TEST_F(HostileShard, RefusesOtherRanks) {
  expect_refusal(
      [&](hid_t file) {
        replace(file, "tokens", H5T_STD_U16LE, {tokens(), 1});
      },
      "dataset 'tokens'");
}

TEST_F(HostileShard, RefusesMissingDatasets) {
  for (const char* name : {"doc_hash", "doc_source", "word_start", "doc_offsets", "tokens"}) {
    expect_refusal([&](hid_t file) { H5Ldelete(file, name, H5P_DEFAULT); },
                   std::string("dataset '") + name + "' is missing");
  }
}

TEST_F(HostileShard, RefusesAGroupInPlaceOfADataset) {
  expect_refusal(
      [](hid_t file) {
        H5Ldelete(file, "tokens", H5P_DEFAULT);
        H5Gclose(H5Gcreate2(file, "tokens", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      },
      "dataset 'tokens' is not a dataset of this file itself");
}

TEST_F(HostileShard, RefusesSoftLinks) {
  expect_refusal(
      [](hid_t file) {
        H5Lmove(file, "tokens", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/elsewhere", file, "tokens", H5P_DEFAULT, H5P_DEFAULT);
      },
      "dataset 'tokens' is not a dataset of this file itself");
}

TEST_F(HostileShard, RefusesLinksIntoOtherFiles) {
  fs::copy_file(shard_, corpus_ / "train/other.h5");
  expect_refusal(
      [](hid_t file) {
        H5Ldelete(file, "tokens", H5P_DEFAULT);
        H5Lcreate_external("other.h5", "/tokens", file, "tokens", H5P_DEFAULT, H5P_DEFAULT);
      },
      "a root group of a newer kind, such as links into other files need");
}

TEST_F(HostileShard, RefusesExternalStorage) {
  const fs::path secret = folder_ / "secret";
  write_bytes(secret, std::string(1 << 16, 's'));
  expect_refusal(
      [&](hid_t file) {
        const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_external(layout, secret.c_str(), 0, H5F_UNLIMITED);
        replace(file, "tokens", H5T_STD_U16LE, {tokens()}, layout);
        H5Pclose(layout);
      },
      "dataset 'tokens' is not stored contiguously, unfiltered and inside this file");
}

TEST_F(HostileShard, RefusesVirtualDatasets) {
  expect_refusal(
      [&](hid_t file) {
        const hsize_t size = tokens();
        const hid_t space = H5Screate_simple(1, &size, nullptr);
        const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_virtual(layout, space, "other.h5", "/tokens", space);
        replace(file, "tokens", H5T_STD_U16LE, {size}, layout);
        H5Pclose(layout);
        H5Sclose(space);
      },
      "dataset 'tokens'");
}

TEST_F(HostileShard, RefusesChunksFiltersAndCompactStorage) {
  constexpr H5Z_filter_t kNone = 0, kUnknown = 32015;
  for (const H5Z_filter_t filter : {kNone, H5Z_FILTER_DEFLATE, kUnknown}) {
    expect_refusal(
        [&](hid_t file) {
          const hsize_t chunk = 64;
          const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
          H5Pset_chunk(layout, 1, &chunk);
          if (filter == H5Z_FILTER_DEFLATE) H5Pset_deflate(layout, 4);
          if (filter == kUnknown) {
            H5Pset_filter(layout, filter, H5Z_FLAG_OPTIONAL, 0, nullptr);
          }
          replace(file, "tokens", H5T_STD_U16LE, {tokens()}, layout);
          H5Pclose(layout);
        },
        "dataset 'tokens' is not stored contiguously");
  }
  expect_refusal(
      [&](hid_t file) {
        const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_layout(layout, H5D_COMPACT);
        replace(file, "tokens", H5T_STD_U16LE, {tokens()}, layout);
        H5Pclose(layout);
      },
      "dataset 'tokens' is not stored contiguously");
}

TEST_F(HostileShard, RefusesSizesBeyondTheFile) {
  expect_refusal([&](hid_t file) { replace(file, "tokens", H5T_STD_U16LE, {hsize_t{1} << 40}); },
                 "dataset 'tokens' reaches past the end of the file");
}

TEST_F(HostileShard, RefusesOtherNumbersOfElements) {
  for (const auto& [attribute, sentence] :
       {std::pair{"n_tokens", "dataset 'tokens' has"}, {"n_docs", "dataset 'doc_offsets' has"}}) {
    const std::string before = read_bytes(shard_);
    expect_refusal([&](hid_t file) { replace_attribute(file, attribute, 39); }, sentence);
    write_bytes(shard_, before);
  }
}

TEST_F(HostileShard, RefusesOffsetsThatDoNotRise) {
  const std::uint64_t first = datasets_.doc_offsets.place.offset;
  const std::uint64_t last = first + datasets_.doc_offsets.place.bytes() - 8;
  for (const std::uint64_t at : {first, first + 8 * 5 + 6, last}) {
    std::string bytes = sound_;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_as_author(bytes);
    const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, "'doc_offsets' does not rise")) << message;
  }
}

TEST_F(HostileShard, RefusesMissingAttributes) {
  for (const char* name : {"mask_id", "vocab_size", "tokenizer_sha256", "n_tokens"}) {
    const std::string before = read_bytes(shard_);
    expect_refusal([&](hid_t file) { H5Adelete(file, name); },
                   std::string("attribute '") + name + "' is missing");
    write_bytes(shard_, before);
  }
}

TEST_F(HostileShard, RefusesAShardThatWasNeverFinished) {
  expect_refusal([](hid_t file) { H5Adelete(file, "complete"); },
                 "attribute 'complete' is missing, so the shard was never finished");
}

TEST_F(HostileShard, RefusesAttributesOfAnotherCorpus) {
  const std::string before = read_bytes(shard_);
  for (const char* name : {"vocab_size", "pad_id", "complete"}) {
    expect_refusal([&](hid_t file) { replace_attribute(file, name, 9); },
                   std::string("attribute '") + name + "' is 9, expected ");
    write_bytes(shard_, before);
  }
  expect_refusal([](hid_t file) { replace_attribute(file, "language", 1); },
                 "attribute 'language' is missing or not a short text");
}

TEST_F(HostileShard, SaysWhatToDoAboutOtherVersions) {
  expect_refusal([](hid_t file) { replace_attribute(file, "version", 1); },
                 "is a shard of version 1, but this program reads version 2 only: prepare the "
                 "corpus again");
}

TEST_F(HostileShard, RefusesADatasetWithoutDigest) {
  expect_refusal([](hid_t file) { H5Adelete_by_name(file, "tokens", "sha256", H5P_DEFAULT); },
                 "dataset 'tokens' has no attribute 'sha256'");
}

TEST_F(HostileShard, VerifyFindsAFlippedBitInEveryDataset) {
  const std::string before = read_bytes(shard_);
  for (const CheckedDataset* dataset : datasets_.checked()) {
    const DatasetPlace& place = dataset->place;
    const std::uint64_t middle = place.count / 2 * element_bytes(place.type);
    flip_bit(shard_, place.offset + middle);
    const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, "dataset '" + dataset->name + "' is damaged")) << message;
    EXPECT_TRUE(contains(message, shard_.string())) << message;
    write_bytes(shard_, before);
  }
}

// Even where all checksums agree.
TEST_F(HostileShard, ReadingFindsIdsOutsideTheVocabulary) {
  std::string bytes = sound_;
  const std::uint64_t at = datasets_.tokens.place.offset + 2 * documents_[0].ids.size();
  bytes.replace(at, 2, {static_cast<char>(kSampleVocabulary & 0xFF), kSampleVocabulary >> 8});
  write_as_author(bytes);
  const ShardedCorpus corpus(corpus_, Split::kTrain);
  std::vector<std::uint32_t> ids(documents_[0].ids.size());
  corpus.read(0, 0, ids.size(), ids.data());
  EXPECT_EQ(ids, documents_[0].ids);
  const std::string sentence = shard_.string() + ": dataset 'tokens' holds id 400 at " +
                               std::to_string(ids.size()) + ", but the vocabulary has 400 tokens";
  EXPECT_EQ(message_of<CorpusError>([&] { corpus.read(1, 0, 1, ids.data()); }), sentence);
  EXPECT_EQ(message_of<CorpusError>([&] { corpus.verify_shard(0); }), sentence);
}

// Opening is refused without reading the datasets.
TEST_F(HostileShard, OpeningFindsAFlippedBitOutsideTheDatasets) {
  const std::string before = read_bytes(shard_);
  const CorpusIndex index = read_corpus_index(corpus_);
  ASSERT_EQ(index.train[0].payload.size(), 6u);
  std::uint64_t covered = 0;
  for (const ByteRange& range : index.train[0].payload) covered += range.bytes;
  EXPECT_LT(covered, before.size());
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t byte = random() % before.size();
    const bool in_dataset = std::any_of(
        index.train[0].payload.begin(), index.train[0].payload.end(), [&](const ByteRange& range) {
          return byte >= range.first && byte < range.first + range.bytes;
        });
    if (in_dataset) continue;
    flip_bit(shard_, byte, static_cast<int>(random() % 8));
    const std::string message =
        message_of<CorpusError>([this] { ShardedCorpus(corpus_, Split::kTrain); });
    EXPECT_TRUE(contains(message, "damaged outside its datasets")) << message;
    write_bytes(shard_, before);
  }
}

TEST_F(HostileShard, RefusesPayloadThatLeavesTheFile) {
  for (const ByteRange range : {ByteRange{0, UINT64_MAX}, ByteRange{UINT64_MAX, 1}}) {
    CorpusIndex index = read_corpus_index(corpus_);
    index.train[0].payload = {range};
    write_bytes(corpus_ / "index.json", format_corpus_index(index));
    const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, "damaged outside its datasets")) << message;
  }
}

// An index that has more than a little hashed as structure makes opening slow.
TEST_F(HostileShard, RefusesMuchStructure) {
  CorpusIndex index = read_corpus_index(corpus_);
  index.train[0].bytes = std::uint64_t{1} << 40;
  index.train[0].payload.clear();
  write_bytes(corpus_ / "index.json", format_corpus_index(index));
  fs::resize_file(shard_, index.train[0].bytes);
  const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
  EXPECT_TRUE(contains(message, "damaged outside its datasets")) << message;
}

TEST_F(HostileShard, RefusesTruncatedFiles) {
  const std::string before = read_bytes(shard_);
  for (const std::size_t bytes :
       {before.size() - 1, before.size() / 2, std::size_t{100}, std::size_t{1}, std::size_t{0}}) {
    write_bytes(shard_, before.substr(0, bytes));
    std::string message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, shard_.string())) << message;
    adapt_index();
    message = message_of<CorpusError>([this] { open_and_verify(); });
    EXPECT_TRUE(contains(message, shard_.string())) << message;
  }
}

TEST_F(HostileShard, RefusesWhatIsNoHdf5File) {
  write_bytes(shard_, "This is text, not a shard.\n");
  adapt_index();
  const std::string message = message_of<CorpusError>([this] { open_and_verify(); });
  EXPECT_TRUE(contains(message, shard_.string() + ": is not an HDF5 file")) << message;
}

TEST_F(HostileShard, RefusesWhatIsNoFile) {
  fs::remove(shard_);
  EXPECT_EQ(message_of<CorpusError>([this] { open_and_verify(); }),
            shard_.string() + ": the file is missing");
  fs::create_symlink("nowhere", shard_);
  EXPECT_EQ(message_of<CorpusError>([this] { open_and_verify(); }),
            shard_.string() + ": the file is missing");
  fs::remove(shard_);
  fs::create_directory(shard_);
  EXPECT_EQ(message_of<CorpusError>([this] { open_and_verify(); }),
            shard_.string() + ": is not a regular file");
  fs::remove(shard_);
  ASSERT_EQ(::mkfifo(shard_.c_str(), 0600), 0);
  EXPECT_EQ(message_of<CorpusError>([this] { open_and_verify(); }),
            shard_.string() + ": is not a regular file");
}

TEST_F(HostileShard, RefusesAFifoEvenWithoutIndex) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(Shard(fifo, identity()), CorpusError);
}

// Nothing that a file declares is allocated before it is refused.
TEST_F(HostileShard, RefusingTakesLittleMemory) {
  const auto peak_kilobytes = [] {
    struct rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kilobytes();
  for (const char* name : {"tokens", "word_start", "doc_hash", "doc_offsets", "block_crc32c"}) {
    edit([&](hid_t file) {
      const bool bits = std::string_view(name) == "word_start";
      replace(file, name, bits ? H5T_STD_U8LE : H5T_STD_U64LE, {hsize_t{1} << 40});
      replace_attribute(file, "n_tokens", std::uint64_t{1} << 40);
      replace_attribute(file, "n_docs", std::uint64_t{1} << 40);
    });
    EXPECT_THROW(open_and_verify(), CorpusError);
    write_bytes(shard_, sound_);
  }
  EXPECT_LT(peak_kilobytes() - before, 64 * 1024);
}

}  // namespace
}  // namespace tupelo::hostile_shard_test

#include <gtest/gtest.h>

#include <stdexcept>

#include "data/import/megatron.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::import_megatron_test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int64_t>;

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then words and pieces.
constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nsat\n天\n地\n";

template <typename Number>
void append(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct Files {
  std::string index, data;
};

// Documents of sequences of ids, as Megatron writes them.
template <typename Id>
Files files_of(const std::vector<std::vector<Ids>>& documents, std::uint8_t code) {
  std::string lengths, places, boundaries, data;
  std::uint64_t sequences = 0;
  append(boundaries, std::uint64_t{0});
  for (const std::vector<Ids>& document : documents) {
    for (const Ids& sequence : document) {
      append(lengths, static_cast<std::int32_t>(sequence.size()));
      append(places, static_cast<std::int64_t>(data.size()));
      for (const std::int64_t id : sequence) append(data, static_cast<Id>(id));
      ++sequences;
    }
    append(boundaries, sequences);
  }
  std::string index("MMIDIDX\0\0", 9);
  append(index, std::uint64_t{1});
  append(index, code);
  append(index, sequences);
  append(index, static_cast<std::uint64_t>(documents.size() + 1));
  return {index + lengths + places + boundaries, data};
}

class ImportMegatron : public testing::Test {
 protected:
  ImportMegatron() { write_bytes(folder_ / "vocab.txt", kVocabulary); }

  void write(const Files& files) {
    write_bytes(folder_ / "d.idx", files.index);
    write_bytes(folder_ / "d.bin", files.data);
  }
  MegatronImport options() const {
    MegatronImport options;
    options.prefixes = {folder_ / "d"};
    options.tokenizer = folder_ / "vocab.txt";
    options.output = folder_ / "c";
    options.held_out = 0;
    options.force = true;
    return options;
  }
  std::string refusal() const {
    const std::string message = message_of<CorpusError>([&] { import_megatron(options()); });
    EXPECT_FALSE(fs::exists(folder_ / "c"));
    return message;
  }

  const std::vector<std::vector<Ids>> documents_ = {
      {{5, 6, 7, 8, 3}}, {{9, 10}, {1, 7, 6}}, {{3}, {}}, {{2, 8, 4, 9}}};
  TemporaryFolder folder_;
};

TEST_F(ImportMegatron, TakesTheTokensOfAnyWidth) {
  const auto expect = [&](const Files& files) {
    write(files);
    const CorpusIndex index = import_megatron(options());
    const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
    ASSERT_EQ(corpus.documents(), 3u);
    EXPECT_EQ(index.empty_documents, 1u);
    const std::vector<std::vector<std::uint32_t>> ids = {{5, 6, 7, 8}, {9, 10, 1, 7, 6}, {8, 9}};
    const std::vector<std::vector<std::uint8_t>> starts = {{1, 1, 0, 1}, {1, 1, 1, 0, 1}, {1, 1}};
    for (std::uint64_t d = 0; d < 3; ++d) {
      std::vector<std::uint32_t> read(ids[d].size());
      std::vector<std::uint8_t> words(ids[d].size());
      ASSERT_EQ(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d], read.size());
      corpus.read(d, 0, read.size(), read.data());
      corpus.read_word_starts(d, 0, words.size(), words.data());
      EXPECT_EQ(read, ids[d]);
      EXPECT_EQ(words, starts[d]);
    }
  };
  expect(files_of<std::uint16_t>(documents_, 8));
  expect(files_of<std::int16_t>(documents_, 3));
  expect(files_of<std::int32_t>(documents_, 4));
  expect(files_of<std::int64_t>(documents_, 5));
}

TEST_F(ImportMegatron, PutsSeveralFilesTogetherAndHoldsOutByText) {
  write(files_of<std::uint16_t>(documents_, 8));
  MegatronImport twice = options();
  fs::copy_file(folder_ / "d.idx", folder_ / "e.idx");
  fs::copy_file(folder_ / "d.bin", folder_ / "e.bin");
  twice.prefixes = {folder_ / "d.idx", folder_ / "e.bin"};
  const CorpusIndex index = import_megatron(twice);
  EXPECT_EQ(index.sources.size(), 2u);
  const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
  ASSERT_EQ(corpus.documents(), 6u);
  EXPECT_EQ(corpus.hash(0), corpus.hash(3));
  EXPECT_NE(corpus.hash(0), corpus.hash(1));
  EXPECT_EQ(corpus.source(5), 1u);
}

TEST_F(ImportMegatron, RefusesWhatDoesNotFit) {
  const Files good = files_of<std::uint16_t>(documents_, 8);
  const auto expect = [&](const Files& files, const std::string& part) {
    write(files);
    const std::string message = refusal();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const auto changed = [&](std::uint64_t at, char value) {
    Files files = good;
    files.index[at] = value;
    return files;
  };
  expect(changed(0, 'X'), "MMIDIDX");
  expect(changed(9, 2), "version");
  expect(changed(17, 7), "type 7");
  expect(changed(18, 100), "not as many as");
  expect(changed(25, 100), "not as many as");  // 2^62 sequences
  expect(changed(26, 100), "not as many as");
  expect(changed(34, 127), "outside");         // length of the first sequence
  expect(changed(37, char(0x80)), "outside");  // a negative one
  expect({good.index.substr(0, 20), good.data}, "MMIDIDX");
  expect({good.index.substr(0, good.index.size() - 1), good.data}, "not as many as");
  expect({good.index, good.data.substr(2)}, "outside");
  expect({good.index + "x", good.data}, "not as many as");
  expect({good.index, good.data + "xy"}, "end at " + std::to_string(good.data.size()));
  Files order = good;
  std::swap(order.index[order.index.size() - 16], order.index[order.index.size() - 24]);
  expect(order, "ends before it begins");
  expect(files_of<std::int32_t>({{{5, -1}}}, 4), "token id -1");
  expect(files_of<std::int32_t>({{{5, 11}}}, 4), "token id 11");
  expect(files_of<std::int32_t>({{{3, 2}}}, 4), "nothing to train on");
  EXPECT_THROW(import_megatron(MegatronImport{}), std::invalid_argument);
  MegatronImport repeated = options();
  repeated.prefixes = {folder_ / "d.idx", folder_ / "d.bin"};
  EXPECT_THROW(import_megatron(repeated), std::invalid_argument);
}

TEST_F(ImportMegatron, SurvivesEveryDamagedByteOfAnIndex) {
  const Files good = files_of<std::uint16_t>(documents_, 8);
  for (std::uint64_t at = 0; at < good.index.size(); ++at) {
    Files files = good;
    files.index[at] = static_cast<char>(files.index[at] ^ 0x81);
    write(files);
    try {
      import_megatron(options());
    } catch (const CorpusError& error) {
      EXPECT_NE(std::string(error.what()).find("d."), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tupelo::import_megatron_test

// Corpora of NVIDIA's recipes between h5py, which they are made and read with, and us.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "data/export/nvidia.h"
#include "data/import/nvidia.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/load_tokenizer.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

std::string output_of_h5py(const std::string& action, const fs::path& folder) {
  const std::string command = std::string(TUPELO_PYTHON) + " " + TUPELO_TEST_DATA +
                              "/nvidia_with_h5py.py " + action + " " + folder.string();
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    output.append(buffer.data(), got);
  }
  return output;
}

// Documents of a split, a line each; `before` and `behind` stand around each.
std::string lines_of(const fs::path& folder, Split split, const std::string& before = "",
                     const std::string& behind = "") {
  const ShardedCorpus corpus(folder, split);
  std::ostringstream lines;
  for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
    std::vector<std::uint32_t> ids(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d]);
    corpus.read(d, 0, ids.size(), ids.data());
    lines << before;
    for (std::size_t i = 0; i < ids.size(); ++i) lines << (i > 0 ? " " : "") << ids[i];
    lines << behind << "\n";
  }
  return lines.str();
}

class NvidiaOracle : public testing::Test {
 protected:
  NvidiaOracle() {
    std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (std::uint32_t id = 5; id < kSampleVocabulary; ++id) {
      text += (id < 10 ? "[unused" : "w") + std::to_string(id) + (id < 10 ? "]\n" : "\n");
    }
    write_bytes(folder_ / "vocab.txt", text);
  }

  TemporaryFolder folder_;
};

TEST_F(NvidiaOracle, ReadsWhatH5pyWrites) {
  fs::create_directory(folder_ / "in");
  const std::string documents = output_of_h5py("write", folder_ / "in");
  ASSERT_GT(documents.size(), 10000u);
  NvidiaImport import;
  import.tokenizer = folder_ / "vocab.txt";
  import.output = folder_ / "c";
  import.held_out = 0;
  import.force = true;
  for (const char* name : {"gzip", "shuffled", "plain", "latest", "varying"}) {
    import.inputs = {folder_ / "in" / (std::string(name) + ".hdf5")};
    const NvidiaImportReport report = import_nvidia(import);
    EXPECT_EQ(report.rows, 2100u);
    EXPECT_EQ(report.duplicates, 1400u);
    EXPECT_EQ(lines_of(folder_ / "c", Split::kTrain), documents) << name;
  }
  import.inputs = {folder_ / "in" / "lzf.h5"};
  EXPECT_NE(message_of<CorpusError>([&] { import_nvidia(import); }).find("filter 32000 (lzf)"),
            std::string::npos);
  // Of a newer library; what ours cannot open is told in one sentence.
  import.inputs = {folder_ / "in" / "latest-gzip.h5"};
  const std::string message = message_of<CorpusError>([&] { import_nvidia(import); });
  EXPECT_NE(message.find("latest-gzip.h5: dataset 'input_ids' cannot be read by HDF5 1.10"),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_F(NvidiaOracle, WritesWhatH5pyReads) {
  const auto tokenizer = load_tokenizer(folder_ / "vocab.txt", {});
  CorpusInfo info = sample_info();
  info.tokenizer_fingerprint = tokenizer->fingerprint();
  write_sample_corpus(folder_ / "c", sample_documents(3, 500, 126), 0.1, 10000, info);
  store_tokenizer(folder_ / "c" / kTokenizerFolder, *tokenizer);
  NvidiaExport options;
  options.corpus = folder_ / "c";
  options.output = folder_ / "out";
  options.rows.sequence_length = 128;
  options.rows.packing = Packing::kDocument;
  options.max_predictions = 20;
  options.rows_per_file = 200;
  export_nvidia(options);
  EXPECT_EQ(output_of_h5py("read", folder_ / "out"),
            lines_of(folder_ / "c", Split::kHeldOut, "2 ", " 3") +
                lines_of(folder_ / "c", Split::kTrain, "2 ", " 3"));
}

}  // namespace
}  // namespace tupelo

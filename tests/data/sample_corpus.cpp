#include "tests/data/sample_corpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include "data/corpus_files.h"
#include "data/corpus_writer.h"

namespace tupelo {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "tupelo-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

CorpusInfo sample_info(std::uint32_t vocab_size) {
  CorpusInfo info;
  info.language = "zh";
  info.tokenizer_kind = "wordpiece";
  info.tokenizer_fingerprint = std::string(64, 'f');
  info.vocab_size = vocab_size;
  info.special = {.pad = 0, .unk = 1, .cls = 2, .sep = 3, .mask = 4};
  for (std::uint32_t id = 0; id < 10; ++id) info.reserved_ids.push_back(id);
  return info;
}

std::vector<SampleDocument> sample_documents(std::uint64_t seed, std::size_t count,
                                             std::size_t longest, std::uint32_t vocab_size) {
  std::mt19937_64 random(seed);
  std::vector<SampleDocument> documents(count);
  for (std::size_t d = 0; d < count; ++d) {
    const std::size_t length = 1 + random() % longest;
    std::size_t word_ends = 0;
    for (std::size_t i = 0; i < length; ++i) {
      documents[d].ids.push_back(static_cast<std::uint32_t>(10 + random() % (vocab_size - 10)));
      documents[d].word_start.push_back(i == word_ends ? 1 : 0);
      if (i == word_ends) word_ends += 1 + random() % 4;
    }
    documents[d].source = d % 3;
    documents[d].hash = random();
  }
  return documents;
}

CorpusIndex write_sample_corpus(const fs::path& folder,
                                const std::vector<SampleDocument>& documents, double held_out,
                                std::uint64_t shard_tokens, const CorpusInfo& info) {
  fs::create_directory(folder);
  CorpusWriter writer(folder, info, held_out, shard_tokens);
  for (const SampleDocument& document : documents) {
    writer.add(document.ids, document.word_start, document.source, document.hash,
               document.sent_start);
  }
  const CorpusIndex index = writer.finish();
  write_corpus_file(folder / "index.json", format_corpus_index(index));
  return index;
}

std::string read_bytes(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("no file " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + file.string());
}

void flip_bit(const fs::path& file, std::uint64_t byte, int bit) {
  std::string bytes = read_bytes(file);
  bytes.at(byte) = static_cast<char>(bytes.at(byte) ^ (1 << bit));
  write_bytes(file, bytes);
}

std::vector<std::pair<std::string, std::string>> tree_of(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files.emplace_back(fs::relative(entry.path(), folder).string(), read_bytes(entry.path()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tupelo

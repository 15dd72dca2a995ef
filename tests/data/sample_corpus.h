// Folders and corpora for tests: made-up documents, written through the room's own writer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/corpus.h"
#include "data/corpus_index.h"

namespace tupelo {

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct SampleDocument {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> word_start;
  std::uint64_t source = 0, hash = 0;
  std::vector<std::uint8_t> sent_start;  // of a corpus with sentence rules
};

inline constexpr std::uint32_t kSampleVocabulary = 400;

// Ids 0..4 are the special tokens, 5..9 unused ones.
CorpusInfo sample_info(std::uint32_t vocab_size = kSampleVocabulary);

// Documents of 1 to `longest` ordinary tokens, words of one to four; the same for the same seed.
std::vector<SampleDocument> sample_documents(std::uint64_t seed, std::size_t count,
                                             std::size_t longest,
                                             std::uint32_t vocab_size = kSampleVocabulary);

// Writes a whole corpus into the new folder and returns its index.
CorpusIndex write_sample_corpus(const std::filesystem::path& folder,
                                const std::vector<SampleDocument>& documents, double held_out = 0.1,
                                std::uint64_t shard_tokens = 2000,
                                const CorpusInfo& info = sample_info());

std::string read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::string& bytes);
// Changes one bit.
void flip_bit(const std::filesystem::path& file, std::uint64_t byte, int bit = 0);
// All files below a folder: relative path and content.
std::vector<std::pair<std::string, std::string>> tree_of(const std::filesystem::path& folder);

// What the exception of this type said; fails the test when none or another is thrown.
template <typename Exception, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace tupelo

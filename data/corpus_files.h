// Writing the files of a corpus so that they survive a power cut.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tupelo {

// A new file, written piece by piece. Throws std::system_error that names it.
class NewCorpusFile {
 public:
  explicit NewCorpusFile(const std::filesystem::path& file);
  ~NewCorpusFile();
  NewCorpusFile(const NewCorpusFile&) = delete;

  void append(std::span<const std::byte> bytes);
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// Writes a new file and syncs it. Throws std::system_error that names it.
void write_corpus_file(const std::filesystem::path& file, std::span<const std::byte> bytes);
void write_corpus_file(const std::filesystem::path& file, const std::string& text);

// Makes the names inside a folder durable. Throws std::system_error.
void sync_corpus_folder(const std::filesystem::path& folder);

// Content of a small file. Throws CorpusError when it is missing, not a regular file or larger than
// `max_bytes`, std::system_error when the system refuses.
std::string read_corpus_text(const std::filesystem::path& file, std::size_t max_bytes);

// A corpus in the making: a hidden sibling of the place where it is to stand. Or another folder,
// which then holds a file named `marker`, as a corpus holds index.json.
class UnfinishedCorpus {
 public:
  // Creates missing parents of `output`, removes what earlier, killed runs left beside it, and
  // makes the folder. An existing `output` is refused with std::invalid_argument, unless `force`
  // and it is such a folder or an empty one. Throws std::system_error.
  UnfinishedCorpus(const std::filesystem::path& output, bool force,
                   const std::string& marker = "index.json");
  // Removes the folder, unless publish() has moved it.
  ~UnfinishedCorpus();
  UnfinishedCorpus(const UnfinishedCorpus&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  // Syncs all folders and moves the corpus to `output`, in one step; a corpus that stood there is
  // removed afterwards. Throws std::system_error.
  void publish();

 private:
  std::filesystem::path output_, folder_;
  bool force_;
  int lock_ = -1;  // of the folder, held for life: tells it from one that a killed run left
};

}  // namespace tupelo

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

// The same, so that the file exists with all of its bytes or not at all; one of its name is
// replaced. Throws std::system_error.
void replace_corpus_file(const std::filesystem::path& file, std::span<const std::byte> bytes);
void replace_corpus_file(const std::filesystem::path& file, const std::string& text);

// Makes the names inside a folder durable. Throws std::system_error.
void sync_corpus_folder(const std::filesystem::path& folder);

// Content of a small file. Throws CorpusError when it is missing, not a regular file or larger than
// `max_bytes`, std::system_error when the system refuses.
std::string read_corpus_text(const std::filesystem::path& file, std::size_t max_bytes);

// Where a corpus is made that is to stand at `output`, and what is needed on the way. A job that a
// killed run has begun is found again by its name (letters and digits).
struct WorkPlace {
  std::filesystem::path root;  // a hidden sibling of `output`
  std::filesystem::path corpus() const { return root / "corpus"; }
  std::filesystem::path scratch() const { return root / "scratch"; }
};
WorkPlace work_place(const std::filesystem::path& output, const std::string& job);

// A corpus in the making. Or another folder, which then holds a file named `marker`, as a corpus
// holds index.json.
class UnfinishedCorpus {
 public:
  // Creates missing parents of `output`, removes what earlier, killed runs left beside it, and
  // makes the work place. An existing `output` is refused with std::invalid_argument, unless
  // `force` and it is such a folder or an empty one. Throws std::system_error.
  UnfinishedCorpus(const std::filesystem::path& output, bool force,
                   const std::string& marker = "index.json");
  // The same at `place`, work_place() of `output`, where what a killed run left stays. Throws
  // std::invalid_argument when another process is at work there.
  UnfinishedCorpus(const WorkPlace& place, const std::filesystem::path& output, bool force);
  // Removes the work place.
  ~UnfinishedCorpus();
  UnfinishedCorpus(const UnfinishedCorpus&) = delete;

  std::filesystem::path folder() const { return place_.corpus(); }
  std::filesystem::path scratch() const { return place_.scratch(); }

  // Syncs all folders of the corpus and moves it to `output`, in one step; a corpus that stood
  // there is removed afterwards. Throws std::system_error.
  void publish();

 private:
  void prepare_parent(const std::string& marker) const;

  std::filesystem::path output_;
  bool force_;
  WorkPlace place_;
  int lock_ = -1;  // of the root, held for life: tells it from one that a killed run left
};

}  // namespace tupelo

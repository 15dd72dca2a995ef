#include "data/import/nvidia.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "data/cleaning/duplicate_finder.h"
#include "data/errors.h"
#include "data/import/nvidia_rows.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDuplicateMemoryBytes = std::size_t{192} << 20;
constexpr std::uint64_t kRowsBetweenTelling = 1024;

bool is_hdf5_name(const fs::path& file) {
  return file.extension() == ".hdf5" || file.extension() == ".h5";
}

// The documents of a row.
std::vector<std::vector<std::uint32_t>> documents_of(NvidiaRow& row) {
  if (row.random_next) return std::move(row.segments);
  std::vector<std::uint32_t> whole;
  for (const auto& segment : row.segments)
    whole.insert(whole.end(), segment.begin(), segment.end());
  return {std::move(whole)};
}

class Import {
 public:
  explicit Import(const NvidiaImport& options)
      : options_(options), files_(nvidia_files(options.inputs)), corpus_(options) {
    for (const fs::path& file : files_) report_.rows += open(file).rows();
  }

  NvidiaImportReport run() {
    std::optional<DuplicateFinder> finder;
    if (!options_.keep_duplicates) {
      finder.emplace(corpus_.scratch(), kDuplicateMemoryBytes);
      find_duplicates(*finder);
    }
    write(finder);
    finder.reset();
    report_.index = corpus_.publish();
    return std::move(report_);
  }

 private:
  NvidiaRows open(const fs::path& file) const { return NvidiaRows(file, corpus_.tokenizer()); }

  // Calls sink(document number, ids) for each document of a file that can be restored.
  template <typename Sink>
  std::uint64_t for_each_document(NvidiaRows& rows, std::uint64_t& number, Sink sink) {
    std::uint64_t unrestored = 0;
    NvidiaRow row;
    for (std::uint64_t r = 0; r < rows.rows(); ++r) {
      rows.read(r, row);
      tell();
      if (!row.restored) {
        ++unrestored;
        continue;
      }
      for (const auto& document : documents_of(row)) sink(number++, document);
    }
    return unrestored;
  }

  void find_duplicates(DuplicateFinder& finder) {
    std::uint64_t number = 0;
    ContentDigest digest;
    for (const fs::path& file : files_) {
      NvidiaRows rows = open(file);
      for_each_document(rows, number, [&](std::uint64_t n, const std::vector<std::uint32_t>& ids) {
        const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                                     ids.size() * sizeof(ids[0]));
        finder.add(fingerprint_of(bytes, n, digest));
      });
    }
    finder.finish();
  }

  void write(const std::optional<DuplicateFinder>& finder) {
    std::optional<DuplicateFinder::Positions> duplicates;
    std::optional<std::uint64_t> duplicate;  // the next one
    if (finder) duplicate = duplicates.emplace(*finder).next();
    std::uint64_t number = 0;
    for (const fs::path& file : files_) {
      NvidiaRows rows = open(file);
      const std::uint64_t unrestored = for_each_document(
          rows, number, [&](std::uint64_t n, const std::vector<std::uint32_t>& ids) {
            if (duplicate == n) {
              ++report_.duplicates;
              duplicate = duplicates->next();
              return;
            }
            corpus_.add_sequence(ids);
            corpus_.end_document();
          });
      report_.unrestored_rows += unrestored;
      if (report_.unrestored_rows > report_.rows / 100) refuse_unrestored(file);
      corpus_.end_source({file.string(), rows.bytes()});
    }
  }

  [[noreturn]] void refuse_unrestored(const fs::path& file) const {
    throw CorpusError(file.string() + ": more than one row in a hundred has a " +
                      corpus_.tokenizer().token(corpus_.tokenizer().special_tokens().mask) +
                      " for which 'masked_lm_ids' records no token");
  }

  void tell() {
    if (++done_rows_ % kRowsBetweenTelling != 0 || !options_.progress) return;
    options_.progress(done_rows_, options_.keep_duplicates ? report_.rows : 2 * report_.rows);
  }

  const NvidiaImport& options_;
  const std::vector<fs::path> files_;
  ImportedCorpus corpus_;
  NvidiaImportReport report_;
  std::uint64_t done_rows_ = 0;
};

}  // namespace

std::vector<fs::path> nvidia_files(const std::vector<fs::path>& inputs) {
  std::vector<fs::path> files;
  for (const fs::path& input : inputs) {
    if (!fs::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    std::vector<fs::path> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(input)) {
      if (!is_hdf5_name(entry.path())) continue;
      std::error_code ignored;
      if (!entry.is_regular_file(ignored)) {
        throw CorpusError(entry.path().string() + ": is not a regular file");
      }
      inside.push_back(entry.path());
    }
    if (inside.empty()) {
      throw std::invalid_argument("folder " + input.string() + " holds no .hdf5 or .h5 file");
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) throw std::invalid_argument("no HDF5 files are given to import");
  return files;
}

NvidiaImportReport import_nvidia(const NvidiaImport& options) { return Import(options).run(); }

}  // namespace tupelo

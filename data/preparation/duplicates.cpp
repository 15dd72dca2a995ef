#include "data/preparation/duplicates.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "data/cleaning/duplicate_finder.h"
#include "data/preparation/document_parts.h"
#include "data/preparation/patience.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

// Fingerprints meet only others of their bucket.
constexpr std::size_t kBuckets = 16;

std::size_t bucket_of(const Fingerprint& fingerprint) {
  return static_cast<std::size_t>(fingerprint.high >> 60);
}

fs::path fingerprint_folder(const PreparationJob& job) { return job.scratch() / "fingerprints"; }
fs::path duplicate_folder(const PreparationJob& job) { return job.scratch() / "duplicates"; }
fs::path bucket_file(const PreparationJob& job, std::size_t bucket) {
  return duplicate_folder(job) / ("bucket-" + std::to_string(bucket));
}
// Which documents each part holds; written last, so that it says that all buckets are there.
fs::path document_file(const PreparationJob& job) { return duplicate_folder(job) / "documents"; }

// The fingerprints of a part of the documents. Sections: their number of documents, the buckets.
class FingerprintPart {
 public:
  std::uint64_t add(std::uint64_t documents, std::vector<Fingerprint>&& fingerprints) {
    documents_ += documents;
    for (const Fingerprint& one : fingerprints) buckets_[bucket_of(one)].push_back(one);
    return 0;
  }
  void finish(const DocumentReader&) {}
  void write(const fs::path& file) const {
    const std::vector<std::uint64_t> documents = {documents_};
    std::vector<std::span<const std::byte>> sections = {bytes_of(documents)};
    for (const auto& bucket : buckets_) sections.push_back(bytes_of(bucket));
    write_sections(file, "fingerprints", sections);
  }

 private:
  std::uint64_t documents_ = 0;
  std::array<std::vector<Fingerprint>, kBuckets> buckets_;
};

void make_fingerprints(PreparationJob& job, PartFolder& folder) {
  job.begin_phase("clean", job.input_bytes(), bytes_done(job, folder));
  for (const std::size_t group : groups_to_do(job, folder)) {
    make_parts<FingerprintPart>(
        job, folder, group, {}, [] { return FingerprintPart(); },
        [&](DocumentTexts::Batch&& batch) { return job.texts().fingerprints(std::move(batch)); });
  }
}

std::uint64_t documents_of(const SectionFile& part) {
  const auto documents = part.values<std::uint64_t>(0);
  if (documents.size() != 1) part.refuse();
  return documents.front();
}

void compare_bucket(PreparationJob& job, const PartFolder& folder, std::size_t bucket) {
  const fs::path scratch = duplicate_folder(job) / ("sorting-" + std::to_string(bucket));
  fs::remove_all(scratch);
  fs::create_directory(scratch);
  DuplicateFinder finder(scratch, job.options().cleaning.sort_bytes);
  std::uint64_t first = 0;
  for (const PartKey& key : folder.all()) {
    const SectionFile part(folder.file(key));
    const auto fingerprints = part.values<Fingerprint>(1 + bucket);
    for (Fingerprint fingerprint : fingerprints) {
      fingerprint.position += position_of(first, 0);
      finder.add(fingerprint);
    }
    first += documents_of(part);
    job.advance(fingerprints.size_bytes());
  }
  finder.finish();
  std::vector<std::uint64_t> duplicates;
  DuplicateFinder::Positions positions(finder);
  while (const auto position = positions.next()) duplicates.push_back(*position);
  write_sections(bucket_file(job, bucket), "duplicates", {bytes_of(duplicates)});
  fs::remove_all(scratch);
}

std::uint64_t fingerprint_bytes(const PartFolder& folder) {
  std::uint64_t bytes = 0;
  for (const PartKey& key : folder.all()) bytes += fs::file_size(folder.file(key));
  return bytes;
}

void compare_buckets(PreparationJob& job, const PartFolder& folder) {
  job.begin_phase("compare", fingerprint_bytes(folder), 0);
  for (const std::size_t bucket : job.share(std::vector<std::uint64_t>(kBuckets, 1))) {
    if (!fs::exists(bucket_file(job, bucket))) compare_bucket(job, folder, bucket);
  }
}

void write_documents(const PreparationJob& job, const PartFolder& folder) {
  std::vector<std::uint64_t> table;
  std::uint64_t first = 0;
  for (const PartKey& key : folder.all()) {
    table.insert(table.end(), {key.group, key.part, first});
    first += documents_of(SectionFile(folder.file(key)));
  }
  const auto groups = static_cast<std::uint64_t>(job.groups().size());
  table.insert(table.end(), {groups, 0, first});
  write_sections(document_file(job), "documents", {bytes_of(table)});
}

}  // namespace

void find_duplicates(PreparationJob& job) {
  job.together([&] {
    if (job.is_first()) fs::create_directory(duplicate_folder(job));
  });
  if (!job.all_agree(fs::exists(document_file(job)))) {
    PartFolder folder(fingerprint_folder(job), job.groups().size());
    job.together([&] {
      folder.look();
      make_fingerprints(job, folder);
    });
    job.together([&] {
      folder.wait_until_complete();
      compare_buckets(job, folder);
    });
    job.together([&] {
      if (job.is_first()) write_documents(job, folder);
    });
  }
  job.together([&] {
    if (job.is_first()) fs::remove_all(fingerprint_folder(job));
  });
}

DuplicateTable::DuplicateTable(const PreparationJob& job) {
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const fs::path file = bucket_file(job, bucket);
    be_patient([&] { return fs::exists(file); }, [&] { return file; });
    files_.push_back(std::make_unique<SectionFile>(file));
    files_.back()->section(0);
  }
  const fs::path documents = document_file(job);
  be_patient([&] { return fs::exists(documents); }, [&] { return documents; });
  const SectionFile table(documents);
  const auto values = table.values<std::uint64_t>(0);
  if (values.size() % 3 != 0) table.refuse();
  for (std::size_t i = 0; i < values.size(); i += 3) {
    first_documents_[{values[i], values[i + 1]}] = values[i + 2];
  }
}

std::vector<std::uint64_t> DuplicateTable::positions(const PartKey& part) const {
  const auto entry = first_documents_.find(part);
  const std::uint64_t begin = position_of(entry->second, 0);
  const std::uint64_t end = position_of(std::next(entry)->second, 0);
  std::vector<std::uint64_t> all;
  for (const auto& file : files_) {
    const auto bytes = file->unchecked_section(0);
    const std::span<const std::uint64_t> values(
        reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / sizeof(std::uint64_t));
    const auto from = std::lower_bound(values.begin(), values.end(), begin);
    all.insert(all.end(), from, std::lower_bound(from, values.end(), end));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (std::uint64_t& position : all) position -= begin;
  return all;
}

}  // namespace tupelo

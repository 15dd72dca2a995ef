#include "data/archive/corpus_archive.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "data/archive/archive_index.h"
#include "data/archive/zstd_file.h"
#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/corpus_index.h"
#include "data/input/byte_source.h"
#include "data/regular_file.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

void check_options(const ArchiveOptions& options) {
  if (options.level < 1 || options.level > 19) {
    throw std::invalid_argument("the level of compression must be 1 to 19, not " +
                                std::to_string(options.level));
  }
  if (options.threads < 1 || options.threads > 1024) {
    throw std::invalid_argument("threads must be 1 to 1024, not " +
                                std::to_string(options.threads));
  }
}

fs::path compressed_name(const std::string& name) { return name + ".zst"; }

// Runs work(i) for every i < count on some threads; the error of the smallest i that had one is
// thrown.
void for_each_file(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  std::atomic<bool> failed = false;
  const auto run = [&] {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < std::min<int>(threads, static_cast<int>(count)); ++t) {
      helpers.emplace_back(run);
    }
    run();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Tells how many bytes of all are done.
class Progress {
 public:
  Progress(const ArchiveOptions& options, std::uint64_t total) : options_(options), total_(total) {}
  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
  }

 private:
  const ArchiveOptions& options_;
  const std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

// Reads a compressed file to its end. `sink` may be empty. Throws CorpusError unless it holds what
// `file` says.
void decompress(const fs::path& path, const ArchivedFile& file,
                const std::function<void(std::span<const std::byte>)>& sink) {
  const auto source = open_byte_source(path);
  ContentDigest digest;
  std::vector<char> block(kBlockBytes);
  std::uint64_t bytes = 0;
  while (const std::size_t got = source->read(block.data(), block.size())) {
    bytes += got;
    if (bytes > file.bytes) break;
    digest.update(block.data(), got);
    if (sink) sink(std::as_bytes(std::span(block).first(got)));
  }
  if (bytes != file.bytes || digest.finish_hex() != file.sha256) {
    throw CorpusError(path.string() + ": what it holds is not the " + std::to_string(file.bytes) +
                      " bytes with the SHA-256 that are recorded");
  }
}

// Every regular file of a corpus, by name. Digests are those that its index records.
std::vector<ArchivedFile> files_of(const fs::path& corpus, const CorpusIndex& index) {
  std::map<std::string, std::string> recorded;
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    for (const ShardSummary& shard : index.shards(split)) recorded[shard.file] = shard.sha256;
  }
  std::vector<ArchivedFile> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(corpus)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    if (!entry.is_regular_file() || entry.is_symlink()) {
      throw CorpusError(entry.path().string() + ": is not a regular file, so it is not archived");
    }
    const std::string name = entry.path().lexically_relative(corpus).string();
    files.push_back({.name = name, .bytes = entry.file_size(), .sha256 = {}});
    const auto known = recorded.find(name);
    if (known != recorded.end()) files.back().sha256 = known->second;
  }
  std::sort(files.begin(), files.end(),
            [](const ArchivedFile& a, const ArchivedFile& b) { return a.name < b.name; });
  return files;
}

std::uint64_t bytes_of(const std::vector<ArchivedFile>& files) {
  std::uint64_t bytes = 0;
  for (const ArchivedFile& file : files) bytes += file.bytes;
  return bytes;
}

ArchiveReport report_of(const std::vector<ArchivedFile>& files) {
  ArchiveReport report = {.files = files.size(), .bytes = bytes_of(files)};
  for (const ArchivedFile& file : files) report.compressed_bytes += file.compressed_bytes;
  return report;
}

void archive_file(const fs::path& from, const fs::path& to, int level, ArchivedFile& file) {
  const RegularFile content(from);
  const ZstdFile written = write_zstd_file(to, content, level);
  if (!file.sha256.empty() && written.content_sha256 != file.sha256) {
    throw CorpusError(from.string() + ": is damaged: its SHA-256 is not the one in index.json");
  }
  file.sha256 = written.content_sha256;
  file.bytes = content.bytes();
  file.compressed_bytes = written.bytes;
  file.compressed_sha256 = written.sha256;
  decompress(to, file, {});
}

void restore_file(const fs::path& from, const fs::path& to, const ArchivedFile& file) {
  const RegularFile compressed(from);
  if (compressed.bytes() != file.compressed_bytes ||
      sha256_hex_of(compressed) != file.compressed_sha256) {
    throw CorpusError(from.string() +
                      ": is damaged: its size or SHA-256 is not the one in archive.json");
  }
  NewCorpusFile opened(to);
  decompress(from, file, [&](std::span<const std::byte> bytes) { opened.append(bytes); });
  opened.sync();
}

void create_folders(const fs::path& folder, const std::vector<ArchivedFile>& files) {
  for (const ArchivedFile& file : files) {
    std::error_code error;
    const fs::path parent = (folder / file.name).parent_path();
    fs::create_directories(parent, error);
    if (error) throw std::system_error(error, "cannot create " + parent.string());
  }
}

// With one name for each folder: "corpus/" ends in an empty part.
fs::path plain(const fs::path& path) {
  const fs::path whole = fs::weakly_canonical(path);
  return whole.has_filename() ? whole : whole.parent_path();
}

void check_not_inside(const fs::path& output, const fs::path& input) {
  const fs::path inside = plain(output), outside = plain(input);
  const auto [at, rest] =
      std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end());
  if (at == outside.end()) {
    throw std::invalid_argument("output " + output.string() + " is, or lies inside, the input");
  }
}

}  // namespace

ArchiveReport archive_corpus(const fs::path& corpus, const fs::path& archive,
                             const ArchiveOptions& options) {
  check_options(options);
  const CorpusIndex index = read_corpus_index(corpus);
  check_not_inside(archive, corpus);
  std::vector<ArchivedFile> files = files_of(corpus, index);
  UnfinishedCorpus unfinished(archive, options.force, kArchiveIndex);
  create_folders(unfinished.folder(), files);
  Progress progress(options, bytes_of(files));
  for_each_file(files.size(), options.threads, [&](std::size_t i) {
    archive_file(corpus / files[i].name, unfinished.folder() / compressed_name(files[i].name),
                 options.level, files[i]);
    progress.add(files[i].bytes);
  });
  write_corpus_file(unfinished.folder() / kArchiveIndex,
                    format_archive_index({index.info.digest, options.level, files}));
  unfinished.publish();
  return report_of(files);
}

ArchiveReport restore_corpus(const fs::path& archive, const fs::path& corpus,
                             const ArchiveOptions& options) {
  check_options(options);
  const ArchiveIndex index = read_archive_index(archive);
  check_not_inside(corpus, archive);
  UnfinishedCorpus unfinished(corpus, options.force);
  create_folders(unfinished.folder(), index.files);
  Progress progress(options, bytes_of(index.files));
  for_each_file(index.files.size(), options.threads, [&](std::size_t i) {
    const ArchivedFile& file = index.files[i];
    restore_file(archive / compressed_name(file.name), unfinished.folder() / file.name, file);
    progress.add(file.bytes);
  });
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    const ShardedCorpus opens(unfinished.folder(), split);
    if (opens.info().digest != index.corpus_digest) {
      throw CorpusError((archive / kArchiveIndex).string() +
                        ": key 'corpus_digest' is not the digest of the corpus that it holds");
    }
  }
  ShardedCorpus::load_tokenizer(unfinished.folder());
  unfinished.publish();
  return report_of(index.files);
}

}  // namespace tupelo

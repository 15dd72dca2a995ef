// How fast training data come: rows read, masked and laid into batches, and shards read in blocks,
// beside pread of the same bytes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "data/batch_stream.h"
#include "data/corpus_files.h"
#include "data/corpus_index.h"
#include "data/corpus_writer.h"
#include "data/shard.h"

namespace tupelo::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;

// Of this thread on a processor: nothing here waits, and others may be at work beside it.
double now_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A corpus of random tokens in words of one to three and documents of a few hundred, in a folder
// that goes with it.
class RandomCorpus {
 public:
  explicit RandomCorpus(std::uint64_t tokens) {
    std::string name = (fs::temp_directory_path() / "tupelo-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot create " + name);
    }
    root_ = name;
    fs::create_directory(folder());
    CorpusInfo info;
    info.language = "zh";
    info.tokenizer_kind = "wordpiece";
    info.tokenizer_fingerprint = std::string(64, '0');
    info.vocab_size = 21128;
    info.special = {.pad = 0, .unk = 1, .cls = 2, .sep = 3, .mask = 4};
    for (std::uint32_t id = 0; id < 100; ++id) info.reserved_ids.push_back(id);
    CorpusWriter writer(folder(), info, 0, std::uint64_t{1} << 24);
    std::mt19937_64 random(1);
    std::exponential_distribution<double> length(1.0 / 400);
    std::vector<std::uint32_t> ids;
    std::vector<std::uint8_t> starts;
    for (std::uint64_t written = 0; written < tokens; written += ids.size()) {
      ids.resize(1 + static_cast<std::size_t>(length(random)));
      starts.assign(ids.size(), 0);
      for (std::uint32_t& id : ids) id = 100 + static_cast<std::uint32_t>(random() % 21028);
      for (std::size_t at = 0; at < ids.size(); at += 1 + random() % 3) starts[at] = 1;
      writer.add(ids, starts, 0, random(), {});
    }
    write_corpus_file(folder() / "index.json", format_corpus_index(writer.finish()));
  }
  ~RandomCorpus() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  RandomCorpus(const RandomCorpus&) = delete;

  fs::path folder() const { return root_ / "corpus"; }

 private:
  fs::path root_;
};

struct Line {
  std::string what, unit;
  double amount = 0;  // of the unit, in each round
  Samples seconds = {};

  double rate() const { return amount / seconds.min(); }
};

// Rows in random order, as training takes them, in batches on this thread.
class Loader {
 public:
  Loader(const ShardedCorpus& corpus, const Arguments& arguments, Packing packing, Masking masking)
      : corpus_(corpus), rows_(static_cast<std::uint64_t>(arguments.number("--rows"))) {
    options_.packing = packing;
    options_.masking = masking;
    options_.sequence_length = arguments.number("--sequence-length");
    plan_ = std::make_unique<RowPlan>(corpus.document_table(), packing, options_.sequence_length);
  }

  // Tokens of the round.
  double run(std::uint64_t epoch) const {
    const KeyedPermutation order(plan_->rows(), options_.seed, epoch);
    double tokens = 0;
    for (std::uint64_t first = 0; first < rows_; first += kBatch) {
      std::vector<std::uint64_t> rows;
      for (std::uint64_t i = 0; i < kBatch; ++i) rows.push_back(order((first + i) % plan_->rows()));
      const std::vector<std::uint64_t> epochs(rows.size(), epoch);
      tokens += static_cast<double>(make_batch(corpus_, *plan_, options_, rows, epochs).tokens);
    }
    return tokens;
  }

 private:
  static constexpr std::uint64_t kBatch = 32;

  const ShardedCorpus& corpus_;
  std::uint64_t rows_;
  DataOptions options_;
  std::unique_ptr<RowPlan> plan_;
};

// The tokens of the first shard, by Shard::read() or by system calls.
class ShardReads {
 public:
  ShardReads(const fs::path& corpus, const ShardedCorpus& opened)
      : file_(corpus / opened.shards().front().file),
        shard_(file_, shard_identity(opened.info(), Split::kTrain)),
        descriptor_(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw std::system_error(errno, std::generic_category(), "cannot open " + file_.string());
    }
    const auto& payload = opened.shards().front().payload;
    tokens_ = *std::max_element(payload.begin(), payload.end(),
                                [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    token_bytes_ = tokens_.bytes / shard_.tokens();
    bytes_.resize(kBlockBytes);
    ids_.resize(kBlockBytes / token_bytes_);
  }
  ~ShardReads() { ::close(descriptor_); }
  ShardReads(const ShardReads&) = delete;

  double gigabytes() const { return static_cast<double>(tokens_.bytes) / 1e9; }

  double by_shard() {
    const auto start = now_seconds();
    for (std::uint64_t first = 0; first < shard_.tokens(); first += ids_.size()) {
      shard_.read(first, std::min<std::uint64_t>(ids_.size(), shard_.tokens() - first),
                  ids_.data());
      sum_ += ids_.front();
    }
    return now_seconds() - start;
  }

  // `widen`: to the 32-bit ids that Shard::read() gives.
  double by_pread(bool widen) {
    const auto start = now_seconds();
    for (std::uint64_t at = 0; at < tokens_.bytes; at += kBlockBytes) {
      const std::uint64_t count = std::min(kBlockBytes, tokens_.bytes - at);
      const auto read =
          ::pread(descriptor_, bytes_.data(), count, static_cast<off_t>(tokens_.first + at));
      if (read != static_cast<ssize_t>(count)) {
        throw std::system_error(errno, std::generic_category(), "cannot read " + file_.string());
      }
      if (widen && token_bytes_ == 2) {
        const auto* narrow = reinterpret_cast<const std::uint16_t*>(bytes_.data());
        std::copy(narrow, narrow + count / 2, ids_.data());
        sum_ += ids_.front();
      }
      sum_ += static_cast<std::uint64_t>(bytes_.front());
    }
    return now_seconds() - start;
  }

  std::uint64_t sum() const { return sum_; }

 private:
  fs::path file_;
  Shard shard_;
  int descriptor_;
  ByteRange tokens_;
  std::uint64_t token_bytes_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> ids_;
  std::uint64_t sum_ = 0;  // so that nothing is left out
};

void print(const std::vector<Line>& lines, bool json) {
  if (!json) std::printf("%-24s %10s %10s %12s\n", "", "min s", "median s", "rate");
  for (const Line& line : lines) {
    std::printf(json ? "{\"bench\": \"loader\", \"what\": \"%s\", \"min_seconds\": %.6f, "
                       "\"median_seconds\": %.6f, \"rate\": %.3f, \"unit\": \"%s\"}\n"
                     : "%-24s %10.4f %10.4f %12.2f %s\n",
                line.what.c_str(), line.seconds.min(), line.seconds.median(), line.rate(),
                line.unit.c_str());
  }
}

void run(const Arguments& arguments) {
  std::unique_ptr<RandomCorpus> made;
  fs::path folder = arguments.text("--corpus");
  if (folder.empty()) {
    made = std::make_unique<RandomCorpus>(static_cast<std::uint64_t>(arguments.number("--tokens")));
    folder = made->folder();
  }
  const ShardedCorpus corpus(folder, Split::kTrain);
  const std::vector<std::tuple<std::string, Packing, Masking>> kinds = {
      {"full, token", Packing::kFull, Masking::kToken},
      {"full, whole-word", Packing::kFull, Masking::kWholeWord},
      {"full, span", Packing::kFull, Masking::kSpan},
      {"full, ngram", Packing::kFull, Masking::kNgram},
      {"doc, whole-word", Packing::kDocument, Masking::kWholeWord},
      {"packed, whole-word", Packing::kBestFit, Masking::kWholeWord}};
  std::vector<Line> lines;
  std::vector<Loader> loaders;
  for (const auto& [name, packing, masking] : kinds) {
    lines.push_back({name, "Mtok/s"});
    loaders.emplace_back(corpus, arguments, packing, masking);
    loaders.back().run(0);  // into the page cache
  }
  ShardReads reads(folder, corpus);
  const std::vector<std::function<double()>> ways = {[&] { return reads.by_pread(false); },
                                                     [&] { return reads.by_pread(true); },
                                                     [&] { return reads.by_shard(); }};
  std::vector<Line> read_lines = {{"pread", "GB/s", reads.gigabytes()},
                                  {"pread, 32-bit ids", "GB/s", reads.gigabytes()},
                                  {"shard, 32-bit ids", "GB/s", reads.gigabytes()}};
  for (std::int64_t round = 0; round < arguments.number("--rounds"); ++round) {
    for (std::size_t i = 0; i < loaders.size(); ++i) {
      const auto start = now_seconds();
      lines[i].amount = loaders[i].run(1) / 1e6;
      lines[i].seconds.values.push_back(now_seconds() - start);
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t way = (static_cast<std::size_t>(round) + i) % ways.size();
      reads.by_pread(false);  // so that what was done before warms the caches for none of them
      read_lines[way].seconds.values.push_back(ways[way]());
    }
  }
  lines.insert(lines.end(), read_lines.begin(), read_lines.end());
  print(lines, arguments.json());
  if (arguments.json()) return;
  std::printf("shard / pread: %.2f of 32-bit ids\n",
              read_lines[1].seconds.min() / read_lines[2].seconds.min());
  for (std::size_t i = 0; i < loaders.size(); ++i) {
    std::printf("%s / full, token: %.2f\n", lines[i].what.c_str(),
                lines[i].rate() / lines[0].rate());
  }
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("loader", argc, argv,
                                  {{"--corpus", ""},
                                   {"--tokens", "32000000"},
                                   {"--sequence-length", "512"},
                                   {"--rows", "8192"},
                                   {"--rounds", "5"}},
                                  tupelo::bench::run);
}

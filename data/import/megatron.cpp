#include "data/import/megatron.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/errors.h"
#include "data/regular_file.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::uint64_t kHeaderBytes = sizeof(kMagic) + 8 + 1 + 8 + 8;
// Types of ids: Megatron's code, bytes.
const std::map<int, std::uint64_t> kIdBytes = {{3, 2}, {4, 4}, {5, 8}, {8, 2}};

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Numbers one behind the other in a file, read in blocks. Knows no more than that they fit.
template <typename Number>
class StoredNumbers {
 public:
  StoredNumbers(const RegularFile& file, std::uint64_t first_byte, std::uint64_t count)
      : file_(file), first_byte_(first_byte), count_(count) {}

  Number at(std::uint64_t index) {
    if (index < first_ || index - first_ >= block_.size()) load(index);
    return block_[index - first_];
  }

 private:
  static constexpr std::uint64_t kBlock = 1 << 16;

  void load(std::uint64_t index) {
    first_ = index / kBlock * kBlock;
    block_.resize(std::min(kBlock, count_ - first_));
    file_.read(first_byte_ + first_ * sizeof(Number), std::as_writable_bytes(std::span(block_)));
  }

  const RegularFile& file_;
  const std::uint64_t first_byte_, count_;
  std::uint64_t first_ = 0;
  std::vector<Number> block_;
};

fs::path with_extension(const fs::path& prefix, const std::string& extension) {
  const std::string given = prefix.extension().string();
  const fs::path stem =
      given == ".idx" || given == ".bin" ? fs::path(prefix).replace_extension("") : prefix;
  return stem.string() + extension;
}

struct IndexHeader {
  int code;  // of the type of ids
  std::uint64_t sequences, boundaries;
};

[[noreturn]] void refuse_index(const RegularFile& index, const std::string& what) {
  throw CorpusError(index.path().string() + ": " + what);
}

void check_index_size(const RegularFile& index, const IndexHeader& header) {
  const std::uint64_t bytes = index.bytes();
  const bool fits = header.sequences <= bytes / 12 && header.boundaries <= bytes / 8 &&
                    kHeaderBytes + 12 * header.sequences + 8 * header.boundaries == bytes;
  if (fits) return;
  refuse_index(index, "it has " + std::to_string(bytes) + " bytes, not as many as its " +
                          std::to_string(header.sequences) + " sequences and " +
                          std::to_string(header.boundaries) + " document boundaries take");
}

IndexHeader read_index_header(const RegularFile& index) {
  std::array<std::byte, kHeaderBytes> bytes{};
  if (index.bytes() >= kHeaderBytes) index.read(0, bytes);
  if (std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    refuse_index(index, "it does not begin as an index of Megatron (MMIDIDX)");
  }
  const auto version = number_at<std::uint64_t>(bytes, 9);
  if (version != 1) {
    refuse_index(index, "its version is " + std::to_string(version) + ", known is 1");
  }
  const IndexHeader header{number_at<std::uint8_t>(bytes, 17), number_at<std::uint64_t>(bytes, 18),
                           number_at<std::uint64_t>(bytes, 26)};
  if (!kIdBytes.contains(header.code)) {
    refuse_index(index, "its ids are of type " + std::to_string(header.code) +
                            "; known are 3 (int16), 4 (int32), 5 (int64) and 8 (uint16)");
  }
  check_index_size(index, header);
  return header;
}

// One pair of files, its sizes and places checked.
class IndexedDataset {
 public:
  explicit IndexedDataset(const fs::path& prefix)
      : index_(with_extension(prefix, ".idx")),
        data_(with_extension(prefix, ".bin")),
        header_(read_index_header(index_)),
        lengths_(index_, kHeaderBytes, header_.sequences),
        places_(index_, kHeaderBytes + 4 * header_.sequences, header_.sequences),
        boundaries_(index_, kHeaderBytes + 12 * header_.sequences, header_.boundaries) {
    check_sequences();
    check_boundaries();
  }

  const fs::path& index_path() const { return index_.path(); }
  std::uint64_t bytes() const { return index_.bytes() + data_.bytes(); }
  std::uint64_t documents() const { return header_.boundaries - 1; }
  // Of document `d` <= documents(): its first sequence.
  std::uint64_t first_sequence(std::uint64_t d) { return boundaries_.at(d); }

  // Appends the ids of a sequence, all below `vocab_size`.
  void read(std::uint64_t sequence, std::uint32_t vocab_size, std::vector<std::uint32_t>& ids) {
    const std::uint64_t width = kIdBytes.at(header_.code);
    bytes_.resize(lengths_.at(sequence) * width);
    data_.read(places_.at(sequence), bytes_);
    for (std::uint64_t at = 0; at < bytes_.size(); at += width) {
      const std::int64_t id = id_at(at);
      if (id < 0 || id >= static_cast<std::int64_t>(vocab_size)) {
        throw CorpusError(data_.path().string() + ": sequence " + std::to_string(sequence) +
                          " has token id " + std::to_string(id) + ", but the vocabulary has " +
                          std::to_string(vocab_size) + " tokens");
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
  }

 private:
  std::int64_t id_at(std::uint64_t offset) const {
    switch (header_.code) {
      case 3:
        return number_at<std::int16_t>(bytes_, offset);
      case 4:
        return number_at<std::int32_t>(bytes_, offset);
      case 5:
        return number_at<std::int64_t>(bytes_, offset);
      default:
        return number_at<std::uint16_t>(bytes_, offset);
    }
  }

  void check_sequences() {
    const std::uint64_t width = kIdBytes.at(header_.code), bytes = data_.bytes();
    std::uint64_t end = 0;
    for (std::uint64_t s = 0; s < header_.sequences; ++s) {
      const std::uint64_t begin = places_.at(s), count = lengths_.at(s);
      if (count > 0x7FFFFFFF || begin > bytes || count * width > bytes - begin) {
        refuse_index(index_,
                     "sequence " + std::to_string(s) + " lies outside " + data_.path().string());
      }
      end = std::max(end, begin + count * width);
    }
    if (end == bytes) return;
    throw CorpusError(data_.path().string() + ": has " + std::to_string(bytes) +
                      " bytes, but the sequences of " + index_.path().string() + " end at " +
                      std::to_string(end));
  }

  void check_boundaries() {
    if (header_.boundaries < 1 || first_sequence(0) != 0 ||
        first_sequence(documents()) != header_.sequences) {
      refuse_index(index_, "its documents do not reach from the first sequence to the last");
    }
    for (std::uint64_t d = 0; d < documents(); ++d) {
      if (first_sequence(d) > first_sequence(d + 1)) {
        refuse_index(index_, "document " + std::to_string(d) + " ends before it begins");
      }
    }
  }

  const RegularFile index_, data_;
  const IndexHeader header_;
  StoredNumbers<std::uint32_t> lengths_;
  StoredNumbers<std::uint64_t> places_, boundaries_;
  std::vector<std::byte> bytes_;  // of the sequence that was read last
};

void add_document(ImportedCorpus& corpus, IndexedDataset& dataset, std::uint64_t document) {
  std::vector<std::uint32_t> sequence;
  for (std::uint64_t s = dataset.first_sequence(document); s < dataset.first_sequence(document + 1);
       ++s) {
    sequence.clear();
    dataset.read(s, corpus.tokenizer().vocab_size(), sequence);
    corpus.add_sequence(sequence);
  }
  corpus.end_document();
}

void require_different(const std::vector<fs::path>& prefixes) {
  std::set<fs::path> seen;
  for (const fs::path& prefix : prefixes) {
    if (seen.insert(fs::weakly_canonical(with_extension(prefix, ".idx"))).second) continue;
    throw std::invalid_argument("Megatron files " + prefix.string() + " are given twice");
  }
}

}  // namespace

CorpusIndex import_megatron(const MegatronImport& options) {
  if (options.prefixes.empty())
    throw std::invalid_argument("no Megatron files are given to import");
  require_different(options.prefixes);
  ImportedCorpus corpus(options);
  for (const fs::path& prefix : options.prefixes) {
    IndexedDataset dataset(prefix);
    for (std::uint64_t d = 0; d < dataset.documents(); ++d) add_document(corpus, dataset, d);
    corpus.end_source({dataset.index_path().string(), dataset.bytes()});
  }
  return corpus.publish();
}

}  // namespace tupelo

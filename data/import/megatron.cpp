#include "data/import/megatron.h"

#include <cstring>
#include <map>
#include <span>
#include <stdexcept>

#include "data/errors.h"
#include "data/mapped_file.h"

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

fs::path with_extension(const fs::path& prefix, const std::string& extension) {
  const std::string given = prefix.extension().string();
  const fs::path stem =
      given == ".idx" || given == ".bin" ? fs::path(prefix).replace_extension("") : prefix;
  return stem.string() + extension;
}

// One pair of files, its sizes and places checked.
class IndexedDataset {
 public:
  explicit IndexedDataset(const fs::path& prefix)
      : index_path_(with_extension(prefix, ".idx")),
        data_path_(with_extension(prefix, ".bin")),
        index_(index_path_),
        data_(data_path_) {
    const auto bytes = index_.bytes();
    if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
      refuse("it does not begin as an index of Megatron (MMIDIDX)");
    }
    const auto version = number_at<std::uint64_t>(bytes, 9);
    if (version != 1) refuse("its version is " + std::to_string(version) + ", known is 1");
    code_ = number_at<std::uint8_t>(bytes, 17);
    if (!kIdBytes.contains(code_)) {
      refuse("its ids are of type " + std::to_string(code_) +
             "; known are 3 (int16), 4 (int32), 5 (int64) and 8 (uint16)");
    }
    sequences_ = number_at<std::uint64_t>(bytes, 18);
    boundaries_ = number_at<std::uint64_t>(bytes, 26);
    check_index_size();
    check_sequences();
    check_boundaries();
  }

  const fs::path& index_path() const { return index_path_; }
  std::uint64_t bytes() const { return index_.bytes().size() + data_.bytes().size(); }
  std::uint64_t documents() const { return boundaries_ - 1; }
  // Of document `d` <= documents(): its first sequence.
  std::uint64_t first_sequence(std::uint64_t d) const { return int64(boundaries_at() + 8 * d); }

  // Appends the ids of a sequence, all below `vocab_size`.
  void read(std::uint64_t sequence, std::uint32_t vocab_size,
            std::vector<std::uint32_t>& ids) const {
    const std::uint64_t begin = place(sequence), count = length(sequence);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int64_t id = id_at(begin + i * kIdBytes.at(code_));
      if (id < 0 || id >= static_cast<std::int64_t>(vocab_size)) {
        throw CorpusError(data_path_.string() + ": sequence " + std::to_string(sequence) +
                          " has token id " + std::to_string(id) + ", but the vocabulary has " +
                          std::to_string(vocab_size) + " tokens");
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(index_path_.string() + ": " + what);
  }
  std::uint64_t places_at() const { return kHeaderBytes + 4 * sequences_; }
  std::uint64_t boundaries_at() const { return places_at() + 8 * sequences_; }
  std::uint64_t int64(std::uint64_t offset) const {
    return number_at<std::uint64_t>(index_.bytes(), offset);
  }
  std::uint64_t length(std::uint64_t sequence) const {
    return number_at<std::uint32_t>(index_.bytes(), kHeaderBytes + 4 * sequence);
  }
  std::uint64_t place(std::uint64_t sequence) const { return int64(places_at() + 8 * sequence); }

  std::int64_t id_at(std::uint64_t offset) const {
    const auto bytes = data_.bytes();
    switch (code_) {
      case 3:
        return number_at<std::int16_t>(bytes, offset);
      case 4:
        return number_at<std::int32_t>(bytes, offset);
      case 5:
        return number_at<std::int64_t>(bytes, offset);
      default:
        return number_at<std::uint16_t>(bytes, offset);
    }
  }

  void check_index_size() const {
    const std::uint64_t bytes = index_.bytes().size();
    const bool fits = sequences_ <= bytes / 12 && boundaries_ <= bytes / 8 &&
                      kHeaderBytes + 12 * sequences_ + 8 * boundaries_ <= bytes;
    if (!fits) {
      refuse("it has " + std::to_string(bytes) + " bytes, too few for its " +
             std::to_string(sequences_) + " sequences and " + std::to_string(boundaries_) +
             " document boundaries");
    }
  }

  void check_sequences() const {
    const std::uint64_t width = kIdBytes.at(code_), bytes = data_.bytes().size();
    for (std::uint64_t s = 0; s < sequences_; ++s) {
      const std::uint64_t begin = place(s), count = length(s);
      if (count > 0x7FFFFFFF || begin > bytes || count * width > bytes - begin) {
        refuse("sequence " + std::to_string(s) + " lies outside " + data_path_.string());
      }
    }
  }

  void check_boundaries() const {
    if (boundaries_ < 1 || first_sequence(0) != 0 || first_sequence(documents()) != sequences_) {
      refuse("its documents do not reach from the first sequence to the last");
    }
    for (std::uint64_t d = 0; d < documents(); ++d) {
      if (first_sequence(d) > first_sequence(d + 1)) {
        refuse("document " + std::to_string(d) + " ends before it begins");
      }
    }
  }

  fs::path index_path_, data_path_;
  MappedFile index_, data_;
  int code_ = 0;
  std::uint64_t sequences_ = 0, boundaries_ = 0;
};

void add_document(ImportedCorpus& corpus, const IndexedDataset& dataset, std::uint64_t document) {
  std::vector<std::uint32_t> sequence;
  for (std::uint64_t s = dataset.first_sequence(document); s < dataset.first_sequence(document + 1);
       ++s) {
    sequence.clear();
    dataset.read(s, corpus.tokenizer().vocab_size(), sequence);
    corpus.add_sequence(sequence);
  }
  corpus.end_document();
}

}  // namespace

CorpusIndex import_megatron(const MegatronImport& options) {
  if (options.prefixes.empty())
    throw std::invalid_argument("no Megatron files are given to import");
  ImportedCorpus corpus(options);
  for (const fs::path& prefix : options.prefixes) {
    const IndexedDataset dataset(prefix);
    for (std::uint64_t d = 0; d < dataset.documents(); ++d) add_document(corpus, dataset, d);
    corpus.end_source({dataset.index_path().string(), dataset.bytes()});
  }
  return corpus.publish();
}

}  // namespace tupelo

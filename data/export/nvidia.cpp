#include "data/export/nvidia.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/corpus_files.h"
#include "data/export/static_rows.h"
#include "data/hdf5.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = "export.json";
constexpr std::uint64_t kMostRowsPerFile = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostFileNumbers = std::uint64_t{1} << 28;
constexpr std::uint64_t kRowsBetweenTelling = 1024;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

const NvidiaExport& checked(const NvidiaExport& options) {
  const auto length = static_cast<std::uint64_t>(options.rows.sequence_length);
  require(options.rows.sequence_length >= 4 && length <= 65536,
          "the sequence length must be 4 to 65536, not " +
              std::to_string(options.rows.sequence_length));
  require(options.rows.packing != Packing::kBestFit,
          "rows of several sequences have no place in NVIDIA's layout: pack full or doc");
  require(options.max_predictions >= 1 && options.max_predictions <= length,
          "max predictions must be 1 to the sequence length, not " +
              std::to_string(options.max_predictions));
  require(options.duplicates >= 1 && options.duplicates <= 1000,
          "each row can be written 1 to 1000 times, not " + std::to_string(options.duplicates));
  require(options.rows_per_file >= 1 && options.rows_per_file <= kMostRowsPerFile &&
              options.rows_per_file * length <= kMostFileNumbers,
          "rows per file must be 1 to " +
              std::to_string(std::min(kMostRowsPerFile, kMostFileNumbers / length)) +
              " at this sequence length, not " + std::to_string(options.rows_per_file));
  return options;
}

std::string five_digits(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// The rows of one file.
class RowTable {
 public:
  RowTable(std::uint64_t columns, std::uint64_t predictions, std::uint32_t pad)
      : columns_(columns), predictions_(predictions), pad_(pad) {}

  std::uint64_t rows() const { return rows_; }

  void add(const StaticRow& row) {
    ++rows_;
    append(ids_, row.ids, columns_, pad_);
    append(positions_, row.positions, predictions_, 0);
    append(originals_, row.originals, predictions_, 0);
    mask_.insert(mask_.end(), row.ids.size(), 1);
    mask_.resize(rows_ * columns_);
  }

  // Writes the rows to a new file and forgets them.
  void write(const fs::path& file) {
    const std::vector<std::int8_t> zeros(rows_ * columns_);
    Hdf5Image image;
    image.add_compressed("input_ids", ElementType::kInt32, ids_.data(), rows_, columns_);
    image.add_compressed("input_mask", ElementType::kInt8, mask_.data(), rows_, columns_);
    image.add_compressed("segment_ids", ElementType::kInt8, zeros.data(), rows_, columns_);
    image.add_compressed("masked_lm_positions", ElementType::kInt32, positions_.data(), rows_,
                         predictions_);
    image.add_compressed("masked_lm_ids", ElementType::kInt32, originals_.data(), rows_,
                         predictions_);
    image.add_compressed("next_sentence_labels", ElementType::kInt8, zeros.data(), rows_, 0);
    write_corpus_file(file, image.bytes());
    *this = RowTable(columns_, predictions_, pad_);
  }

 private:
  static void append(std::vector<std::int32_t>& to, const std::vector<std::uint32_t>& from,
                     std::uint64_t width, std::uint32_t filling) {
    for (const std::uint32_t number : from) to.push_back(static_cast<std::int32_t>(number));
    to.resize(to.size() + width - from.size(), static_cast<std::int32_t>(filling));
  }

  std::uint64_t columns_, predictions_, rows_ = 0;
  std::uint32_t pad_;
  std::vector<std::int32_t> ids_, positions_, originals_;
  std::vector<std::int8_t> mask_;
};

class Export {
 public:
  explicit Export(const NvidiaExport& options)
      : options_(checked(options)),
        train_(options.corpus, Split::kTrain),
        held_out_(options.corpus, Split::kHeldOut),
        folder_(options.output, options.force, kMarker) {}

  NvidiaExportReport run() {
    for (const ShardedCorpus* split : {&train_, &held_out_}) {
      for (std::size_t shard = 0; shard < split->shards().size(); ++shard) {
        split->verify_shard(shard);
      }
    }
    StaticRows train(train_, options_.rows, options_.max_predictions);
    StaticRows held_out(held_out_, options_.rows, options_.max_predictions);
    total_rows_ = options_.duplicates * (train.rows() + held_out.rows());
    report_.train_rows = write(train, "corpus_training_");
    report_.held_out_rows = write(held_out, "corpus_test_");
    write_corpus_file(folder_.folder() / kMarker, description());
    folder_.publish();
    return report_;
  }

 private:
  std::uint64_t write(StaticRows& rows, const std::string& name) {
    RowTable table(static_cast<std::uint64_t>(options_.rows.sequence_length),
                   options_.max_predictions, train_.info().special.pad);
    std::uint64_t files = 0;
    const auto close = [&] {
      table.write(folder_.folder() / (name + five_digits(files++) + ".hdf5"));
    };
    for (std::uint64_t copy = 0; copy < options_.duplicates; ++copy) {
      for (std::uint64_t r = 0; r < rows.rows(); ++r) {
        table.add(counted(rows.row(copy, r)));
        if (table.rows() == options_.rows_per_file) close();
      }
    }
    if (table.rows() > 0) close();
    report_.files += files;
    return options_.duplicates * rows.rows();
  }

  StaticRow counted(StaticRow row) {
    const std::uint32_t sep = train_.info().special.sep;
    report_.tokens += row.ids.size() - 1 -
                      static_cast<std::uint64_t>(std::count(row.ids.begin(), row.ids.end(), sep));
    report_.masked_tokens += row.positions.size();
    report_.unmasked_tokens += row.unmasked;
    if (++done_rows_ % kRowsBetweenTelling == 0 && options_.progress) {
      options_.progress(done_rows_, total_rows_);
    }
    return row;
  }

  std::string description() const {
    const CorpusInfo& info = train_.info();
    const nlohmann::ordered_json json = {{"format", "nvidia-bert"},
                                         {"corpus_digest", info.digest},
                                         {"tokenizer_fingerprint", info.tokenizer_fingerprint},
                                         {"vocab_size", info.vocab_size},
                                         {"sequence_length", options_.rows.sequence_length},
                                         {"max_predictions", options_.max_predictions},
                                         {"mask_fraction", options_.rows.mask_fraction},
                                         {"seed", options_.rows.seed},
                                         {"duplicates", options_.duplicates},
                                         {"train_rows", report_.train_rows},
                                         {"held_out_rows", report_.held_out_rows},
                                         {"files", report_.files},
                                         {"tokens", report_.tokens},
                                         {"masked_tokens", report_.masked_tokens},
                                         {"unmasked_tokens", report_.unmasked_tokens}};
    return json.dump(1) + "\n";
  }

  const NvidiaExport& options_;
  ShardedCorpus train_, held_out_;
  UnfinishedCorpus folder_;
  NvidiaExportReport report_;
  std::uint64_t done_rows_ = 0, total_rows_ = 0;
};

}  // namespace

NvidiaExportReport export_nvidia(const NvidiaExport& options) { return Export(options).run(); }

}  // namespace tupelo

#include <algorithm>
#include <string>
#include <utility>

#include "data/batch_stream.h"
#include "data/mixing.h"
#include "data/piece_masker.h"
#include "data/sentence_pairs.h"

namespace tupelo {
namespace {

using Pieces = std::vector<RowPlan::Piece>;

// [CLS] and [SEP] of the row, or of each piece.
std::int64_t tokens_of(const Pieces& pieces, bool sequences) {
  std::int64_t tokens = sequences ? 2 * static_cast<std::int64_t>(pieces.size()) : 2;
  for (const RowPlan::Piece& piece : pieces) {
    tokens += static_cast<std::int64_t>(piece.count) + (piece.separator ? 1 : 0);
  }
  return tokens;
}

// Of a whole batch.
struct MaskedPositions {
  std::vector<std::int64_t> positions, labels;
  std::uint64_t hash = 0;
};

// Lays a corpus's rows into one flat [B,T] array of ids and notes what was masked.
class RowWriter {
 public:
  RowWriter(const ShardedCorpus& corpus, const DataOptions& options, MaskedPositions& result)
      : special_(corpus.info().special), pieces_(corpus, options), result_(result) {}

  // Fills ids[0, tokens_of(pieces, false)), which begin at `position` of the flat batch.
  void write(const Pieces& pieces, std::uint64_t epoch, std::int64_t position, std::int64_t* ids) {
    std::int64_t at = 0;
    ids[at++] = special_.cls;
    for (const RowPlan::Piece& piece : pieces) {
      write_piece(piece, epoch, position + at, ids + at);
      at += static_cast<std::int64_t>(piece.count);
      if (piece.separator) ids[at++] = special_.sep;
    }
    ids[at] = special_.sep;
  }

  // The same for pieces that are sequences; `documents` gets the number of each token's.
  void write_sequences(const Pieces& pieces, std::uint64_t epoch, std::int64_t position,
                       std::int64_t* ids, std::int64_t* documents) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Pieces one = {pieces[i]};
      write(one, epoch, position + at, ids + at);
      const std::int64_t end = at + tokens_of(one, false);
      std::fill(documents + at, documents + end, static_cast<std::int64_t>(i));
      at = end;
    }
  }

 private:
  void write_piece(const RowPlan::Piece& piece, std::uint64_t epoch, std::int64_t position,
                   std::int64_t* ids) {
    if (piece.count == 0) return;
    pieces_.read(piece, epoch);
    for (const MaskedToken& token : pieces_.masked()) {
      result_.positions.push_back(position + token.index);
      result_.labels.push_back(token.original);
      result_.hash +=
          mask_hash(epoch, piece.document, piece.first + token.index, token.replacement);
    }
    std::copy(pieces_.tokens().begin(), pieces_.tokens().end(), ids);
  }

  const SpecialTokens& special_;
  PieceMasker pieces_;
  MaskedPositions& result_;
};

torch::Tensor tensor_of(const std::vector<std::int64_t>& values) {
  auto tensor = torch::empty({static_cast<std::int64_t>(values.size())}, torch::kInt64);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

// [B,T], true for the first lengths[b] tokens of row b; undefined when all are T.
torch::Tensor attention_mask_of(const std::vector<std::int64_t>& lengths, std::int64_t longest) {
  const auto full = [longest](std::int64_t length) { return length == longest; };
  if (std::all_of(lengths.begin(), lengths.end(), full)) return {};
  auto mask = torch::empty({static_cast<std::int64_t>(lengths.size()), longest}, torch::kBool);
  bool* row = mask.data_ptr<bool>();
  for (const std::int64_t length : lengths) {
    std::fill(row, row + length, true);
    std::fill(row + length, row + longest, false);
    row += longest;
  }
  return mask;
}

// Corpora of a mixture number their documents alike, and must not be masked alike.
std::vector<DataOptions> options_of_each(const DataOptions& options,
                                         const std::vector<RowSource>& sources) {
  std::vector<DataOptions> own(sources.size(), options);
  if (sources.size() == 1) return own;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string digits = sources[i].corpus->info().digest.substr(0, 16);
    own[i].seed = hash_numbers(options.seed, std::stoull(digits, nullptr, 16));
  }
  return own;
}

// What each row holds; notes in `batch` which are pairs.
std::vector<Pieces> pieces_of(const std::vector<RowSource>& sources,
                              const std::vector<DataOptions>& options,
                              const std::vector<RowOfCorpus>& rows, Batch& batch) {
  std::vector<Pieces> pieces;
  if (!options.front().sentence_pairs) {
    for (const RowOfCorpus& row : rows) {
      pieces.push_back(sources.at(row.corpus).plan->pieces(row.row));
    }
    return pieces;
  }
  std::vector<SentencePairs> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    TORCH_CHECK(sources[i].plan->sentence_pairs(), "a plan of rows that are no pairs");
    pairs.emplace_back(*sources[i].corpus, *sources[i].plan, options[i]);
  }
  std::vector<std::int64_t> pair_rows, labels;
  for (const RowOfCorpus& row : rows) {
    PairedRow paired = pairs.at(row.corpus).row(row.row, row.epoch);
    if (paired.swapped) {
      pair_rows.push_back(static_cast<std::int64_t>(pieces.size()));
      labels.push_back(*paired.swapped ? 1 : 0);
    }
    pieces.push_back(std::move(paired.pieces));
  }
  batch.pair_rows = tensor_of(pair_rows);
  batch.pair_labels = tensor_of(labels);
  return pieces;
}

}  // namespace

Batch make_batch(const ShardedCorpus& corpus, const RowPlan& plan, const DataOptions& options,
                 const std::vector<std::uint64_t>& rows, const std::vector<std::uint64_t>& epochs) {
  TORCH_CHECK(rows.size() == epochs.size(), "a batch needs an epoch for each row");
  std::vector<RowOfCorpus> rows_of_corpus;
  for (std::size_t i = 0; i < rows.size(); ++i) rows_of_corpus.push_back({0, rows[i], epochs[i]});
  return make_batch({{&corpus, &plan}}, options, rows_of_corpus);
}

Batch make_batch(const std::vector<RowSource>& sources, const DataOptions& options,
                 const std::vector<RowOfCorpus>& rows) {
  TORCH_CHECK(!rows.empty(), "a batch needs at least one row");
  const bool packed = sources.front().plan->pieces_are_sequences();
  const std::vector<DataOptions> own = options_of_each(options, sources);
  Batch batch;
  const std::vector<Pieces> pieces = pieces_of(sources, own, rows, batch);
  std::vector<std::int64_t> lengths;
  for (const Pieces& row : pieces) lengths.push_back(tokens_of(row, packed));
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());

  batch.input_ids = torch::full(
      {static_cast<std::int64_t>(rows.size()), longest},
      static_cast<std::int64_t>(sources.front().corpus->info().special.pad), torch::kInt64);
  if (packed) batch.documents = torch::full_like(batch.input_ids, -1);
  std::int64_t* ids = batch.input_ids.data_ptr<std::int64_t>();
  MaskedPositions masked;
  std::vector<RowWriter> writers;
  writers.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    writers.emplace_back(*sources[i].corpus, own[i], masked);
  }
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const auto& [corpus, row, epoch] = rows[b];
    const std::int64_t begin = static_cast<std::int64_t>(b) * longest;
    if (packed) {
      writers[corpus].write_sequences(pieces[b], epoch, begin, ids + begin,
                                      batch.documents.data_ptr<std::int64_t>() + begin);
    } else {
      writers[corpus].write(pieces[b], epoch, begin, ids + begin);
    }
    batch.corpora.push_back(corpus);
    batch.rows.push_back(row);
    batch.epochs.push_back(epoch);
    batch.tokens += lengths[b];
    batch.rows_hash += row_hash(epoch, row);
  }
  if (!packed) batch.attention_mask = attention_mask_of(lengths, longest);
  batch.masked_positions = tensor_of(masked.positions);
  batch.labels = tensor_of(masked.labels);
  batch.masks_hash = masked.hash;
  return batch;
}

}  // namespace tupelo

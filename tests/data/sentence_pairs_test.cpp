#include "data/sentence_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>

#include "data/batch_stream.h"
#include "data/mixing.h"
#include "data/philox.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::sentence_pairs_test {
namespace {

constexpr std::int64_t kCls = 2, kSep = 3;

// Documents whose sentences have 1 to `longest` tokens.
std::vector<SampleDocument> documents_with_sentences(std::uint64_t seed, std::size_t count,
                                                     std::size_t longest_document,
                                                     std::size_t longest) {
  std::vector<SampleDocument> documents = sample_documents(seed, count, longest_document);
  std::mt19937_64 random(seed + 1);
  for (SampleDocument& document : documents) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < document.ids.size(); ++i) {
      document.sent_start.push_back(i == next ? 1 : 0);
      if (i == next) next += 1 + random() % longest;
    }
  }
  return documents;
}

CorpusInfo info_with_sentences() {
  CorpusInfo info = sample_info();
  info.sentence_rules = 1;
  return info;
}

DataOptions pair_options(std::int64_t sequence_length = 40) {
  DataOptions options;
  options.sequence_length = sequence_length;
  options.packing = Packing::kDocument;
  options.sentence_pairs = true;
  options.global_batch = 10;
  options.micro_batch = 3;
  return options;
}

std::unique_ptr<BatchStream> open_stream(const std::vector<const ShardedCorpus*>& corpora,
                                         const DataOptions& options, int rank, int world_size,
                                         std::int64_t first_step) {
  std::vector<MixturePart> parts;
  for (const ShardedCorpus* corpus : corpora) parts.push_back({&corpus->document_offsets()});
  return std::make_unique<BatchStream>(corpora, options,
                                       std::make_shared<SampleOrder>(parts, options), rank,
                                       world_size, first_step);
}

class SentencePairsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    documents_ = documents_with_sentences(1, 300, 200, 16);
    write_sample_corpus(*folder_ / "c", documents_, 0, 1500, info_with_sentences());
    corpus_ = new ShardedCorpus(*folder_ / "c", Split::kTrain);
  }
  static void TearDownTestSuite() {
    delete corpus_;
    delete folder_;
  }

  static RowPlan plan_of(const DataOptions& options) {
    return RowPlan(corpus_->document_offsets(), options.packing, options.sequence_length,
                   options.sentence_pairs);
  }

  // The law of data/FORMAT.md, written out for a whole document: rows in order.
  struct ExpectedRow {
    std::uint64_t begin, end;
    std::uint64_t cut = 0;  // 0: no pair
    bool swapped = false;
  };
  static std::vector<ExpectedRow> expected_rows(std::uint64_t document, const DataOptions& options,
                                                std::uint64_t epoch) {
    const std::vector<std::uint8_t>& starts = documents_[document].sent_start;
    const std::uint64_t length = starts.size();
    const auto n = static_cast<std::uint64_t>(options.sequence_length - 3);
    const std::uint64_t s = std::min<std::uint64_t>(64, n / 4);
    std::vector<std::uint64_t> edges = {0};
    std::vector<bool> clean = {true};
    for (std::uint64_t place = n - s; length > n && place < length; place += n - s) {
      std::uint64_t at = place;
      while (starts[at] == 0 && at > place - s) --at;
      clean.push_back(starts[at] == 1);
      edges.push_back(starts[at] == 1 ? at : place);
    }
    edges.push_back(length);
    clean.push_back(true);
    std::vector<ExpectedRow> rows;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      ExpectedRow row{edges[i], edges[i + 1]};
      std::vector<std::uint64_t> inside;
      for (std::uint64_t t = row.begin + 1; t < row.end; ++t) {
        if (starts[t] == 1) inside.push_back(t);
      }
      if (clean[i] && clean[i + 1] && !inside.empty()) {
        const PhiloxBlock w =
            philox(row.begin, document, hash_numbers(options.seed, epoch, std::uint64_t{4}));
        row.cut = inside[static_cast<std::size_t>(std::floor(
            std::ldexp(static_cast<double>(w[1]), -32) * static_cast<double>(inside.size())))];
        row.swapped = w[0] >= 0x80000000U;
      }
      rows.push_back(row);
    }
    return rows;
  }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline std::vector<SampleDocument> documents_;
  static inline ShardedCorpus* corpus_ = nullptr;
};

TEST_F(SentencePairsTest, RowsAreThoseOfTheLaw) {
  for (const std::int64_t length : {5, 6, 9, 40, 128, 512}) {
    const DataOptions options = pair_options(length);
    const RowPlan plan = plan_of(options);
    SentencePairs pairs(*corpus_, plan, options);
    std::uint64_t row = 0, labelled = 0;
    for (std::uint64_t document = 0; document < corpus_->documents(); ++document) {
      for (const ExpectedRow& expected : expected_rows(document, options, 3)) {
        const PairedRow found = pairs.row(row++, 3);
        ASSERT_EQ(found.swapped.has_value(), expected.cut > 0);
        ASSERT_EQ(found.pieces.size(), expected.cut > 0 ? 2u : 1u);
        const RowPlan::Piece& front = found.pieces.front();
        const RowPlan::Piece& back = found.pieces.back();
        EXPECT_EQ(front.document, document);
        if (expected.cut == 0) {
          EXPECT_EQ(front.first, expected.begin);
          EXPECT_EQ(front.first + front.count, expected.end);
          EXPECT_FALSE(front.separator);
          continue;
        }
        ++labelled;
        EXPECT_EQ(*found.swapped, expected.swapped);
        EXPECT_TRUE(front.separator);
        EXPECT_FALSE(back.separator);
        const RowPlan::Piece& a = expected.swapped ? back : front;
        const RowPlan::Piece& b = expected.swapped ? front : back;
        EXPECT_EQ(a.first, expected.begin);
        EXPECT_EQ(a.first + a.count, expected.cut);
        EXPECT_EQ(b.first, expected.cut);
        EXPECT_EQ(b.first + b.count, expected.end);
      }
    }
    EXPECT_EQ(row, plan.rows());
    // Sentences of up to 16 tokens are within reach of every row that is long enough.
    if (length >= 128) {
      EXPECT_GT(labelled, 9 * plan.rows() / 10);
    }
  }
}

TEST_F(SentencePairsTest, BatchesRebuildTheText) {
  for (const std::int64_t length : {9, 40, 128}) {
    const DataOptions options = pair_options(length);
    const RowPlan plan = plan_of(options);
    std::vector<std::vector<std::int64_t>> rebuilt(documents_.size());
    std::int64_t unpaired = 0;
    std::uint64_t document = 0;
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      const Batch batch = make_batch(*corpus_, plan, options, {row}, {2});
      auto ids = batch.input_ids.clone();
      ids.view(-1).index_put_({batch.masked_positions}, batch.labels);
      ids = ids.view(-1).contiguous();
      ASSERT_LE(ids.size(0), length);
      const std::int64_t* token = ids.data_ptr<std::int64_t>();
      ASSERT_EQ(*token, kCls);
      std::vector<std::vector<std::int64_t>> segments(1);
      for (std::int64_t t = 1; t < ids.size(0); ++t) {
        if (token[t] == kSep) {
          segments.emplace_back();
        } else {
          segments.back().push_back(token[t]);
        }
      }
      ASSERT_TRUE(segments.back().empty());  // the row ends with its [SEP]
      segments.pop_back();
      ASSERT_EQ(batch.pair_rows.numel(), batch.pair_labels.numel());
      ASSERT_EQ(segments.size(), batch.pair_rows.numel() == 1 ? 2u : 1u);
      if (batch.pair_rows.numel() == 0) {
        ++unpaired;
      } else if (batch.pair_labels.item<std::int64_t>() == 1) {
        std::swap(segments[0], segments[1]);
      }
      while (rebuilt[document].size() == documents_[document].ids.size()) ++document;
      for (const auto& segment : segments) {
        rebuilt[document].insert(rebuilt[document].end(), segment.begin(), segment.end());
      }
    }
    EXPECT_GT(unpaired, 0);
    for (std::size_t d = 0; d < documents_.size(); ++d) {
      EXPECT_TRUE(std::equal(rebuilt[d].begin(), rebuilt[d].end(), documents_[d].ids.begin(),
                             documents_[d].ids.end()));
    }
  }
}

TEST_F(SentencePairsTest, PairsAreNumberedByTheirRowsOfTheBatch) {
  const DataOptions options = pair_options();
  const RowPlan plan = plan_of(options);
  std::vector<std::uint64_t> rows;
  std::vector<std::int64_t> expected_rows, expected_labels;
  for (std::uint64_t row = 0; row < plan.rows(); ++row) {
    const Batch alone = make_batch(*corpus_, plan, options, {row}, {0});
    if (alone.pair_rows.numel() == 1) {
      expected_rows.push_back(static_cast<std::int64_t>(row));
      expected_labels.push_back(alone.pair_labels.item<std::int64_t>());
    }
    rows.push_back(row);
  }
  const Batch all =
      make_batch(*corpus_, plan, options, rows, std::vector<std::uint64_t>(rows.size()));
  EXPECT_LT(expected_rows.size(), rows.size());
  EXPECT_TRUE(torch::equal(all.pair_rows, torch::tensor(expected_rows)));
  EXPECT_TRUE(torch::equal(all.pair_labels, torch::tensor(expected_labels)));
}

TEST_F(SentencePairsTest, MasksAreThoseOfRowsWithoutPairs) {
  for (const Masking masking : {Masking::kToken, Masking::kWholeWord, Masking::kSpan}) {
    DataOptions options = pair_options();
    std::uint64_t hashes[2] = {0, 0};
    for (const bool paired : {false, true}) {
      options.sentence_pairs = paired;
      options.masking = masking;
      const RowPlan plan = plan_of(options);
      for (std::uint64_t row = 0; row < plan.rows(); ++row) {
        const Batch batch = make_batch(*corpus_, plan, options, {row}, {7});
        hashes[paired ? 1 : 0] += batch.masks_hash;
        EXPECT_EQ(batch.pair_rows.defined(), paired);
      }
    }
    EXPECT_EQ(hashes[0], hashes[1]);
  }
}

TEST_F(SentencePairsTest, HalfAreSwappedAndEverySentenceMayBeginTheSecondSegment) {
  // One document of five sentences per row, cut at any of the four that begin inside.
  std::vector<SampleDocument> documents = sample_documents(3, 20000, 1);
  for (SampleDocument& document : documents) {
    document.ids.assign(10, 50);
    document.word_start.assign(10, 1);
    document.sent_start = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
  }
  write_sample_corpus(*folder_ / "even", documents, 0, 1u << 20, info_with_sentences());
  const ShardedCorpus corpus(*folder_ / "even", Split::kTrain);
  const DataOptions options = pair_options();
  const RowPlan plan(corpus.document_offsets(), Packing::kDocument, 40, true);
  SentencePairs pairs(corpus, plan, options);
  double swapped = 0;
  std::map<std::uint64_t, double> cuts;
  for (std::uint64_t row = 0; row < plan.rows(); ++row) {
    const PairedRow paired = pairs.row(row, 0);
    swapped += *paired.swapped ? 1 : 0;
    cuts[std::max(paired.pieces[0].first, paired.pieces[1].first)] += 1;
  }
  // Four standard deviations.
  EXPECT_NEAR(swapped, 10000, 4 * std::sqrt(5000));
  ASSERT_EQ(cuts.size(), 4u);
  for (const std::uint64_t cut : {2, 4, 6, 8}) {
    EXPECT_NEAR(cuts[cut], 5000, 4 * std::sqrt(5000 * 0.75));
  }
}

TEST_F(SentencePairsTest, StaticPairsStayAndDynamicOnesChange) {
  DataOptions options = pair_options();
  const RowPlan plan = plan_of(options);
  const auto drawn = [&](PairDraw draw, std::uint64_t epoch) {
    options.pair_draw = draw;
    SentencePairs pairs(*corpus_, plan, options);
    std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>> result;
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      const PairedRow paired = pairs.row(row, epoch);
      if (paired.swapped) {
        result.emplace_back(row, paired.pieces[0].first, *paired.swapped);
      }
    }
    return result;
  };
  const auto first = drawn(PairDraw::kStatic, 0);
  EXPECT_EQ(drawn(PairDraw::kStatic, 1), first);
  EXPECT_EQ(drawn(PairDraw::kStatic, 1000), first);
  EXPECT_EQ(drawn(PairDraw::kDynamic, 0), first);
  const auto second = drawn(PairDraw::kDynamic, 1);
  EXPECT_EQ(second.size(), first.size());  // which rows are pairs does not change
  std::size_t equal = 0;
  for (std::size_t i = 0; i < first.size(); ++i) equal += first[i] == second[i] ? 1 : 0;
  EXPECT_LT(equal, first.size() * 6 / 10);
  options.seed = 2;
  EXPECT_NE(drawn(PairDraw::kStatic, 0), first);
}

// (epoch, row, label, ids) of every row, whatever batch it came in.
using RowOfRun =
    std::tuple<std::size_t, std::uint64_t, std::uint64_t, std::int64_t, std::vector<std::int64_t>>;
std::vector<RowOfRun> rows_of_run(const std::vector<const ShardedCorpus*>& corpora,
                                  const DataOptions& options, int world_size, std::int64_t first,
                                  std::int64_t steps) {
  std::vector<RowOfRun> result;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto stream = open_stream(corpora, options, rank, world_size, first);
    for (std::int64_t step = 0; step < steps; ++step) {
      for (const Batch& batch : stream->next()) {
        std::map<std::int64_t, std::int64_t> labels;
        for (std::int64_t p = 0; p < batch.pair_rows.numel(); ++p) {
          labels[batch.pair_rows[p].item<std::int64_t>()] =
              batch.pair_labels[p].item<std::int64_t>();
        }
        for (std::size_t b = 0; b < batch.rows.size(); ++b) {
          const auto row = static_cast<std::int64_t>(b);
          auto ids = batch.input_ids[row];
          if (batch.attention_mask.defined()) ids = ids.masked_select(batch.attention_mask[row]);
          const std::int64_t* begin = ids.data_ptr<std::int64_t>();
          result.emplace_back(batch.corpora[b], batch.epochs[b], batch.rows[b],
                              labels.contains(row) ? labels[row] : -1,
                              std::vector<std::int64_t>(begin, begin + ids.numel()));
        }
      }
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST_F(SentencePairsTest, RanksMicroBatchesAndASeekChangeNothing) {
  DataOptions options = pair_options();
  options.length_ramp = {{20, 12}};
  const auto expected = rows_of_run({corpus_}, options, 1, 0, 40);
  EXPECT_EQ(expected.size(), 400u);
  for (const int world_size : {2, 3}) {
    for (const std::int64_t micro_batch : {1, 4}) {
      options.micro_batch = micro_batch;
      EXPECT_EQ(rows_of_run({corpus_}, options, world_size, 0, 40), expected);
    }
  }
  auto halves = rows_of_run({corpus_}, options, 2, 0, 17);
  for (RowOfRun& row : rows_of_run({corpus_}, options, 3, 17, 23)) halves.push_back(std::move(row));
  std::sort(halves.begin(), halves.end());
  EXPECT_EQ(halves, expected);
}

TEST_F(SentencePairsTest, CorporaOfAMixtureAreDrawnApart) {
  write_sample_corpus(*folder_ / "same", documents_, 0, 4000, info_with_sentences());
  const ShardedCorpus twin(*folder_ / "same", Split::kTrain);
  const DataOptions options = pair_options();
  const RowPlan plan = plan_of(options);
  std::vector<RowOfCorpus> rows[2];
  for (std::uint64_t row = 0; row < plan.rows(); ++row) {
    for (const std::size_t corpus : {0, 1}) rows[corpus].push_back({corpus, row, 0});
  }
  const std::vector<RowSource> sources = {{corpus_, &plan}, {&twin, &plan}};
  const Batch first = make_batch(sources, options, rows[0]);
  const Batch second = make_batch(sources, options, rows[1]);
  EXPECT_TRUE(torch::equal(first.pair_rows, second.pair_rows));
  const double equal =
      first.pair_labels.eq(second.pair_labels).to(torch::kDouble).mean().item<double>();
  EXPECT_NEAR(equal, 0.5, 0.1);
}

TEST_F(SentencePairsTest, RefusesWhatMakesNoPairs) {
  write_sample_corpus(*folder_ / "without", sample_documents(1, 50, 90), 0, 1500);
  const ShardedCorpus without(*folder_ / "without", Split::kTrain);
  const auto message = message_of<CorpusError>([&] {
    open_stream({corpus_, &without}, pair_options(), 0, 1, 0);
  });
  EXPECT_NE(message.find("where sentences begin"), std::string::npos) << message;
  DataOptions options = pair_options();
  for (const Packing packing : {Packing::kFull, Packing::kBestFit}) {
    options.packing = packing;
    EXPECT_THROW(open_stream({corpus_}, options, 0, 1, 0), std::invalid_argument);
  }
  EXPECT_THROW(open_stream({corpus_}, pair_options(4), 0, 1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::sentence_pairs_test

// Shards that are opened when they are read, and what can be said of rows without opening any.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "data/batch_stream.h"
#include "data/corpus_index.h"
#include "data/plan_cache.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::lazy_corpus_test {
namespace {

namespace fs = std::filesystem;

constexpr Packing kPackings[] = {Packing::kFull, Packing::kDocument, Packing::kBestFit};

DataOptions options_of(Packing packing) {
  DataOptions options;
  options.packing = packing;
  options.sequence_length = 32;
  options.global_batch = 3;
  options.micro_batch = 2;
  options.masking = Masking::kWholeWord;
  options.prefetch_steps = 1;
  return options;
}

class LazyCorpusTest : public testing::Test {
 protected:
  LazyCorpusTest() { write_sample_corpus(folder_ / "c", sample_documents(21, 400, 90), 0, 500); }

  std::vector<MixturePart> part_of(const ShardedCorpus& corpus) const {
    std::vector<MixturePart> parts;
    parts.emplace_back(corpus.document_table());
    parts.back().name = corpus.info().digest + " train";
    return parts;
  }

  std::unique_ptr<BatchStream> stream(const ShardedCorpus& corpus, const DataOptions& options,
                                      std::int64_t first_step, const PlanCache* plans) const {
    return std::make_unique<BatchStream>(
        std::vector<const ShardedCorpus*>{&corpus}, options,
        std::make_shared<SampleOrder>(part_of(corpus), options, plans), 0, 1, first_step);
  }

  TemporaryFolder folder_;
};

bool same_tokens(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Batch& x, const Batch& y) {
    return torch::equal(x.input_ids, y.input_ids) && x.rows == y.rows &&
           x.masks_hash == y.masks_hash;
  });
}

// The shards that the rows of a step lie in.
std::set<std::string> shards_of(const ShardedCorpus& corpus, const RowPlan& plan,
                                const std::vector<Batch>& batches) {
  std::set<std::string> files;
  for (const Batch& batch : batches) {
    for (const std::uint64_t row : batch.rows) {
      for (const RowPlan::Piece& piece : plan.pieces(row)) {
        std::uint64_t first = 0;
        for (const ShardSummary& shard : corpus.shards()) {
          if (piece.document >= first && piece.document < first + shard.documents) {
            files.insert(shard.file);
          }
          first += shard.documents;
        }
      }
    }
  }
  return files;
}

TEST_F(LazyCorpusTest, NothingIsOpenedBeforeItIsRead) {
  const ShardedCorpus now(folder_ / "c", Split::kTrain);
  const ShardedCorpus later(folder_ / "c", Split::kTrain, Open::kWhenRead);
  ASSERT_GT(now.shards().size(), 20u);
  EXPECT_EQ(now.open_shards(), now.shards().size());
  EXPECT_EQ(later.documents(), now.documents());
  EXPECT_EQ(later.tokens(), now.tokens());
  const RowPlan plan(later.document_table(), Packing::kFull, 32);
  EXPECT_EQ(plan.rows(), RowPlan(now.document_offsets(), Packing::kFull, 32).rows());
  EXPECT_EQ(later.open_shards(), 0u);

  const std::uint64_t last = later.documents() - 1;
  EXPECT_EQ(later.length(last), now.length(last));
  EXPECT_EQ(later.open_shards(), 1u);
  EXPECT_EQ(later.document_offsets(), now.document_offsets());
  EXPECT_EQ(later.open_shards(), later.shards().size());
}

// A run that goes on does not look at what it has left behind: it is not even there.
TEST_F(LazyCorpusTest, ASeekNeedsNoShardButThoseOfItsRows) {
  for (const Packing packing : kPackings) {
    const DataOptions options = options_of(packing);
    const PlanCache plans(folder_ / "plans");
    constexpr std::int64_t kStep = 25;
    std::set<std::string> needed;
    std::vector<Batch> expected;
    {
      const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
      expected = stream(corpus, options, kStep, nullptr)->next();
      const SampleOrder order(part_of(corpus), options);
      needed = shards_of(corpus, order.plan(0, 0), expected);
      order.keep_plans(plans);
    }
    const ShardedCorpus corpus(folder_ / "c", Split::kTrain, Open::kWhenRead);
    ASSERT_LT(needed.size(), corpus.shards().size() / 2);
    fs::create_directory(folder_ / "away");
    for (const ShardSummary& shard : corpus.shards()) {
      if (needed.count(shard.file) > 0) continue;
      fs::create_directories((folder_ / "away" / shard.file).parent_path());
      fs::rename(folder_ / "c" / shard.file, folder_ / "away" / shard.file);
    }
    EXPECT_TRUE(same_tokens(stream(corpus, options, kStep, &plans)->next(), expected));
    for (const ShardSummary& shard : corpus.shards()) {
      if (needed.count(shard.file) > 0) continue;
      fs::rename(folder_ / "away" / shard.file, folder_ / "c" / shard.file);
    }
  }
}

TEST_F(LazyCorpusTest, ThreadsMayReadForTheFirstTimeAtOnce) {
  const ShardedCorpus now(folder_ / "c", Split::kTrain);
  const ShardedCorpus later(folder_ / "c", Split::kTrain, Open::kWhenRead);
  const RowPlan plan(later.document_table(), Packing::kDocument, 32);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < now.documents(); ++i) {
        const std::uint64_t document = (i * 7 + thread * 101) % now.documents();
        std::vector<std::uint32_t> a(now.length(document)), b(later.length(document));
        now.read(document, 0, a.size(), a.data());
        later.read(document, 0, b.size(), b.data());
        if (a != b || plan.pieces(document).size() != 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LazyCorpusTest, ADamagedShardIsNamedWhenItIsReadAndNotBefore) {
  const ShardedCorpus corpus(folder_ / "c", Split::kTrain, Open::kWhenRead);
  const fs::path file = folder_ / "c" / corpus.shards().back().file;
  const std::string whole = read_bytes(file);
  write_bytes(file, whole.substr(0, whole.size() - 1));
  EXPECT_NO_THROW(corpus.length(0));
  const auto read_last = [&] { corpus.length(corpus.documents() - 1); };
  EXPECT_EQ(message_of<CorpusError>(read_last),
            file.string() + ": has " + std::to_string(whole.size() - 1) +
                " bytes, but index.json says " + std::to_string(whole.size()));
  write_bytes(file, whole);
  EXPECT_NO_THROW(read_last());
}

TEST_F(LazyCorpusTest, TablesAreKeptUnlessTheyAreDamaged) {
  const ShardedCorpus corpus(folder_ / "c", Split::kTrain);
  const auto documents = corpus.document_table();
  const PlanCache plans(folder_ / "deep/plans");
  for (const Packing packing : {Packing::kDocument, Packing::kBestFit}) {
    const PlanKey key{corpus.info().digest, packing, 32, false};
    EXPECT_FALSE(plans.find(key, *documents));
    const RowPlan plan(documents, packing, 32);
    plans.keep(key, *documents, plan.tables());
    const auto found = plans.find(key, *documents);
    ASSERT_TRUE(found);
    const RowPlan again(documents, packing, 32, false, *found);
    ASSERT_EQ(again.rows(), plan.rows());
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      const auto a = plan.pieces(row), b = again.pieces(row);
      ASSERT_EQ(a.size(), b.size());
      EXPECT_EQ(a.front().document, b.front().document);
      EXPECT_EQ(a.front().first, b.front().first);
      EXPECT_EQ(a.back().count, b.back().count);
    }
    for (const PlanKey& other :
         {PlanKey{"other", packing, 32, false}, PlanKey{key.corpus, packing, 33, false},
          PlanKey{key.corpus, packing, 32, true}, PlanKey{key.corpus, Packing::kFull, 32, false}}) {
      EXPECT_FALSE(plans.find(other, *documents));
    }
    EXPECT_FALSE(plans.find(key, DocumentOffsets({0, 5})));
  }
  for (const auto& [name, bytes] : tree_of(folder_ / "deep/plans")) {
    const fs::path file = folder_ / "deep/plans" / name;
    for (std::size_t byte = 0; byte < bytes.size(); byte += 61) {
      flip_bit(file, byte);
      for (const Packing packing : {Packing::kDocument, Packing::kBestFit}) {
        const PlanKey key{corpus.info().digest, packing, 32, false};
        const auto found = plans.find(key, *documents);
        if (!found) continue;
        const PlanTables right = RowPlan(documents, packing, 32).tables();
        EXPECT_EQ(found->rows, right.rows);
        EXPECT_EQ(found->shared.items, right.shared.items);
      }
      write_bytes(file, bytes);
    }
  }
}

// Of two thousand shards only one is there, and its rows can be trained on.
TEST_F(LazyCorpusTest, ABillionRowsNeedNoMoreThanTheirIndex) {
  const DataOptions options = options_of(Packing::kFull);
  CorpusIndex index =
      write_sample_corpus(folder_ / "one", sample_documents(8, 100, 90), 0, 1 << 20);
  ASSERT_EQ(index.train.size(), 1u);
  const ShardSummary there = index.train.front();
  ShardSummary absent = there;
  absent.documents = 500'000;
  absent.tokens = 15'000'000;
  index.train.clear();
  for (int i = 0; i < 2000; ++i) {
    absent.file = "train/absent-" + std::to_string(i) + ".h5";
    index.train.push_back(i == 1234 ? there : absent);
  }
  write_bytes(folder_ / "one/index.json", format_corpus_index(index));

  const ShardedCorpus corpus(folder_ / "one", Split::kTrain, Open::kWhenRead);
  const auto order = std::make_shared<SampleOrder>(part_of(corpus), options);
  const RowPlan& plan = order->plan(0, 0);
  EXPECT_GT(plan.rows(), 1'000'000'000u);
  // The first row that begins in the shard.
  const std::uint64_t row = (std::uint64_t{1234} * 15'500'000 + 29) / 30;
  const Batch batch = make_batch(corpus, plan, options, {row, row + 1}, {0, 0});
  EXPECT_EQ(batch.tokens, 64);
  EXPECT_EQ(corpus.open_shards(), 1u);
  EXPECT_NE(message_of<CorpusError>([&] {
              make_batch(corpus, plan, options, {row + 100'000}, {0});
            }).find("absent-1235.h5"),
            std::string::npos);
  EXPECT_EQ(order->step(300'000'000).first_sample, 900'000'000u);
}

// Says which parts were looked into.
class HugeTable : public DocumentTable {
 public:
  static constexpr std::uint64_t kLength = 1019, kDocuments = 250'000, kParts = 2000;

  const std::vector<Part>& parts() const override { return parts_; }
  std::uint64_t offset(std::size_t part, std::uint64_t document) const override {
    const std::lock_guard lock(mutex_);
    touched_.insert(part);
    return document * kLength;
  }
  std::set<std::size_t> touched() const { return touched_; }

 private:
  std::vector<Part> parts_ = std::vector<Part>(kParts, {kDocuments, kDocuments* kLength});
  mutable std::mutex mutex_;
  mutable std::set<std::size_t> touched_;
};

TEST(LazyRowPlan, OfABillionRowsLooksOnlyWhereARowIs) {
  for (const Packing packing : {Packing::kFull, Packing::kDocument}) {
    const auto documents = std::make_shared<HugeTable>();
    std::optional<PlanTables> tables;
    if (packing == Packing::kDocument) {
      tables =
          PlanTables{std::vector<std::uint64_t>(HugeTable::kParts, 2 * HugeTable::kDocuments), {}};
    }
    const RowPlan plan(documents, packing, 512, false, tables);
    EXPECT_EQ(plan.rows(), 1'000'000'000u);
    EXPECT_TRUE(documents->touched().empty());
    const std::uint64_t row = 765'432'100;
    const auto pieces = plan.pieces(row);
    if (packing == Packing::kDocument) {
      ASSERT_EQ(pieces.size(), 1u);
      EXPECT_EQ(pieces[0].document, row / 2);
      EXPECT_EQ(pieces[0].first, 0u);
      EXPECT_EQ(pieces[0].count, 510u);
    } else {
      EXPECT_EQ(pieces[0].document, row * 510 / (HugeTable::kLength + 1));
      EXPECT_EQ(pieces[0].first, row * 510 % (HugeTable::kLength + 1));
    }
    EXPECT_EQ(documents->touched(), std::set<std::size_t>{row / 500'000});
  }
}

}  // namespace
}  // namespace tupelo::lazy_corpus_test

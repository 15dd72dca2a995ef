// Shards that turn out bad, and the rows of a corpus without them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "data/bad_shard.h"
#include "data/batch_stream.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::bad_shards_test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 200;
constexpr Packing kPackings[] = {Packing::kFull, Packing::kDocument, Packing::kBestFit};

DataOptions options_of(Packing packing) {
  DataOptions options;
  options.packing = packing;
  options.sequence_length = 32;
  options.global_batch = 8;
  options.micro_batch = 3;
  options.masking = Masking::kWholeWord;
  return options;
}

std::set<ShardName> blamed_by(const std::vector<std::exception_ptr>& errors) {
  std::set<ShardName> shards;
  for (const std::exception_ptr& error : errors) {
    try {
      std::rethrow_exception(error);
    } catch (const BadShard& bad) {
      EXPECT_TRUE(shards.insert(bad.shard()).second) << "blamed twice: " << bad.shard().file;
    }
  }
  return shards;
}

class BadShardsTest : public testing::Test {
 protected:
  BadShardsTest() { write_sample_corpus(corpus_, documents_, 0, 1000); }

  ShardedCorpus open() const { return ShardedCorpus(corpus_, Split::kTrain, Open::kWhenRead); }
  fs::path file_of(std::size_t shard) const { return corpus_ / open().shards()[shard].file; }
  // A bit of the tokens of a shard, so that it opens.
  void spoil(std::size_t shard) const {
    const ByteRange tokens = open().shards()[shard].payload.front();
    flip_bit(file_of(shard), tokens.first + tokens.bytes / 2);
  }
  ShardName name_of(std::size_t shard) const {
    const ShardedCorpus corpus = open();
    return {corpus.info().digest, corpus.shards()[shard].file};
  }

  TemporaryFolder folder_;
  fs::path corpus_ = folder_ / "corpus";
  std::vector<SampleDocument> documents_ = sample_documents(5, 200, 90);
};

// What a run on `world_size` ranks uses, when it leaves out what its ranks find bad.
class SimulatedRun {
 public:
  SimulatedRun(ShardedCorpus corpus, const DataOptions& options, int world_size)
      : corpus_(std::move(corpus)), options_(options), world_size_(world_size) {
    begin({});
  }

  void make_steps(std::int64_t steps) {
    for (; step_ < steps; ++step_) {
      std::set<ShardName> bad;
      std::vector<Batch> batches = next(bad);
      while (!bad.empty()) {
        leave_out(std::exchange(bad, {}));
        batches = next(bad);
      }
      for (const Batch& batch : batches) use(batch);
    }
  }

  using Rows = std::multiset<std::uint64_t>;
  std::map<std::uint64_t, Rows> rows_of_epochs;
  std::map<std::int64_t, Rows> rows_of_steps;
  std::map<std::int64_t, std::set<ShardName>> left_out_at;
  std::uint64_t masks_hash = 0;

  const SampleOrder& order() const { return *order_; }

 private:
  void begin(const OrderStart& start) {
    const std::vector<MixturePart> parts = {MixturePart(corpus_.document_table())};
    order_ = std::make_shared<SampleOrder>(parts, options_, nullptr, start);
    streams_.clear();
    for (int rank = 0; rank < world_size_; ++rank) {
      streams_.push_back(std::make_unique<BatchStream>(std::vector<const ShardedCorpus*>{&corpus_},
                                                       options_, order_, rank, world_size_,
                                                       start.step));
    }
  }

  // Of all ranks.
  std::vector<Batch> next(std::set<ShardName>& bad) {
    std::vector<Batch> result;
    for (auto& stream : streams_) {
      try {
        for (Batch& batch : stream->next()) result.push_back(std::move(batch));
      } catch (const BadShard&) {
        bad.merge(blamed_by(stream->bad_shards()));
      }
    }
    return result;
  }

  void leave_out(const std::set<ShardName>& bad) {
    std::set<std::string> files;
    for (const ShardName& shard : bad) files.insert(shard.file);
    left_out_at[step_].insert(bad.begin(), bad.end());
    const OrderStart start = order_->start_after(step_);
    streams_.clear();
    corpus_ = corpus_.without(files);
    begin(start);
  }

  void use(const Batch& batch) {
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      rows_of_epochs[batch.epochs[i]].insert(batch.rows[i]);
      rows_of_steps[step_].insert(batch.rows[i]);
    }
    masks_hash += batch.masks_hash;
  }

  ShardedCorpus corpus_;
  DataOptions options_;
  int world_size_;
  std::int64_t step_ = 0;
  std::shared_ptr<const SampleOrder> order_;
  std::vector<std::unique_ptr<BatchStream>> streams_;
};

TEST_F(BadShardsTest, ACorpusWithoutShardsIsThatOfTheOthers) {
  const ShardedCorpus whole = open();
  ASSERT_GE(whole.shards().size(), 6u);
  whole.length(0);
  const std::set<std::string> files = {whole.shards()[1].file, whole.shards()[3].file,
                                       "train/no-such-shard.h5"};
  const ShardedCorpus rest = whole.without(files);
  EXPECT_EQ(rest.open_shards(), 1u);
  EXPECT_EQ(rest.info().digest, whole.info().digest);
  EXPECT_EQ(rest.shards().size(), whole.shards().size() - 2);
  std::uint64_t document = 0, of_rest = 0, tokens = 0;
  for (const ShardSummary& shard : whole.shards()) {
    const bool is_left_out = files.count(shard.file) > 0;
    if (!is_left_out) tokens += shard.tokens;
    for (std::uint64_t d = 0; d < shard.documents; ++d, ++document) {
      if (is_left_out) continue;
      std::vector<std::uint32_t> ids(rest.length(of_rest));
      rest.read(of_rest, 0, ids.size(), ids.data());
      EXPECT_EQ(ids, documents_[document].ids);
      EXPECT_EQ(rest.hash(of_rest), whole.hash(document));
      ++of_rest;
    }
  }
  EXPECT_EQ(rest.documents(), of_rest);
  EXPECT_EQ(rest.tokens(), tokens);
  EXPECT_EQ(rest.document_offsets().back(), tokens);
  EXPECT_THROW(rest.length(of_rest), std::out_of_range);
}

TEST_F(BadShardsTest, AShardHasItsDigestWhileItsBytesAreThose) {
  const ShardedCorpus corpus = open();
  EXPECT_TRUE(corpus.shard_has_its_digest(0));
  EXPECT_TRUE(corpus.shard_has_its_digest(1));
  spoil(0);
  EXPECT_FALSE(corpus.shard_has_its_digest(0));
  fs::remove(file_of(1));
  EXPECT_FALSE(corpus.shard_has_its_digest(1));
  ASSERT_EQ(::mkfifo(file_of(1).c_str(), 0600), 0);
  EXPECT_FALSE(corpus.shard_has_its_digest(1));
}

// The shard is named, and the error is what it would be of any file.
TEST_F(BadShardsTest, WhateverIsInPlaceOfAShardIsBlamedOnIt) {
  const fs::path file = file_of(2);
  const std::string sound = read_bytes(file);
  const auto blamed = [&] {
    try {
      open().verify_shard(2);
    } catch (const CorpusError& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      const auto* bad = dynamic_cast<const BadShard*>(&error);
      return bad != nullptr && bad->shard() == name_of(2);
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      const auto* bad = dynamic_cast<const BadShard*>(&error);
      return bad != nullptr && bad->shard() == name_of(2);
    }
    return false;
  };
  EXPECT_FALSE(blamed());
  spoil(2);
  EXPECT_TRUE(blamed());
  for (const std::string& bytes :
       {std::string(), std::string("garbage"), sound.substr(0, sound.size() / 2), sound + "x"}) {
    write_bytes(file, bytes);
    EXPECT_TRUE(blamed()) << bytes.size();
  }
  fs::remove(file);
  EXPECT_TRUE(blamed());
  fs::create_directory(file);
  EXPECT_TRUE(blamed());
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(blamed());
  fs::remove(file);
  fs::create_symlink("nowhere", file);
  EXPECT_TRUE(blamed());
  fs::remove(file);
  fs::create_symlink(file.filename(), file);  // ELOOP: the system refuses
  EXPECT_TRUE(blamed());
}

// Content counts, not whether its name is a link's.
TEST_F(BadShardsTest, ALinkToTheSoundShardIsSound) {
  fs::rename(file_of(2), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", file_of(2));
  open().verify_shard(2);
}

TEST_F(BadShardsTest, WhatIsNotAShardsIsNotBlamedOnOne) {
  const ShardedCorpus corpus = open();
  std::uint32_t id;
  try {
    corpus.read(corpus.documents(), 0, 1, &id);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_EQ(dynamic_cast<const BadShard*>(&error), nullptr);
  }
  std::uint8_t flag;
  try {
    corpus.read_sentence_starts(0, 0, 1, &flag);
    FAIL();
  } catch (const CorpusError& error) {
    EXPECT_EQ(dynamic_cast<const BadShard*>(&error), nullptr);
  }
}

TEST_F(BadShardsTest, AStreamBlamesEveryShardOfItsStepOnce) {
  DataOptions options = options_of(Packing::kDocument);
  options.global_batch = 400;  // all rows of an epoch, and more
  const ShardedCorpus corpus = open();
  const std::vector<MixturePart> parts = {MixturePart(corpus.document_table())};
  const auto order = std::make_shared<SampleOrder>(parts, options);
  for (const std::size_t shard : {1, 4, 5}) spoil(shard);
  BatchStream stream({&corpus}, options, order, 0, 1, 0);
  EXPECT_THROW(stream.next(), CorpusError);
  EXPECT_EQ(blamed_by(stream.bad_shards()),
            (std::set<ShardName>{name_of(1), name_of(4), name_of(5)}));
}

TEST_F(BadShardsTest, AnyNumberOfRanksLeavesOutTheSameAndUsesTheSameRows) {
  std::set<ShardName> bad;
  for (const std::size_t shard : {1, 2, 5, 6}) {
    spoil(shard);
    bad.insert(name_of(shard));
  }
  for (const Packing packing : kPackings) {
    DataOptions options = options_of(packing);
    options.global_batch = 5;  // few, so that shards fail at different steps, and several at one
    SimulatedRun alone(open(), options, 1);
    alone.make_steps(kSteps / 4);
    std::set<ShardName> left_out;
    for (const auto& [step, shards] : alone.left_out_at) {
      left_out.insert(shards.begin(), shards.end());
    }
    EXPECT_EQ(left_out, bad);
    EXPECT_LT(alone.left_out_at.size(), bad.size());
    for (const int world_size : {2, 4}) {
      SimulatedRun run(open(), options, world_size);
      run.make_steps(kSteps / 4);
      EXPECT_EQ(run.left_out_at, alone.left_out_at);
      EXPECT_EQ(run.rows_of_steps, alone.rows_of_steps);
      EXPECT_EQ(run.masks_hash, alone.masks_hash);
    }
  }
}

TEST_F(BadShardsTest, EveryRowOfTheOtherShardsIsUsedOnceInEachEpoch) {
  for (const std::size_t shard : {2, 5}) spoil(shard);
  const ShardedCorpus rest = open().without({name_of(2).file, name_of(5).file});
  for (const Packing packing : kPackings) {
    SimulatedRun run(open(), options_of(packing), 2);
    run.make_steps(kSteps);
    ASSERT_FALSE(run.left_out_at.empty());
    const RowPlan plan(rest.document_table(), packing, 32);
    const std::uint64_t first = run.order().start().epochs.front();
    const std::uint64_t unfinished = run.order().epoch_after(0, kSteps);
    ASSERT_GT(unfinished, first + 2);
    for (const auto& [epoch, rows] : run.rows_of_epochs) {
      const std::set<std::uint64_t> different(rows.begin(), rows.end());
      EXPECT_EQ(different.size(), rows.size()) << "epoch " << epoch << " used a row twice";
      if (epoch < first || epoch >= unfinished) continue;
      EXPECT_EQ(rows.size(), plan.rows()) << "epoch " << epoch;
    }
  }
}

}  // namespace
}  // namespace tupelo::bad_shards_test

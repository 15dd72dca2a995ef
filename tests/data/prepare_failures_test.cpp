// What prepare_corpus refuses, and what is left behind when it fails or is killed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "data/content_digest.h"
#include "data/corpus.h"
#include "data/corpus_writer.h"
#include "data/document_text.h"
#include "data/prepare.h"
#include "tests/data/prepare_fixture.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::prepare_failures_test {
namespace {

namespace fs = std::filesystem;

class PrepareFailures : public PrepareTest {};

TEST_F(PrepareFailures, NamesTheJsonLineThatIsWrong) {
  write_bytes(folder_ / "in/c.jsonl", "{\"text\": \"a\"}\n\n{\"txt\": \"b\"}\n");
  EXPECT_EQ(refusal<CorpusError>(options()),
            (folder_ / "in/c.jsonl").string() + ":3: has no key 'text'");
  expect_only({});
}

TEST_F(PrepareFailures, RefusesInputsWithoutText) {
  PrepareOptions chosen = options();
  chosen.train_vocab_size.reset();
  write_bytes(folder_ / "in/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  chosen.vocab_file = folder_ / "in/vocab.txt";
  write_bytes(folder_ / "in/a.txt", "\n \n");
  chosen.inputs = {folder_ / "in/a.txt"};
  EXPECT_TRUE(contains(refusal<CorpusError>(chosen), "no document with text"));
  expect_only({});
}

TEST_F(PrepareFailures, RefusesToHoldOutEverything) {
  write_bytes(folder_ / "in/a.txt", "stone stone stone");
  fs::remove(folder_ / "in/b.txt");
  fs::remove(folder_ / "in/c.jsonl");
  write_bytes(folder_ / "in/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nstone\n");
  PrepareOptions chosen = options();
  chosen.inputs = {folder_ / "in/a.txt"};
  chosen.train_vocab_size.reset();
  chosen.vocab_file = folder_ / "in/vocab.txt";
  ContentDigest digest;
  const std::uint64_t hash = document_hash("stone stone stone", digest);
  chosen.held_out = 0.999999;
  ASSERT_TRUE(is_held_out(hash, chosen.held_out));
  EXPECT_TRUE(contains(refusal<CorpusError>(chosen), "held out, so none is left to train on"));
  expect_only({});
}

TEST_F(PrepareFailures, RefusesOptionsThatMakeNoSense) {
  const auto refused = [this](const std::function<void(PrepareOptions&)>& change) {
    PrepareOptions chosen = options();
    change(chosen);
    EXPECT_THROW(prepare_corpus(chosen), std::invalid_argument);
    expect_only({});
  };
  refused([](PrepareOptions& o) { o.inputs.clear(); });
  refused([](PrepareOptions& o) { o.output.clear(); });
  refused([](PrepareOptions& o) { o.output = "/"; });
  refused([](PrepareOptions& o) { o.train_vocab_size.reset(); });
  refused([](PrepareOptions& o) { o.vocab_file = "vocab.txt"; });
  refused([](PrepareOptions& o) { o.train_vocab_size = 3; });
  refused([](PrepareOptions& o) { o.text_key.clear(); });
  refused([](PrepareOptions& o) { o.held_out = 1; });
  refused([](PrepareOptions& o) { o.held_out = -0.1; });
  refused([](PrepareOptions& o) { o.held_out = std::nan(""); });
  refused([](PrepareOptions& o) { o.shard_tokens = 0; });
  refused([](PrepareOptions& o) { o.shard_tokens = std::uint64_t{1} << 40; });
  refused([](PrepareOptions& o) { o.threads = 0; });
  refused([](PrepareOptions& o) { o.language = "no such\nthing"; });
  refused([this](PrepareOptions& o) { o.output = folder_ / "in/corpus"; });
  refused([this](PrepareOptions& o) {
    o.inputs = {folder_ / "*"};
    o.output = folder_ / "in/corpus";
  });
  refused([](PrepareOptions& o) { o.text_column.assign(1, '0'); });
  refused([](PrepareOptions& o) { o.text_column.clear(); });
  refused([](PrepareOptions& o) { o.cleaning.most_foreign = 1.5; });
}

TEST_F(PrepareFailures, ReplacesACorpusOnlyWhenForced) {
  const PrepareOptions chosen = options();
  prepare_corpus(chosen);
  const auto before = tree_of(chosen.output);
  EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { prepare_corpus(chosen); }),
                       "exists already"));
  EXPECT_EQ(tree_of(chosen.output), before);

  PrepareOptions forced = options();
  forced.force = true;
  forced.held_out = 0.5;
  prepare_corpus(forced);
  EXPECT_NE(tree_of(chosen.output), before);
  EXPECT_NO_THROW(ShardedCorpus(chosen.output, Split::kTrain));
  expect_only({"corpus"});
}

TEST_F(PrepareFailures, ForceDoesNotReplaceWhatIsNoCorpus) {
  fs::create_directory(folder_ / "corpus");
  write_bytes(folder_ / "corpus/thesis.txt", "years of work");
  PrepareOptions chosen = options();
  chosen.force = true;
  EXPECT_THROW(prepare_corpus(chosen), std::invalid_argument);
  EXPECT_EQ(read_bytes(folder_ / "corpus/thesis.txt"), "years of work");
  fs::remove_all(folder_ / "corpus");
  fs::create_directory(folder_ / "corpus");
  EXPECT_NO_THROW(prepare_corpus(chosen));
}

TEST_F(PrepareFailures, AFailedReplacementKeepsTheOldCorpus) {
  PrepareOptions chosen = options();
  prepare_corpus(chosen);
  const auto before = tree_of(chosen.output);
  write_bytes(folder_ / "in/c.jsonl", "not json\n");
  chosen.force = true;
  EXPECT_THROW(prepare_corpus(chosen), CorpusError);
  EXPECT_EQ(tree_of(chosen.output), before);
  expect_only({"corpus"});
}

TEST_F(PrepareFailures, MakesMissingParents) {
  PrepareOptions chosen = options();
  chosen.output = folder_ / "new/corpora/zh/";
  prepare_corpus(chosen);
  EXPECT_NO_THROW(ShardedCorpus(folder_ / "new/corpora/zh", Split::kTrain));
}

TEST_F(PrepareFailures, AFullDiskLeavesNothing) {
  // A limit on the size of files stands in for the disk: the same call fails in the same place.
  for (const rlim_t limit : {rlim_t{100}, rlim_t{3000}, rlim_t{9000}}) {
    const int status = in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit bound{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &bound);
      try {
        prepare_corpus(options());
      } catch (const std::system_error& error) {
        return error.code().value() == EFBIG && contains(error.what(), "cannot write") ? 0 : 1;
      } catch (...) {
        return 2;
      }
      return 3;
    });
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    expect_only({});
  }
}

TEST_F(PrepareFailures, AKilledRunLeavesNoCorpusAndTheNextOneClearsUp) {
  const PrepareOptions chosen = options();
  for (const std::string phase : {"vocabulary", "tokenize", "verify"}) {
    const int status = in_child([&] {
      prepare_corpus(chosen, [&](const PrepareProgress& progress) {
        if (progress.phase == phase) ::raise(SIGKILL);
      });
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(fs::exists(chosen.output));
  }
  prepare_corpus(chosen);
  expect_only({"corpus"});
  prepare_corpus(options("other"));
  EXPECT_EQ(tree_of(chosen.output), tree_of(folder_ / "other"));
}

TEST_F(PrepareFailures, TwoRunsAtOnceDoNotClearEachOther) {
  // The second run begins and ends inside the first.
  bool nested = false;
  prepare_corpus(options("corpus"), [&](const PrepareProgress& progress) {
    if (progress.phase != "tokenize" || nested) return;
    nested = true;
    PrepareOptions other = options("corpus");
    other.held_out = 0.1;
    prepare_corpus(other);
    fs::remove_all(folder_ / "corpus");
  });
  EXPECT_TRUE(nested);
  EXPECT_NO_THROW(ShardedCorpus(folder_ / "corpus", Split::kTrain));
  expect_only({"corpus"});
}

}  // namespace
}  // namespace tupelo::prepare_failures_test

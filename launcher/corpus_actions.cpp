#include "launcher/corpus_actions.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "data/archive/corpus_archive.h"
#include "data/bad_shard.h"
#include "data/corpus_rewrite.h"
#include "launcher/corpus_description.h"
#include "launcher/exit_codes.h"
#include "launcher/nearest_name.h"
#include "launcher/run_folder.h"
#include "launcher/value_text.h"

namespace tupelo::corpus_actions {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

Progress showing_progress(Console& console, const std::string& things) {
  return [&console, things](std::uint64_t done, std::uint64_t total) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total, 1));
    console.progress(progress_bar(share, 30) + " " + count(done) + " " + things);
  };
}

std::uint64_t count_option(const CommandLine& line, const std::string& name,
                           std::uint64_t fallback) {
  if (!line.has(name)) return fallback;
  return reading_option(name, [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value(name), 1, INT64_C(1) << 50));
  });
}

std::string count(std::uint64_t number) { return grouped(static_cast<std::int64_t>(number)); }

void tell_corpus(const fs::path& folder, const CommandLine& line) {
  const ShardedCorpus train(folder, Split::kTrain), held_out(folder, Split::kHeldOut);
  if (line.has("json")) {
    std::cout << ordered_json{{"corpus", folder.string()},
                              {"digest", train.info().digest},
                              {"train_documents", train.documents()},
                              {"train_tokens", train.tokens()},
                              {"train_shards", train.shards().size()},
                              {"held_out_documents", held_out.documents()},
                              {"held_out_tokens", held_out.tokens()},
                              {"held_out_shards", held_out.shards().size()}}
                     .dump(1)
              << std::endl;
    return;
  }
  std::cout << folder.string() << ": train " << count(train.documents()) << " documents, "
            << count(train.tokens()) << " tokens, " << train.shards().size() << " shards; held out "
            << count(held_out.documents()) << " documents, " << count(held_out.tokens())
            << " tokens, " << held_out.shards().size() << " shards" << std::endl;
}

namespace {

Split split_option(const CommandLine& line) {
  const std::string name = reading_option("split", [&] {
    return one_of(line.value("split", "train"), {"train", "held-out"});
  });
  return name == "train" ? Split::kTrain : Split::kHeldOut;
}

RewriteOptions rewrite_options(const CommandLine& line, Console& console) {
  RewriteOptions options;
  options.shard_tokens = count_option(line, "shard-tokens", options.shard_tokens);
  options.force = line.has("force");
  options.progress = showing_progress(console, "tokens");
  return options;
}

// Text in a file that is there whole or not at all; "-" is standard output.
class TextOutput {
 public:
  TextOutput(const std::string& name, bool force)
      : name_(name == "-" ? name : replaceable_file(name).string()), temporary_(name_ + ".new") {
    if (name_ == "-") return;
    if (!force && fs::exists(name_)) {
      throw std::invalid_argument("--output: " + name_ + " exists; --force replaces it");
    }
    file_.open(temporary_, std::ios::binary | std::ios::trunc);
    check("create");
  }
  ~TextOutput() {
    std::error_code ignored;
    if (name_ != "-") fs::remove(temporary_, ignored);
  }
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  void write(const std::string& text) {
    (name_ == "-" ? std::cout : file_) << text;
    check("write");
  }
  void finish() {
    if (name_ == "-") {
      std::cout << std::flush;
      return;
    }
    file_.close();
    check("write");
    fs::rename(temporary_, name_);
  }

 private:
  void check(const char* action) const {
    if (name_ == "-" ? std::cout.good() : file_.good()) return;
    throw std::system_error(errno, std::generic_category(),
                            std::string("cannot ") + action + " " + name_);
  }

  std::string name_, temporary_;
  std::ofstream file_;
};

ArchiveOptions archive_options(const CommandLine& line, Console& console) {
  ArchiveOptions options;
  options.level = reading_option("level", [&] {
    return static_cast<int>(
        parse_integer(line.value("level", std::to_string(options.level)), 1, 19));
  });
  options.threads = reading_option("threads", [&] {
    const std::string cores = std::to_string(std::max(1u, std::thread::hardware_concurrency()));
    return static_cast<int>(parse_integer(line.value("threads", cores), 1, 1024));
  });
  options.force = line.has("force");
  options.progress = showing_progress(console, "bytes");
  return options;
}

void tell_archive(const std::string& archive, const ArchiveReport& report, const CommandLine& line,
                  Console& console) {
  if (line.has("json")) {
    std::cout << ordered_json{{"archive", archive},
                              {"files", report.files},
                              {"bytes", report.bytes},
                              {"compressed_bytes", report.compressed_bytes}}
                     .dump(1)
              << std::endl;
    return;
  }
  console.line(archive + ": " + count(report.files) + " files, " + count(report.bytes) +
               " bytes in " + count(report.compressed_bytes) + ", every digest is right");
}

struct BadShardFound {
  std::string file, sentence;
  ExitCode code;
  std::exception_ptr error;
};

// What is wrong with the shard itself, not with what the index says of it.
std::optional<BadShardFound> problem_of(const ShardedCorpus& corpus, std::size_t shard) {
  try {
    corpus.verify_shard(shard);
  } catch (const std::exception& error) {
    const bool is_bad = dynamic_cast<const BadShard*>(&error) != nullptr;
    if (!is_bad || corpus.shard_has_its_digest(shard)) throw;
    return BadShardFound{corpus.shards()[shard].file, sentence_of(error), exit_code_of(error),
                         std::current_exception()};
  }
  return std::nullopt;
}

void print_verification(ordered_json object, const std::vector<BadShardFound>& bad) {
  object["verified"] = bad.empty();
  object["bad_shards"] = ordered_json::array();
  for (const BadShardFound& found : bad) {
    object["bad_shards"].push_back({{"file", found.file}, {"problem", found.sentence}});
  }
  std::cout << object.dump(1) << std::endl;
}

[[noreturn]] void throw_bad(const std::string& folder, const std::vector<BadShardFound>& bad,
                            std::size_t shards) {
  if (bad.size() == 1) std::rethrow_exception(bad.front().error);
  std::string text = folder + ": " + count(bad.size()) + " of " + count(shards) + " shards are bad";
  const char* separator = ": ";
  for (const BadShardFound& found : bad) text += std::exchange(separator, "; ") + found.sentence;
  throw AgreedError(bad.front().code, text);
}

}  // namespace

void info(const Words& corpora, const CommandLine& line) {
  const ordered_json description = describe_corpus(corpora.front(), line.has("verify"));
  if (line.has("json")) {
    std::cout << description.dump(1) << std::endl;
  } else {
    print_corpus(description);
  }
}

void verify(const Words& corpora, const CommandLine& line) {
  const std::string& folder = corpora.front();
  const ShardedCorpus train(folder, Split::kTrain, Open::kWhenRead);
  const ShardedCorpus held_out(folder, Split::kHeldOut, Open::kWhenRead);
  const std::size_t shards = train.shards().size() + held_out.shards().size();
  const std::uint64_t tokens = train.tokens() + held_out.tokens();
  Console console(line.has("json"));
  const Progress progress = showing_progress(console, "shards");
  std::size_t done = 0;
  std::vector<BadShardFound> bad;
  for (const ShardedCorpus* corpus : {&train, &held_out}) {
    for (std::size_t shard = 0; shard < corpus->shards().size(); ++shard) {
      if (auto found = problem_of(*corpus, shard)) bad.push_back(std::move(*found));
      progress(++done, shards);
    }
  }
  if (bad.empty()) ShardedCorpus::load_tokenizer(folder);
  const std::string& digest = train.info().digest;
  if (line.has("json")) {
    print_verification(
        {{"corpus", folder}, {"digest", digest}, {"shards", shards}, {"tokens", tokens}}, bad);
  }
  if (!bad.empty()) throw_bad(folder, bad, shards);
  console.line(folder + ": " + count(shards) + " shards, " + count(tokens) +
               " tokens, every digest is right; " + digest);
}

void head(const Words& corpora, const CommandLine& line) {
  const std::uint64_t documents = count_option(line, "documents", 3);
  ordered_json list = ordered_json::array();
  decode_documents(corpora.front(), split_option(line), 0, documents,
                   [&](std::uint64_t document, const std::string& text) {
                     if (line.has("json")) {
                       list.push_back({{"document", document}, {"text", text}});
                     } else {
                       std::cout << "--- document " << document << "\n" << text << "\n";
                     }
                   });
  if (line.has("json")) std::cout << list.dump(1) << "\n";
  std::cout << std::flush;
}

void export_text(const Words& corpora, const CommandLine& line) {
  TextOutput output(line.required("output"), line.has("force"));
  const std::uint64_t documents = count_option(line, "documents", ~std::uint64_t{0});
  std::uint64_t written = 0;
  decode_documents(corpora.front(), split_option(line), 0, documents,
                   [&](std::uint64_t, const std::string& text) {
                     output.write(text + "\n\n");
                     ++written;
                   });
  output.finish();
  Console(/*silent=*/line.value("output") == "-")
      .line(line.value("output") + ": " + count(written) + " documents");
}

void merge(const Words& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const fs::path output = line.required("output");
  merge_corpora({corpora.begin(), corpora.end()}, output, rewrite_options(line, console));
  tell_corpus(output, line);
}

void split(const Words& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const fs::path output = line.required("output");
  line.required("parts");
  const std::uint64_t parts = reading_option("parts", [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value("parts"), 1, 99999));
  });
  const auto folders = split_corpus(corpora.front(), output, parts, rewrite_options(line, console));
  for (const fs::path& folder : folders) tell_corpus(folder, line);
}

void archive(const Words& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const std::string output = line.required("output");
  tell_archive(output, archive_corpus(corpora.front(), output, archive_options(line, console)),
               line, console);
}

void restore(const Words& archives, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const std::string output = line.required("output");
  restore_corpus(archives.front(), output, archive_options(line, console));
  tell_corpus(output, line);
}

}  // namespace tupelo::corpus_actions

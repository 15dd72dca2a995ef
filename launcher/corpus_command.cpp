#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "data/corpus_rewrite.h"
#include "data/import/megatron.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/nearest_name.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Takes = VerbOption::Takes;

// What a word behind `tupelo corpus` takes.
struct Action {
  std::string name;
  bool many_corpora;
  std::vector<std::string> options;  // besides json
  void (*run)(const std::vector<std::string>& corpora, const CommandLine& line);
};

std::uint64_t count_option(const CommandLine& line, const std::string& name,
                           std::uint64_t fallback) {
  if (!line.has(name)) return fallback;
  return reading_option(name, [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value(name), 1, INT64_C(1) << 50));
  });
}

Split split_option(const CommandLine& line) {
  const std::string name = reading_option("split", [&] {
    return one_of(line.value("split", "train"), {"train", "held-out"});
  });
  return name == "train" ? Split::kTrain : Split::kHeldOut;
}

std::string count(std::uint64_t number) { return grouped(static_cast<std::int64_t>(number)); }

RewriteOptions rewrite_options(const CommandLine& line, Console& console) {
  RewriteOptions options;
  options.shard_tokens = count_option(line, "shard-tokens", options.shard_tokens);
  options.force = line.has("force");
  options.progress = [&console](std::uint64_t done, std::uint64_t total) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total, 1));
    console.progress(progress_bar(share, 30) + " " + count(done) + " tokens");
  };
  return options;
}

void verify(const std::vector<std::string>& corpora, const CommandLine& line) {
  ordered_json object = {{"corpus", corpora.front()}};
  std::uint64_t shards = 0, tokens = 0;
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    const ShardedCorpus corpus(corpora.front(), split);
    for (std::size_t shard = 0; shard < corpus.shards().size(); ++shard) corpus.verify_shard(shard);
    shards += corpus.shards().size();
    tokens += corpus.tokens();
    object["digest"] = corpus.info().digest;
  }
  ShardedCorpus::load_tokenizer(corpora.front());
  object["shards"] = shards;
  object["tokens"] = tokens;
  object["verified"] = true;
  if (line.has("json")) {
    std::cout << object.dump(1) << std::endl;
  } else {
    std::cout << corpora.front() << ": " << count(shards) << " shards, " << count(tokens)
              << " tokens, every digest is right; " << object["digest"].get<std::string>()
              << std::endl;
  }
}

void head(const std::vector<std::string>& corpora, const CommandLine& line) {
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

// Text in a file that is there whole or not at all; "-" is standard output.
class TextOutput {
 public:
  TextOutput(const std::string& name, bool force) : name_(name), temporary_(name + ".new") {
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

void export_text(const std::vector<std::string>& corpora, const CommandLine& line) {
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

void merge(const std::vector<std::string>& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const fs::path output = line.required("output");
  merge_corpora({corpora.begin(), corpora.end()}, output, rewrite_options(line, console));
  tell_corpus(output, line);
}

void split(const std::vector<std::string>& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  const fs::path output = line.required("output");
  line.required("parts");
  const std::uint64_t parts = reading_option("parts", [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value("parts"), 1, 99999));
  });
  const auto folders = split_corpus(corpora.front(), output, parts, rewrite_options(line, console));
  for (const fs::path& folder : folders) tell_corpus(folder, line);
}

void import(const std::vector<std::string>& prefixes, const CommandLine& line) {
  MegatronImport options;
  options.prefixes.assign(prefixes.begin(), prefixes.end());
  options.tokenizer = line.required("tokenizer");
  options.output = line.required("output");
  options.lowercase = !line.has("cased");
  options.shard_tokens = count_option(line, "shard-tokens", options.shard_tokens);
  options.held_out = reading_option(
      "held-out", [&] { return parse_number(line.value("held-out", "1%"), 0, 0.5); });
  options.language = line.value("language", options.language);
  options.force = line.has("force");
  import_megatron(options);
  tell_corpus(options.output, line);
}

const std::vector<Action>& actions() {
  static const std::vector<Action> all = {
      {"verify", false, {}, verify},
      {"head", false, {"split", "documents"}, head},
      {"merge", true, {"output", "shard-tokens", "force"}, merge},
      {"reshard", false, {"output", "shard-tokens", "force"}, merge},
      {"split", false, {"output", "parts", "shard-tokens", "force"}, split},
      {"export-text", false, {"output", "split", "documents", "force"}, export_text},
      {"import-megatron",
       true,
       {"output", "tokenizer", "cased", "held-out", "language", "shard-tokens", "force"},
       import}};
  return all;
}

const Action& chosen_action(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Action& action : actions()) {
    if (!words.empty() && action.name == words.front()) return action;
    names.push_back(action.name);
  }
  if (words.empty()) {
    throw std::invalid_argument("tupelo corpus: an action is missing; see tupelo corpus --help");
  }
  throw std::invalid_argument("tupelo corpus: " + unknown_name("action", words.front(), names));
}

void check_options(const Verb& verb, const Action& action, const CommandLine& line) {
  for (const VerbOption& option : verb.options) {
    const bool common = option.name == "action" || option.name == "json";
    const bool own = std::find(action.options.begin(), action.options.end(), option.name) !=
                     action.options.end();
    if (!line.has(option.name) || common || own) continue;
    throw std::invalid_argument("tupelo corpus " + action.name + ": --" + option.name +
                                " does not belong here");
  }
}

ExitCode run_corpus(const Verb& verb, const std::vector<std::string>& words) {
  const CommandLine line(verb, words);
  const std::vector<std::string>& given = line.values("action");
  const Action& action = chosen_action(given);
  check_options(verb, action, line);
  const std::vector<std::string> corpora(given.begin() + 1, given.end());
  if (corpora.empty()) {
    throw std::invalid_argument("tupelo corpus " + action.name +
                                ": the folder of a corpus is missing");
  }
  if (corpora.size() > 1 && !action.many_corpora) {
    throw std::invalid_argument("tupelo corpus " + action.name + ": one corpus at a time, '" +
                                corpora[1] + "' is one too many");
  }
  action.run(corpora, line);
  return ExitCode::kDone;
}

}  // namespace

Command corpus_command() {
  Verb verb;
  verb.name = "corpus";
  verb.usage =
      "tupelo corpus verify CORPUS\n"
      "       tupelo corpus head CORPUS [--split held-out] [--documents N]\n"
      "       tupelo corpus merge CORPUS... --output CORPUS [--shard-tokens N]\n"
      "       tupelo corpus reshard CORPUS --output CORPUS --shard-tokens N\n"
      "       tupelo corpus split CORPUS --parts N --output NAME\n"
      "       tupelo corpus export-text CORPUS --output FILE|- [--split held-out]\n"
      "       tupelo corpus import-megatron PREFIX... --tokenizer PATH --output CORPUS";
  verb.summary =
      "Works on prepared corpora: checks them, shows their text, puts them together or takes them "
      "apart. Documents\nstay in the split that they are in; a new corpus appears only when it is "
      "complete (tupelo inspect tells what one holds).";
  verb.options = {
      {"action", Takes::kManyValues, "ACTION CORPUS...", "as above (the word may be left out)"},
      {"output", Takes::kOneValue, "PATH",
       "corpus or file to create; of split: what the parts' names begin with"},
      {"shard-tokens", Takes::kOneValue, "COUNT",
       "tokens after which a shard is closed (67108864)"},
      {"tokenizer", Takes::kOneValue, "PATH",
       "import: the tokenizer that made the ids, in any form that prepare --vocab takes"},
      {"cased", Takes::kNothing, "", "import: a vocab.txt keeps upper case and accents"},
      {"held-out", Takes::kOneValue, "SHARE", "import: share of documents held out (1%)"},
      {"language", Takes::kOneValue, "CODE", "import: recorded in the corpus (zh)"},
      {"parts", Takes::kOneValue, "N", "corpora to make, of about equally many tokens"},
      {"split", Takes::kOneValue, "NAME", "train or held-out (train)"},
      {"documents", Takes::kOneValue, "N", "at most so many (head: 3, export-text: all)"},
      {"force", Takes::kNothing, "", "replace what stands at the output"},
      {"json", Takes::kNothing, "", "print JSON"},
      {"help", Takes::kNothing, "", "this text"}};
  verb.positional = "action";
  return {verb, run_corpus};
}

}  // namespace tupelo

#include <algorithm>
#include <stdexcept>

#include "launcher/commands.h"
#include "launcher/corpus_actions.h"
#include "launcher/nearest_name.h"

namespace tupelo {
namespace {

using namespace corpus_actions;
using Takes = VerbOption::Takes;

// What a word behind `tupelo corpus` takes.
struct Action {
  std::string name;
  bool many_corpora;
  std::vector<std::string> options;  // besides json
  void (*run)(const std::vector<std::string>& corpora, const CommandLine& line);
};

std::vector<std::string> import_options(const std::vector<std::string>& more) {
  std::vector<std::string> names = {"output",       "tokenizer",       "cased",
                                    "segmenter",    "held-out",        "language",
                                    "shard-tokens", "user-dictionary", "force"};
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const std::vector<Action>& actions() {
  static const std::vector<Action> all = {
      {"info", false, {"verify"}, info},
      {"verify", false, {}, verify},
      {"head", false, {"split", "documents"}, head},
      {"merge", true, {"output", "shard-tokens", "force"}, merge},
      {"reshard", false, {"output", "shard-tokens", "force"}, merge},
      {"split", false, {"output", "parts", "shard-tokens", "force"}, split},
      {"export-text", false, {"output", "split", "documents", "force"}, export_text},
      {"archive", false, {"output", "level", "threads", "force"}, archive},
      {"restore", false, {"output", "threads", "force"}, restore},
      {"import-megatron", true, import_options({}), import_from_megatron},
      {"import-nvidia", true, import_options({"keep-duplicates"}), import_from_nvidia},
      {"export-nvidia",
       false,
       {"output", "seq-length", "max-predictions", "duplicates", "packing", "masking",
        "mask-fraction", "seed", "rows-per-file", "force"},
       export_to_nvidia}};
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
      "tupelo corpus info CORPUS [--verify]\n"
      "       tupelo corpus verify CORPUS\n"
      "       tupelo corpus head CORPUS [--split held-out] [--documents N]\n"
      "       tupelo corpus merge CORPUS... --output CORPUS [--shard-tokens N]\n"
      "       tupelo corpus reshard CORPUS --output CORPUS --shard-tokens N\n"
      "       tupelo corpus split CORPUS --parts N --output NAME\n"
      "       tupelo corpus export-text CORPUS --output FILE|- [--split held-out]\n"
      "       tupelo corpus archive CORPUS --output ARCHIVE [--level N]\n"
      "       tupelo corpus restore ARCHIVE --output CORPUS\n"
      "       tupelo corpus import-megatron PREFIX... --tokenizer PATH --output CORPUS\n"
      "       tupelo corpus import-nvidia FILE|FOLDER... --tokenizer PATH --output CORPUS\n"
      "       tupelo corpus export-nvidia CORPUS --output FOLDER [--seq-length N]";
  verb.summary =
      "Works on prepared corpora: checks them, shows their text, puts them together or takes them "
      "apart. Documents\nstay in the split that they are in; what is made appears only when it is "
      "complete. An archive holds a corpus\ncompressed by zstd, and gives back the same bytes. "
      "export-nvidia writes the HDF5 files of NVIDIA's BERT recipes,\nmasks and all; import-nvidia "
      "takes the text out of them again, without the copies that such recipes make.";
  verb.options = {
      {"action", Takes::kManyValues, "ACTION CORPUS...", "as above (the word may be left out)"},
      {"output", Takes::kOneValue, "PATH",
       "corpus or file to create; of split: what the parts' names begin with"},
      {"shard-tokens", Takes::kOneValue, "COUNT",
       "tokens after which a shard is closed (67108864)"},
      {"tokenizer", Takes::kOneValue, "PATH",
       "import: the tokenizer that made the ids, in any form that prepare --vocab takes"},
      {"cased", Takes::kNothing, "", "import: a vocab.txt keeps upper case and accents"},
      {"segmenter", Takes::kOneValue, "FILE",
       "import: find Chinese words by this dictionary in jieba's format"},
      {"user-dictionary", Takes::kManyValues, "FILE...", "import: more words, in the same format"},
      {"keep-duplicates", Takes::kNothing, "",
       "import-nvidia: keep documents that equal an earlier one"},
      {"held-out", Takes::kOneValue, "SHARE", "import: share of documents held out (1%)"},
      {"language", Takes::kOneValue, "CODE", "import: recorded in the corpus (zh)"},
      {"seq-length", Takes::kOneValue, "T",
       "export-nvidia: tokens of a row, [CLS] and [SEP] included (512)"},
      {"max-predictions", Takes::kOneValue, "P",
       "export-nvidia: masked tokens of a row, at most (80 of 512 tokens, 20 of 128)"},
      {"duplicates", Takes::kOneValue, "N",
       "export-nvidia: times that each row is written, masked anew (1)"},
      {"packing", Takes::kOneValue, "NAME",
       "export-nvidia: doc, rows end with a document, or full, they run across (doc)"},
      {"masking", Takes::kOneValue, "NAME",
       "export-nvidia: token, whole-word, span or ngram (token)"},
      {"mask-fraction", Takes::kOneValue, "SHARE", "export-nvidia: share of tokens (15%)"},
      {"seed", Takes::kOneValue, "N", "export-nvidia: of the masks, as train.seed (1)"},
      {"rows-per-file", Takes::kOneValue, "N", "export-nvidia: at most (65536)"},
      {"level", Takes::kOneValue, "N", "archive: of zstd, 1 to 19 (12)"},
      {"threads", Takes::kOneValue, "N", "archive, restore: files at a time (all cores)"},
      {"verify", Takes::kNothing, "", "info: re-hash every shard"},
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

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "data/prepare.h"
#include "launcher/agreement.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/jieba_dictionary.h"
#include "launcher/nearest_name.h"
#include "launcher/prepare_report.h"
#include "launcher/session.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

const Choices<TextFormat> kFormats = {{"auto", TextFormat::kAuto},
                                      {"text", TextFormat::kBlankLine},
                                      {"lines", TextFormat::kLinePerDocument},
                                      {"jsonl", TextFormat::kJsonLines},
                                      {"tsv", TextFormat::kTabSeparated},
                                      {"html", TextFormat::kHtml},
                                      {"man", TextFormat::kManual},
                                      {"rst", TextFormat::kRestructured},
                                      {"mo", TextFormat::kMessageCatalogue}};
const Choices<TextEncoding> kEncodings = {{"utf-8", TextEncoding::kUtf8},
                                          {"gb18030", TextEncoding::kGb18030},
                                          {"auto", TextEncoding::kAuto}};
const Choices<InvalidBytes> kInvalidBytes = {{"replace", InvalidBytes::kReplace},
                                             {"drop-line", InvalidBytes::kDropLine}};
const Choices<DamagedInput> kDamagedInput = {{"refuse", DamagedInput::kRefuse},
                                             {"skip", DamagedInput::kSkip}};

const Choices<TokenizerKind> kTokenizerKinds = {{"wordpiece", TokenizerKind::kWordPiece},
                                                {"byte-bpe", TokenizerKind::kByteBpe}};

// The value that the option's word stands for; the first one when it is not given.
template <typename Value>
Value chosen(const CommandLine& line, const std::string& option, const Choices<Value>& choices) {
  if (!line.has(option)) return choices.front().second;
  std::vector<std::string> valid;
  for (const auto& choice : choices) valid.push_back(choice.first);
  const std::string word =
      reading_option(option, [&] { return one_of(line.value(option), valid); });
  return std::find_if(choices.begin(), choices.end(),
                      [&](const auto& choice) { return choice.first == word; })
      ->second;
}

// A rule of cleaning that --keep switches off.
struct CleaningSwitch {
  std::string rule;
  void (*off)(CleaningOptions& options);
};

const std::vector<CleaningSwitch> kCleaningSwitches = {
    {"control-characters", [](CleaningOptions& o) { o.control_characters = false; }},
    {"html", [](CleaningOptions& o) { o.html = false; }},
    {"symbol-lines", [](CleaningOptions& o) { o.symbol_lines = false; }},
    {"short-lines", [](CleaningOptions& o) { o.min_line_characters = 0; }},
    {"repeated-lines", [](CleaningOptions& o) { o.most_repeated_lines = 1; }},
    {"repeated-grams", [](CleaningOptions& o) { o.most_repeated_grams = 1; }},
    {"language", [](CleaningOptions& o) { o.most_foreign = 1; }},
    {"length", [](CleaningOptions& o) { o.min_document_characters = 0; }},
    {"duplicate-documents", [](CleaningOptions& o) { o.duplicate_documents = false; }},
    {"near-duplicates", [](CleaningOptions& o) { o.near_duplicate_documents = false; }},
    {"duplicate-lines", [](CleaningOptions& o) { o.duplicate_line_characters = 0; }}};

std::string cleaning_rules() {
  std::string text;
  for (const CleaningSwitch& known : kCleaningSwitches) {
    text += (text.empty() ? "" : ", ") + known.rule;
  }
  return text;
}

std::vector<VerbOption> cleaning_verb_options() {
  return {{"clean", Takes::kNothing, "",
           "clean the text by the rules of data/FORMAT.md, and report on it"},
          {"keep", Takes::kManyValues, "RULE...",
           "with --clean, rules that are not applied: " + cleaning_rules()},
          {"min-line", Takes::kOneValue, "N", "with --clean: drop lines of fewer characters (5)"},
          {"min-document", Takes::kOneValue, "N", "documents of fewer characters (10)"},
          {"max-document", Takes::kOneValue, "N", "documents of more characters (no limit)"},
          {"min-chinese", Takes::kOneValue, "SHARE",
           "documents with a smaller share of Chinese among their letters (0)"},
          {"most-foreign", Takes::kOneValue, "SHARE",
           "documents with a larger share of letters of other languages' scripts (50%)"},
          {"most-repeated-lines", Takes::kOneValue, "SHARE",
           "documents in which a larger share are repeated lines (50%)"},
          {"most-repeated-grams", Takes::kOneValue, "SHARE",
           "documents in which a larger share of runs of 10 characters are repeated (60%)"},
          {"duplicate-line", Takes::kOneValue, "N",
           "lines of at least so many characters that were met before (20)"}};
}

CleaningOptions cleaning_from(const CommandLine& line) {
  CleaningOptions options;
  options.enabled = line.has("clean");
  for (const VerbOption& option : cleaning_verb_options()) {
    if (line.has(option.name) && !options.enabled) {
      throw std::invalid_argument("--" + option.name + " belongs to --clean");
    }
  }
  const auto number = [&](const char* name, std::uint64_t& value) {
    if (!line.has(name)) return;
    value = reading_option(name, [&] {
      return static_cast<std::uint64_t>(parse_integer(line.value(name), 0, INT64_C(1) << 40));
    });
  };
  const auto share = [&](const char* name, double& value) {
    if (line.has(name)) {
      value = reading_option(name, [&] { return parse_number(line.value(name), 0, 1); });
    }
  };
  number("min-line", options.min_line_characters);
  number("min-document", options.min_document_characters);
  number("max-document", options.max_document_characters);
  number("duplicate-line", options.duplicate_line_characters);
  share("min-chinese", options.min_chinese);
  share("most-foreign", options.most_foreign);
  share("most-repeated-lines", options.most_repeated_lines);
  share("most-repeated-grams", options.most_repeated_grams);
  for (const std::string& rule : line.values("keep")) {
    const auto known =
        std::find_if(kCleaningSwitches.begin(), kCleaningSwitches.end(),
                     [&](const CleaningSwitch& candidate) { return candidate.rule == rule; });
    if (known == kCleaningSwitches.end()) {
      std::vector<std::string> names;
      for (const CleaningSwitch& candidate : kCleaningSwitches) names.push_back(candidate.rule);
      throw std::invalid_argument("--keep: " + unknown_name("rule", rule, names));
    }
    known->off(options);
  }
  return options;
}

PrepareOptions options_from(const CommandLine& line, int processes_of_host) {
  PrepareOptions options;
  for (const std::string& input : line.values("input")) options.inputs.emplace_back(input);
  if (options.inputs.empty()) line.required("input");
  options.output = line.required("output");
  options.format = chosen(line, "format", kFormats);
  options.text_key = line.value("text-key", options.text_key);
  options.text_column = line.value("text-column", options.text_column);
  options.encoding = chosen(line, "encoding", kEncodings);
  options.invalid_bytes = chosen(line, "invalid", kInvalidBytes);
  options.damaged_input = chosen(line, "damaged", kDamagedInput);
  if (line.has("segmenter")) options.segmenter_dictionary = line.value("segmenter");
  for (const std::string& file : line.values("user-dictionary")) {
    options.user_dictionaries.emplace_back(file);
  }
  options.pre_segmented = line.has("pre-segmented");
  options.sentence_starts = line.has("sentences");
  if (line.has("vocab")) options.vocab_file = line.value("vocab");
  if (line.has("train-vocab")) {
    options.train_vocab_size = reading_option("train-vocab", [&] {
      return static_cast<std::uint32_t>(parse_integer(line.value("train-vocab"), 6, 1 << 24));
    });
  }
  if (options.vocab_file.has_value() == options.train_vocab_size.has_value()) {
    throw std::invalid_argument("tupelo prepare: give either --vocab FILE or --train-vocab SIZE");
  }
  options.min_count = reading_option("min-count", [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value("min-count", "2"), 1, INT64_MAX));
  });
  options.train_kind = chosen(line, "train-kind", kTokenizerKinds);
  options.vocab_multiple = reading_option("vocab-multiple", [&] {
    return static_cast<std::uint32_t>(parse_integer(line.value("vocab-multiple", "64"), 1, 4096));
  });
  options.lowercase = !line.has("cased");
  options.add_prefix_space = line.has("prefix-space");
  options.cleaning = cleaning_from(line);
  options.held_out = reading_option(
      "held-out", [&] { return parse_number(line.value("held-out", "1%"), 0, 0.5); });
  options.shard_tokens = reading_option("shard-tokens", [&] {
    return static_cast<std::uint64_t>(parse_integer(
        line.value("shard-tokens", std::to_string(options.shard_tokens)), 1, INT64_C(1) << 40));
  });
  options.language = line.value("language", options.language);
  options.vocab_text_bytes = reading_option("vocab-text", [&] {
    return static_cast<std::uint64_t>(parse_integer(
        line.value("vocab-text", std::to_string(options.vocab_text_bytes)), 0, INT64_C(1) << 50));
  });
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / processes_of_host);
  options.threads = reading_option("threads", [&] {
    return static_cast<int>(parse_integer(line.value("threads", std::to_string(cores)), 1, 1024));
  });
  options.force = line.has("force");
  return options;
}

constexpr const char* kJieba = "jieba";

// A phase may take days, and its processes wait for each other at its end.
constexpr int kLongestPhaseSeconds = 30 * 24 * 3600;

PrepareTeam team_of(Session& session) {
  PrepareTeam team;
  team.rank = session.runtime().rank();
  team.size = session.runtime().world_size();
  team.together = [&](const auto& action) { together(session.data(), action); };
  team.all_agree = [&](bool value) { return session.data().all_agree(value); };
  return team;
}

// Rank 0 fetches it if need be, and the others find it in the common cache folder.
void find_jieba_dictionary(Session& session, PrepareOptions& options) {
  on_rank_zero(session.data(), [&] { options.segmenter_dictionary = jieba_dictionary(); });
  together(session.data(), [&] { options.segmenter_dictionary = jieba_dictionary(); });
}

ExitCode prepare_in(Session& session, const CommandLine& line) {
  session.configure("cpu", 1, kLongestPhaseSeconds);
  PrepareOptions options;
  Console console(/*silent=*/!session.is_first());
  together(session.data(), [&] { options = options_from(line, session.runtime().local_size()); });
  if (line.value("segmenter") == kJieba) find_jieba_dictionary(session, options);
  PreparePrinter progress(console);
  const PrepareReport report = prepare_corpus(options, std::ref(progress), team_of(session));
  if (!session.is_first()) return ExitCode::kDone;
  if (line.has("json")) {
    console.line(prepare_report_json(report));
  } else {
    print_prepare_report(report, options.output.string(), console);
  }
  return ExitCode::kDone;
}

ExitCode run_prepare(const Verb& verb, const std::vector<std::string>& words) {
  return in_session(verb, words, prepare_in);
}

}  // namespace

Command prepare_command() {
  Verb verb;
  verb.name = "prepare";
  verb.usage =
      "tupelo prepare --input PATH... --output CORPUS (--vocab vocab.txt | --train-vocab SIZE) "
      "[options]";
  verb.summary =
      "Turns text into a sharded corpus. Documents are read, cleaned if asked for, tokenized with "
      "WordPiece or byte-level\nBPE, split into training and held-out parts by a hash of their "
      "text, "
      "and written as HDF5 shards (data/FORMAT.md).\nThe same input gives the same bytes for any "
      "number of threads and, under mpirun, of processes; a corpus appears only when it is "
      "complete.\nWhat a killed run has done is not done again when the same is asked for.";
  verb.options = {
      {"input", Takes::kManyValues, "PATH...",
       "text files, folders of them, or patterns with *, ** and ?; also compressed (.gz, .zst)"},
      {"output", Takes::kOneValue, "CORPUS", "folder to create"},
      {"vocab", Takes::kOneValue, "PATH",
       "an existing tokenizer: vocab.txt, tokenizer.json, vocab.json with merges.txt, a "
       "SentencePiece "
       ".model, or a folder or corpus that holds one"},
      {"train-vocab", Takes::kOneValue, "SIZE", "learn a vocabulary of this size from the input"},
      {"min-count", Takes::kOneValue, "N",
       "occurrences that a character or a merge needs to enter a learned vocabulary (2)"},
      {"train-kind", Takes::kOneValue, "KIND",
       "what to learn: wordpiece, or byte-bpe as RoBERTa and GPT-2 have (wordpiece)"},
      {"vocab-multiple", Takes::kOneValue, "N",
       "fill a learned vocabulary up to a multiple of this (64)"},
      {"vocab-text", Takes::kOneValue, "BYTES",
       "learn the vocabulary from about so much of the input, taken evenly; 0: all (1073741824)"},
      {"prefix-space", Takes::kNothing, "",
       "byte-bpe: treat the beginning of a text as that of a word behind a space"},
      {"cased", Takes::kNothing, "", "wordpiece: keep upper case and accents (default: uncased)"},
      {"held-out", Takes::kOneValue, "SHARE", "share of documents kept for evaluation (1%)"},
      {"format", Takes::kOneValue, "FORMAT",
       "text (a blank line ends a document), lines (one document per line), jsonl, tsv, html, man, "
       "rst, mo, or auto: by extension, else text (auto)"},
      {"text-key", Takes::kOneValue, "KEY",
       "key of the text in JSON lines; a.b: b of the object under a (text)"},
      {"text-column", Takes::kOneValue, "NAME|N", "column of the text in tsv (text)"},
      {"encoding", Takes::kOneValue, "NAME",
       "utf-8, gb18030 or auto; a byte order mark overrules each (utf-8)"},
      {"invalid", Takes::kOneValue, "WHAT",
       "replace bytes that are no character by U+FFFD, or drop-line (replace)"},
      {"damaged", Takes::kOneValue, "WHAT",
       "refuse input that is not what it should be, or skip and report it (refuse)"},
      {"segmenter", Takes::kOneValue, "FILE",
       "dictionary in jieba's format that says what a Chinese word is; the word jieba: the "
       "package's "
       "own, fetched from PyPI once"},
      {"user-dictionary", Takes::kManyValues, "FILE...", "more words, in jieba's format"},
      {"pre-segmented", Takes::kNothing, "",
       "words of the input are set apart by spaces, which are no part of Chinese text"},
      {"sentences", Takes::kNothing, "", "store which tokens begin a sentence"},
      {"shard-tokens", Takes::kOneValue, "COUNT",
       "tokens after which a shard is closed (67108864)"},
      {"language", Takes::kOneValue, "CODE", "recorded in the corpus (zh)"},
      {"threads", Takes::kOneValue, "N",
       "working threads of each process (the host's cores, shared among its processes)"},
      {"force", Takes::kNothing, "", "replace an existing corpus"},
      {"json", Takes::kNothing, "", "print the counts as JSON"},
      {"help", Takes::kNothing, "", "this text"}};
  // Before --threads, which is about how, not what.
  const std::vector<VerbOption> cleaning = cleaning_verb_options();
  const auto threads =
      std::find_if(verb.options.begin(), verb.options.end(),
                   [](const VerbOption& option) { return option.name == "threads"; });
  verb.options.insert(threads, cleaning.begin(), cleaning.end());
  return {verb, run_prepare};
}

}  // namespace tupelo

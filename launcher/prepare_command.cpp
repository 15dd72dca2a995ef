#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "data/prepare.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

const char* const kFormats = "auto, text, lines or jsonl";

TextFormat parse_format(const std::string& name) {
  if (name == "auto") return TextFormat::kAuto;
  if (name == "text") return TextFormat::kBlankLine;
  if (name == "lines") return TextFormat::kLinePerDocument;
  if (name == "jsonl") return TextFormat::kJsonLines;
  throw std::invalid_argument("--format: '" + name + "' is not " + kFormats);
}

PrepareOptions options_from(const CommandLine& line) {
  PrepareOptions options;
  for (const std::string& input : line.values("input")) options.inputs.emplace_back(input);
  if (options.inputs.empty()) line.required("input");
  options.output = line.required("output");
  options.format = parse_format(line.value("format", "auto"));
  options.text_key = line.value("text-key", "text");
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
  options.lowercase = !line.has("cased");
  options.held_out = reading_option(
      "held-out", [&] { return parse_number(line.value("held-out", "1%"), 0, 0.5); });
  options.shard_tokens = reading_option("shard-tokens", [&] {
    return static_cast<std::uint64_t>(parse_integer(
        line.value("shard-tokens", std::to_string(options.shard_tokens)), 1, INT64_C(1) << 40));
  });
  options.language = line.value("language", options.language);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.threads = reading_option("threads", [&] {
    return static_cast<int>(parse_integer(line.value("threads", std::to_string(cores)), 1, 1024));
  });
  options.force = line.has("force");
  return options;
}

class ProgressPrinter {
 public:
  explicit ProgressPrinter(Console& console) : console_(console) {}

  void operator()(const PrepareProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (progress.phase == phase_ && now - shown_ < std::chrono::milliseconds(100)) return;
    if (progress.phase != phase_) started_ = now;
    phase_ = progress.phase;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const double share = progress.total_bytes == 0 ? 0.0
                                                   : static_cast<double>(progress.done_bytes) /
                                                         static_cast<double>(progress.total_bytes);
    const double left = share > 0 ? seconds / share - seconds : 0;
    console_.progress(progress.phase + "  " + progress_bar(share, 30) + " " +
                      std::to_string(static_cast<int>(share * 100)) + "%  " +
                      grouped(static_cast<std::int64_t>(progress.documents)) + " documents  " +
                      grouped(static_cast<std::int64_t>(progress.tokens)) + " tokens  ETA " +
                      duration_text(left));
  }

 private:
  Console& console_;
  std::string phase_;
  std::chrono::steady_clock::time_point started_, shown_;
};

double tokens_per_second(const PrepareReport& report) {
  const double tokens = static_cast<double>(report.train_tokens + report.held_out_tokens);
  return report.tokenize_seconds > 0 ? tokens / report.tokenize_seconds : 0;
}

nlohmann::ordered_json to_json(const PrepareReport& report) {
  return {{"input_bytes", report.input_bytes},
          {"invalid_bytes", report.invalid_bytes},
          {"documents", report.documents},
          {"empty_documents", report.empty_documents},
          {"train_documents", report.train_documents},
          {"held_out_documents", report.held_out_documents},
          {"train_tokens", report.train_tokens},
          {"held_out_tokens", report.held_out_tokens},
          {"unknown_tokens", report.unknown_tokens},
          {"vocab_size", report.vocab_size},
          {"train_shards", report.train_shards},
          {"held_out_shards", report.held_out_shards},
          {"seconds", report.seconds},
          {"tokens_per_second", tokens_per_second(report)}};
}

void print(const PrepareReport& report, const std::string& output, Console& console) {
  const auto count = [](std::uint64_t number) {
    return grouped(static_cast<std::int64_t>(number));
  };
  const double tokens = static_cast<double>(report.train_tokens + report.held_out_tokens);
  const double unknown = 100.0 * static_cast<double>(report.unknown_tokens) / std::max(tokens, 1.0);
  console.line("corpus      " + output);
  console.line("input       " + count(report.input_bytes) + " bytes, " + count(report.documents) +
               " documents (" + count(report.empty_documents) + " empty ones left out, " +
               count(report.invalid_bytes) + " invalid bytes replaced)");
  console.line("vocabulary  " + count(report.vocab_size) + " tokens, " + significant(unknown, 3) +
               "% of the text unknown");
  console.line("train       " + count(report.train_documents) + " documents, " +
               count(report.train_tokens) + " tokens, " + std::to_string(report.train_shards) +
               " shards");
  console.line("held out    " + count(report.held_out_documents) + " documents, " +
               count(report.held_out_tokens) + " tokens, " +
               std::to_string(report.held_out_shards) + " shards");
  console.line("time        " + significant(report.seconds, 3) + " s, " +
               count(static_cast<std::uint64_t>(tokens_per_second(report))) +
               " tokens/s while tokenizing");
}

ExitCode run_prepare(const Verb& verb, const std::vector<std::string>& words) {
  const CommandLine line(verb, words);
  const PrepareOptions options = options_from(line);
  Console console(/*silent=*/false);
  ProgressPrinter progress(console);
  const PrepareReport report = prepare_corpus(options, std::ref(progress));
  if (line.has("json")) {
    console.line(to_json(report).dump(1));
  } else {
    print(report, options.output.string(), console);
  }
  return ExitCode::kDone;
}

}  // namespace

Command prepare_command() {
  Verb verb;
  verb.name = "prepare";
  verb.usage =
      "tupelo prepare --input PATH... --output CORPUS (--vocab vocab.txt | --train-vocab SIZE) "
      "[options]";
  verb.summary =
      "Turns text into a sharded corpus. Documents are tokenized with BERT's WordPiece, split into "
      "training and held-out\nparts by a hash of their text, and written as HDF5 shards "
      "(data/FORMAT.md). The same input gives the same bytes\nfor any number of threads; a corpus "
      "appears only when it is complete.";
  verb.options = {
      {"input", Takes::kManyValues, "PATH...", "text files, or folders of them"},
      {"output", Takes::kOneValue, "CORPUS", "folder to create"},
      {"vocab", Takes::kOneValue, "FILE", "an existing vocab.txt, one token per line"},
      {"train-vocab", Takes::kOneValue, "SIZE", "learn a vocabulary of this size from the input"},
      {"min-count", Takes::kOneValue, "N",
       "occurrences that a character or a merge needs to enter a learned vocabulary (2)"},
      {"cased", Takes::kNothing, "", "keep upper case and accents (default: uncased)"},
      {"held-out", Takes::kOneValue, "SHARE", "share of documents kept for evaluation (1%)"},
      {"format", Takes::kOneValue, "FORMAT",
       std::string(kFormats) + " (auto: .jsonl by extension, else text: a blank line ends a "
                               "document; lines: one document "
                               "per line)"},
      {"text-key", Takes::kOneValue, "KEY", "key of the text in JSON lines (text)"},
      {"shard-tokens", Takes::kOneValue, "COUNT",
       "tokens after which a shard is closed (67108864)"},
      {"language", Takes::kOneValue, "CODE", "recorded in the corpus (zh)"},
      {"threads", Takes::kOneValue, "N", "working threads (all cores)"},
      {"force", Takes::kNothing, "", "replace an existing corpus"},
      {"json", Takes::kNothing, "", "print the counts as JSON"},
      {"help", Takes::kNothing, "", "this text"}};
  return {verb, run_prepare};
}

}  // namespace tupelo

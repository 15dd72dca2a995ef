// Corpora to and from the files of other programs.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "data/errors.h"
#include "data/export/nvidia.h"
#include "data/import/megatron.h"
#include "data/import/nvidia.h"
#include "launcher/contained.h"
#include "launcher/corpus_actions.h"
#include "launcher/nearest_name.h"
#include "launcher/value_text.h"

namespace tupelo::corpus_actions {
namespace {

using nlohmann::ordered_json;

void read_import_options(const CommandLine& line, ImportOptions& options) {
  options.tokenizer = line.required("tokenizer");
  options.output = line.required("output");
  options.lowercase = !line.has("cased");
  if (line.has("segmenter")) options.segmenter_dictionary = line.value("segmenter");
  for (const std::string& file : line.values("user-dictionary")) {
    options.user_dictionaries.emplace_back(file);
  }
  options.shard_tokens = count_option(line, "shard-tokens", options.shard_tokens);
  options.held_out = reading_option(
      "held-out", [&] { return parse_number(line.value("held-out", "1%"), 0, 0.5); });
  options.language = line.value("language", options.language);
  options.force = line.has("force");
}

// The HDF5 library is not safe against structure that is made to harm, so it meets it first where
// it can do none.
void check_structures(const std::vector<std::filesystem::path>& inputs) {
  for (const std::filesystem::path& file : nvidia_files(inputs)) {
    const std::string end = what_ends([&] { read_nvidia_structure(file); });
    if (end.empty()) continue;
    throw CorpusError(file.string() + ": the HDF5 library cannot read its structure (it ended by " +
                      end + "): the file is damaged, or made to harm");
  }
}

// The words that data.packing and data.masking take, as far as they fit fixed rows.
DataOptions row_options(const CommandLine& line) {
  DataOptions rows;
  rows.sequence_length = static_cast<std::int64_t>(count_option(line, "seq-length", 512));
  rows.seed = reading_option("seed", [&] {
    return static_cast<std::uint64_t>(parse_integer(line.value("seed", "1"), 0, INT64_MAX));
  });
  rows.mask_fraction = reading_option(
      "mask-fraction", [&] { return parse_number(line.value("mask-fraction", "15%"), 0, 1); });
  const std::string packing = reading_option("packing", [&] {
    return one_of(line.value("packing", "doc"), {"doc", "full"});
  });
  rows.packing = packing == "doc" ? Packing::kDocument : Packing::kFull;
  const std::string masking = reading_option("masking", [&] {
    return one_of(line.value("masking", "token"), {"token", "whole-word", "span", "ngram"});
  });
  rows.masking = masking == "token"        ? Masking::kToken
                 : masking == "whole-word" ? Masking::kWholeWord
                 : masking == "span"       ? Masking::kSpan
                                           : Masking::kNgram;
  return rows;
}

// BERT's recipe has 20 predictions in rows of 128 tokens and 80 in rows of 512.
std::uint64_t usual_predictions(std::int64_t sequence_length) {
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(sequence_length) * 80 / 512, 1);
}

}  // namespace

void import_from_megatron(const Words& prefixes, const CommandLine& line) {
  MegatronImport options;
  options.prefixes.assign(prefixes.begin(), prefixes.end());
  read_import_options(line, options);
  import_megatron(options);
  tell_corpus(options.output, line);
}

void import_from_nvidia(const Words& inputs, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  NvidiaImport options;
  options.inputs.assign(inputs.begin(), inputs.end());
  read_import_options(line, options);
  options.keep_duplicates = line.has("keep-duplicates");
  options.progress = showing_progress(console, "rows");
  check_structures(options.inputs);
  const NvidiaImportReport report = import_nvidia(options);
  if (!line.has("json")) {
    console.line(count(report.rows) + " rows; " + count(report.duplicates) +
                 " documents left out that equal an earlier one, " + count(report.unrestored_rows) +
                 " rows that could not be restored");
  }
  tell_corpus(options.output, line);
}

void export_to_nvidia(const Words& corpora, const CommandLine& line) {
  Console console(/*silent=*/line.has("json"));
  NvidiaExport options;
  options.corpus = corpora.front();
  options.output = line.required("output");
  options.rows = row_options(line);
  options.max_predictions =
      count_option(line, "max-predictions", usual_predictions(options.rows.sequence_length));
  options.duplicates = count_option(line, "duplicates", options.duplicates);
  options.rows_per_file = count_option(line, "rows-per-file", options.rows_per_file);
  options.force = line.has("force");
  options.progress = showing_progress(console, "rows");
  const NvidiaExportReport report = export_nvidia(options);
  if (line.has("json")) {
    std::cout << ordered_json{{"output", options.output.string()},
                              {"train_rows", report.train_rows},
                              {"held_out_rows", report.held_out_rows},
                              {"files", report.files},
                              {"tokens", report.tokens},
                              {"masked_tokens", report.masked_tokens},
                              {"unmasked_tokens", report.unmasked_tokens}}
                     .dump(1)
              << std::endl;
    return;
  }
  console.line(options.output.string() + ": " + count(report.train_rows) + " rows to train on, " +
               count(report.held_out_rows) + " held out, " + count(report.files) + " files, " +
               count(report.masked_tokens) + " of " + count(report.tokens) + " tokens masked (" +
               count(report.unmasked_tokens) + " more did not fit --max-predictions)");
}

}  // namespace tupelo::corpus_actions

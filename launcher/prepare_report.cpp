#include "launcher/prepare_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/console.h"

namespace tupelo {
namespace {

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
          {"dropped_lines", report.dropped_lines},
          {"damaged_files", report.damaged_files},
          {"damaged_records", report.damaged_records},
          {"empty_files", report.empty_files},
          {"special_files", report.special_files},
          {"dangling_links", report.dangling_links},
          {"repeated_files", report.repeated_files},
          {"damage", report.damage},
          {"seconds", report.seconds},
          {"tokens_per_second", tokens_per_second(report)}};
}

// What was left out, when anything was.
void print_oddities(const PrepareReport& report, Console& console) {
  std::string text;
  const auto add = [&](std::uint64_t number, const char* what) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + grouped(static_cast<std::int64_t>(number)) + " " + what;
  };
  add(report.empty_files, "empty files");
  add(report.damaged_files, "damaged files");
  add(report.damaged_records, "damaged records");
  add(report.dropped_lines, "lines with invalid bytes");
  add(report.special_files, "FIFOs, sockets and devices");
  add(report.dangling_links, "links to nothing");
  add(report.repeated_files, "files met again through links");
  if (!text.empty()) console.line("left out    " + text);
  for (const std::string& sentence : report.damage) console.line("            " + sentence);
}

void print_cleaning(const CleaningReport& report, Console& console) {
  if (report.rules.empty()) return;
  const auto count = [](std::uint64_t number) {
    return grouped(static_cast<std::int64_t>(number));
  };
  console.line("cleaned     " + count(report.documents_after) + " of " +
               count(report.documents_before) + " documents and " + count(report.bytes_after) +
               " of " + count(report.bytes_before) + " bytes are left (report.html)");
  for (const RuleReport& rule : report.rules) {
    if (rule.documents == 0 && rule.lines == 0) continue;
    console.line("            " + rule.name + ": " + count(rule.documents) + " documents, " +
                 count(rule.lines) + " lines, " + count(rule.bytes) + " bytes");
  }
}

}  // namespace

void PreparePrinter::operator()(const PrepareProgress& progress) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  const bool begins = progress.phase != phase_;
  if (begins) started_ = now;
  phase_ = progress.phase;
  const milliseconds pause = console_.is_terminal() ? milliseconds(100) : milliseconds(30'000);
  if (now - shown_ < pause && !(begins && console_.is_terminal())) return;
  shown_ = now;
  const std::string text = text_of(progress, now);
  if (console_.is_terminal()) {
    console_.progress(text);
  } else {
    console_.notice(text);
  }
}

std::string PreparePrinter::text_of(const PrepareProgress& progress, Time now) const {
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const auto total = static_cast<double>(progress.total_bytes);
  const auto done = static_cast<double>(progress.done_bytes);
  const double fresh = done - static_cast<double>(progress.skipped_bytes);
  const double share = total > 0 ? done / total : 0.0;
  std::string text = progress.phase;
  text += "  " + progress_bar(share, 30) + " ";
  text += std::to_string(static_cast<int>(share * 100)) + "%  ";
  if (progress.documents > 0) {
    text += grouped(static_cast<std::int64_t>(progress.documents)) + " documents  " +
            grouped(static_cast<std::int64_t>(progress.tokens)) + " tokens  ";
  }
  if (fresh <= 0 || seconds <= 0) return text;
  if (counts_bytes()) text += significant(fresh / seconds / 1e6, 3) + " MB/s  ";
  return text + "ETA " + duration_text((total - done) * seconds / fresh);
}

std::string prepare_report_json(const PrepareReport& report) { return to_json(report).dump(1); }

void print_prepare_report(const PrepareReport& report, const std::string& output,
                          Console& console) {
  const auto count = [](std::uint64_t number) {
    return grouped(static_cast<std::int64_t>(number));
  };
  const double tokens = static_cast<double>(report.train_tokens + report.held_out_tokens);
  const double unknown = 100.0 * static_cast<double>(report.unknown_tokens) / std::max(tokens, 1.0);
  console.line("corpus      " + output);
  console.line("input       " + count(report.input_bytes) + " bytes, " + count(report.documents) +
               " documents (" + count(report.empty_documents) + " empty ones left out, " +
               count(report.invalid_bytes) + " invalid bytes)");
  print_oddities(report, console);
  print_cleaning(report.cleaning, console);
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

}  // namespace tupelo

#include "data/cleaning/cleaner.h"

#include <algorithm>
#include <utility>

#include "data/cleaning/lines.h"
#include "data/cleaning/near_duplicates.h"
#include "data/content_digest.h"

namespace tupelo {
namespace {

// Behind those of the single document, in this order.
enum DuplicateRule : std::size_t { kDocuments, kNearDocuments, kLines, kDuplicateRules };

bool is_long_line(std::string_view line, std::uint64_t characters) {
  std::uint64_t count = 0;  // of characters, white space among them
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count >= characters;
}

}  // namespace

void CleaningReport::add(const CleaningReport& later) {
  documents_before += later.documents_before;
  bytes_before += later.bytes_before;
  documents_after += later.documents_after;
  bytes_after += later.bytes_after;
  rules.resize(std::max(rules.size(), later.rules.size()));
  for (std::size_t i = 0; i < later.rules.size(); ++i) rules[i].add(later.rules[i]);
}

Cleaner::Cleaner(const CleaningOptions& options, const std::string& language)
    : options_((check_cleaning_options(options), options)),
      rules_(cleaning_rules(options, language)) {}

bool Cleaner::looks_for_duplicates() const {
  return options_.duplicate_documents || options_.near_duplicate_documents ||
         options_.duplicate_line_characters > 0;
}

CleaningReport Cleaner::empty_report() const {
  CleaningReport report;
  const auto add = [&](std::string name, std::string what) {
    report.rules.emplace_back();
    report.rules.back().name = std::move(name);
    report.rules.back().what = std::move(what);
  };
  for (const auto& rule : rules_) add(rule->name(), rule->what());
  const auto off = [](bool on) { return on ? std::string() : std::string(" (off)"); };
  add("duplicate-documents",
      std::string("documents that equal an earlier one") + off(options_.duplicate_documents));
  add("near-duplicates", std::string("documents that are like an earlier one") +
                             off(options_.near_duplicate_documents));
  add("duplicate-lines", std::string("lines of at least ") +
                             std::to_string(options_.duplicate_line_characters) +
                             " characters that equal an earlier one, of any document" +
                             off(options_.duplicate_line_characters > 0));
  return report;
}

void Cleaner::clean(std::string& text, const TextPlace& place, CleaningReport& report) const {
  ++report.documents_before;
  report.bytes_before += text.size();
  for (std::size_t i = 0; i < rules_.size() && !text.empty(); ++i) {
    RuleLog log(report.rules[i], place);
    rules_[i]->apply(text, log);
  }
}

std::vector<Fingerprint> Cleaner::fingerprints(std::string_view text, std::uint64_t document,
                                               ContentDigest& digest) const {
  std::vector<Fingerprint> all;
  if (text.empty()) return all;
  if (options_.near_duplicate_documents) {
    all = near_duplicate_bands(text, position_of(document, kNearDocument));
  }
  if (options_.duplicate_documents) {
    all.push_back(fingerprint_of(text, position_of(document, kWholeDocument), digest));
    all.back().high = ~all.back().high;  // a document of one line is no line
  }
  if (options_.duplicate_line_characters > 0) {
    std::uint64_t number = 0;
    for_each_line(text, [&](std::string_view line) {
      if (is_long_line(line, options_.duplicate_line_characters)) {
        all.push_back(fingerprint_of(line, position_of(document, number), digest));
      }
      ++number;
    });
  }
  return all;
}

void Cleaner::drop_duplicates(std::string& text, std::span<const std::uint64_t> positions,
                              const TextPlace& place, CleaningReport& report) const {
  if (positions.empty()) return;
  const auto log = [&](DuplicateRule rule) {
    return RuleLog(report.rules[rules_.size() + rule], place);
  };
  // The whole document's positions are behind those of its lines.
  const std::uint64_t last = positions.back() & kWholeDocument;
  if (last == kWholeDocument || last == kNearDocument) {
    log(last == kWholeDocument ? kDocuments : kNearDocuments).drop_document(text);
    text.clear();
    return;
  }
  RuleLog lines = log(kLines);
  std::string kept;
  std::uint64_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    const bool is_duplicate = !positions.empty() && (positions.front() & kWholeDocument) == number;
    ++number;
    if (is_duplicate) {
      positions = positions.subspan(1);
      lines.drop_line(line);
      return;
    }
    if (!kept.empty()) kept += '\n';
    kept += line;
  });
  text = std::move(kept);
}

}  // namespace tupelo

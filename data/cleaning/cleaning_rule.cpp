#include "data/cleaning/cleaning_rule.h"

#include <algorithm>
#include <stdexcept>

namespace tupelo {
namespace {

constexpr std::size_t kExamples = 3;
constexpr std::size_t kExampleBytes = 300;

// The beginning of a text, between characters.
std::string excerpt(std::string_view text) {
  if (text.size() <= kExampleBytes) return std::string(text);
  std::size_t end = kExampleBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

void require_share(double share, const char* name) {
  if (share >= 0 && share <= 1) return;
  throw std::invalid_argument(std::string("the share of ") + name + ", " + std::to_string(share) +
                              ", is not between 0 and 1");
}

}  // namespace

void RuleReport::add(const RuleReport& later) {
  name = later.name;
  what = later.what;
  documents += later.documents;
  lines += later.lines;
  bytes += later.bytes;
  for (const CleaningExample& example : later.examples) {
    if (examples.size() < kExamples) examples.push_back(example);
  }
}

void RuleLog::show(std::string_view text) {
  if (report_.examples.size() < kExamples) report_.examples.push_back({place_, excerpt(text)});
}

void RuleLog::drop_document(std::string_view text) {
  show(text);
  ++report_.documents;
  report_.bytes += text.size();
}

void RuleLog::drop_line(std::string_view line) {
  show(line);
  ++report_.lines;
  report_.bytes += line.size() + 1;
}

void RuleLog::change_line(std::string_view line, std::uint64_t bytes) {
  show(line);
  ++report_.lines;
  report_.bytes += bytes;
}

void check_cleaning_options(const CleaningOptions& options) {
  require_share(options.most_repeated_lines, "repeated lines");
  require_share(options.most_repeated_grams, "repeated runs of characters");
  require_share(options.min_chinese, "Chinese");
  require_share(options.most_foreign, "foreign letters");
  constexpr std::uint64_t kLeastSortBytes = std::uint64_t{1} << 20;
  if (options.sort_bytes < kLeastSortBytes) {
    throw std::invalid_argument("the memory for finding duplicates, " +
                                std::to_string(options.sort_bytes) + " bytes, is less than " +
                                std::to_string(kLeastSortBytes));
  }
  if (options.max_document_characters > 0 &&
      options.max_document_characters < options.min_document_characters) {
    throw std::invalid_argument("no document has at least " +
                                std::to_string(options.min_document_characters) + " and at most " +
                                std::to_string(options.max_document_characters) + " characters");
  }
}

}  // namespace tupelo

// A rule of cleaning, and what it did.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/cleaning/cleaning_options.h"
#include "data/text_place.h"

namespace tupelo {

struct CleaningExample {
  TextPlace place;   // where the document begins
  std::string text;  // the beginning of what was dropped or changed
};

struct RuleReport {
  std::string name, what;
  std::uint64_t documents = 0;            // dropped as a whole
  std::uint64_t lines = 0;                // dropped, or changed, in documents that stayed
  std::uint64_t bytes = 0;                // taken away, in documents and lines
  std::vector<CleaningExample> examples;  // of the first three

  // Of the same rule, on later documents.
  void add(const RuleReport& later);
};

// Writes down what a rule does to one document.
class RuleLog {
 public:
  RuleLog(RuleReport& report, const TextPlace& place) : report_(report), place_(place) {}

  void drop_document(std::string_view text);
  void drop_line(std::string_view line);
  void change_line(std::string_view line, std::uint64_t bytes);

 private:
  void show(std::string_view text);

  RuleReport& report_;
  const TextPlace place_;
};

// Any thread may ask it.
class CleaningRule {
 public:
  virtual ~CleaningRule() = default;
  virtual std::string name() const = 0;
  virtual std::string what() const = 0;  // for people: "lines of less than 5 characters"
  // Changes `text`, which is valid UTF-8 and not empty; a document that is dropped becomes empty.
  virtual void apply(std::string& text, RuleLog& log) const = 0;
};

// The rules that `options` switch on and that look at a single document, in their order.
// `language` is a tag such as zh or en-GB.
std::vector<std::unique_ptr<CleaningRule>> cleaning_rules(const CleaningOptions& options,
                                                          const std::string& language);

}  // namespace tupelo

// Cleans documents, one by one and against each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/cleaning/cleaning_rule.h"
#include "data/cleaning/fingerprint.h"

namespace tupelo {

class ContentDigest;

struct CleaningReport {
  std::uint64_t documents_before = 0, bytes_before = 0;
  std::uint64_t documents_after = 0, bytes_after = 0;
  std::vector<RuleReport> rules;  // in their order

  // Of the same rules, on later documents.
  void add(const CleaningReport& later);
};

// Any thread may ask it.
class Cleaner {
 public:
  // Throws std::invalid_argument (check_cleaning_options).
  Cleaner(const CleaningOptions& options, const std::string& language);

  CleaningReport empty_report() const;
  bool looks_for_duplicates() const;

  // Applies the rules that look at a single document; one that is dropped becomes empty.
  void clean(std::string& text, const TextPlace& place, CleaningReport& report) const;

  // What to compare a clean document with others by.
  std::vector<Fingerprint> fingerprints(std::string_view text, std::uint64_t document,
                                        ContentDigest& digest) const;

  // Takes out what was there before: `positions`, ascending, are those of this document.
  void drop_duplicates(std::string& text, std::span<const std::uint64_t> positions,
                       const TextPlace& place, CleaningReport& report) const;

 private:
  const CleaningOptions options_;
  const std::vector<std::unique_ptr<CleaningRule>> rules_;
};

}  // namespace tupelo

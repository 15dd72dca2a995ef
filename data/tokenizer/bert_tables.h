// What BERT's normaliser and pre-tokenizer do to each character, as generated tables.
// Source: scripts/generate_unicode_tables.py, which reads them off the PyPI package `tokenizers`;
// the version in the name of the generated file is that package's. All rows are sorted by code
// point.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tupelo::bert_tables {

enum class CharacterClass : std::uint8_t {
  kOther,        // part of a word
  kRemoved,      // control, format, private use, U+FFFD: vanishes without a trace
  kSpace,        // ends a word
  kPunctuation,  // ends a word and is one
  kCjk,          // an ideograph: ends a word and is one
  // Uncased only: accents vanish as well, but those that canonical ordering sees as starters keep
  // the marks around them from changing places.
  kMark,
  kStarterMark,
};

struct ClassRange {
  char32_t first, last;
  CharacterClass character_class;
};

// Combining marks that survive the stripping of accents (the package knows them as marks in one
// table and not in another) and are therefore seen in canonical order.
struct CombiningRange {
  char32_t first, last;
  std::uint8_t combining_class;
};

// Uncased: first + i * step becomes target + i * target_step, for i < count.
struct MappingRun {
  char32_t first;
  std::uint32_t step, count;
  char32_t target;
  std::uint32_t target_step;
};
struct MappingPair {
  char32_t from, to;
};
struct MappingText {
  char32_t from;
  char32_t to[3];  // zeros at the end are absent
};

// Enters every fingerprint: other tables, other ids.
std::string_view version();

// Cased and uncased.
std::span<const ClassRange> class_ranges();
// Uncased only. Hangul syllables are not listed: they decompose by arithmetic.
std::span<const ClassRange> mark_ranges();
std::span<const CombiningRange> combining_ranges();
std::span<const MappingRun> mapping_runs();
std::span<const MappingPair> mapping_pairs();
std::span<const MappingText> mapping_texts();

}  // namespace tupelo::bert_tables

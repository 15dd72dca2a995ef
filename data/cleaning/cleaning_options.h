// How text is cleaned before it is tokenized.
#pragma once

#include <cstdint>

namespace tupelo {

// Every rule has a switch or a limit with which it does nothing; "characters" are those that are
// not white space. Rules apply in the order of the fields.
struct CleaningOptions {
  bool enabled = false;  // without it no text is changed

  bool control_characters = true;         // taken out of the text
  bool html = true;                       // leftover tags and entities are, too
  bool symbol_lines = true;               // lines without a letter or digit are dropped
  std::uint64_t min_line_characters = 5;  // shorter lines are dropped; 0: none
  double most_repeated_lines = 0.5;  // share of a document's lines; beyond it is dropped; 1: off
  double most_repeated_grams = 0.6;  // share of its runs of 10 characters; 1: off
  double min_chinese = 0;            // share of Han among the letters of a document; 0: off
  double most_foreign = 0.5;         // share of letters of scripts that its language is not
                                     // written in; 1: off
  std::uint64_t min_document_characters = 10;  // shorter documents are dropped; 0: none
  std::uint64_t max_document_characters = 0;   // longer ones are; 0: none

  bool duplicate_documents = true;       // all but the first of equal documents are dropped
  bool near_duplicate_documents = true;  // and of documents that are alike (near_duplicates.h)
  std::uint64_t duplicate_line_characters = 20;  // of equal lines at least this long, all but the
                                                 // first are dropped; 0: none
  std::uint64_t sort_bytes = std::uint64_t{256} << 20;  // memory for finding duplicates
};

// Throws std::invalid_argument that says what is valid.
void check_cleaning_options(const CleaningOptions& options);

}  // namespace tupelo

// Tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// Columns as wide as their widest cell, two spaces apart; the first is flush left, and so are those
// whose heading ends in "<", which is not shown; all others are flush right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings);
  // As many cells as there are headings.
  void add(std::vector<std::string> cells);
  // One line per row, headings first, each with a line break.
  std::string text() const;

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tupelo

#include "launcher/text_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tupelo {

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    const bool marked = heading.ends_with('<');
    if (marked) heading.pop_back();
    left_.push_back(marked || left_.empty());
  }
  rows_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(left_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(left_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (left_[i] ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tupelo

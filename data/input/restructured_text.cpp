#include "data/input/restructured_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/input/restructured_inline.h"
#include "data/input/text_lines.h"

namespace tupelo {
namespace {

constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

// So that nothing is searched for without end.
constexpr std::size_t kLongestField = 200;

// Directives whose body is text for readers.
constexpr auto kSpeaking = std::to_array<std::string_view>(
    {"admonition",     "attention",  "caution",  "danger",    "deprecated", "epigraph",
     "error",          "highlights", "hint",     "important", "note",       "pull-quote",
     "rubric",         "seealso",    "sidebar",  "tip",       "topic",      "versionadded",
     "versionchanged", "warning",    "compound", "container", "centered"});

bool is_space(char c) { return c == ' ' || c == '\t'; }

std::size_t indent_of(std::string_view line) {
  return std::min(
      static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_space) - line.begin()),
      line.size());
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(indent_of(text));
  while (!text.empty() && (is_space(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Underlines of titles, transitions, borders of simple tables: "=====  ====".
bool is_ruler(std::string_view text) {
  if (text.size() < 3 || kPunctuation.find(text.front()) == std::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return c == text.front() || c == ' '; });
}

bool is_grid_border(std::string_view text) {
  return text.size() > 2 && text.front() == '+' && text.back() == '+' &&
         text.find_first_not_of("+-=") == std::string_view::npos;
}

// ":Author: name", unlike ":role:`text`"
bool is_field(std::string_view text) {
  if (text.front() != ':') return false;
  const std::size_t end = text.substr(0, kLongestField).find(": ");
  return end != std::string_view::npos && text.substr(0, end).find('`') == std::string_view::npos;
}

class RestructuredFile {
 public:
  void read(std::string_view file) {
    while (!file.empty()) {
      const std::size_t end = std::min(file.find('\n'), file.size());
      read_line(file.substr(0, end));
      file.remove_prefix(std::min(end + 1, file.size()));
    }
    flush();
  }
  std::string text() { return lines_.take(); }

 private:
  void read_line(std::string_view line);
  bool is_skipped(std::string_view text, std::size_t indent);
  void read_explicit(std::string_view text, std::size_t indent);
  void read_directive(std::string_view name, std::string_view argument, std::size_t indent);
  void read_grid_row(std::string_view text);
  void read_text(std::string_view text);
  void flush();

  TextLines lines_;
  std::string paragraph_;
  bool skips_ = false;  // what is indented deeper than skip_indent_
  std::size_t skip_indent_ = 0;
  bool in_options_ = false;  // of a directive whose text stays
  bool in_doctest_ = false;
};

void RestructuredFile::flush() {
  if (paragraph_.empty()) return;
  lines_.append(without_inline_markup(paragraph_));
  lines_.end_line();
  paragraph_.clear();
}

bool RestructuredFile::is_skipped(std::string_view text, std::size_t indent) {
  if (!skips_) return false;
  if (text.empty() || indent > skip_indent_) return true;
  skips_ = false;
  return false;
}

void RestructuredFile::read_line(std::string_view line) {
  const std::size_t indent = indent_of(line);
  const std::string_view text = trimmed(line);
  if (is_skipped(text, indent)) return;
  if (text.empty()) {
    flush();
    in_options_ = in_doctest_ = false;
    return;
  }
  if (in_doctest_) return;
  if (in_options_ && text.front() == ':') return;
  in_options_ = false;
  if (text == ".." || text.starts_with(".. ")) return read_explicit(text, indent);
  if (text.starts_with("__ ")) return flush();
  if (text.starts_with(">>> ")) {
    flush();
    in_doctest_ = true;
  } else if (is_ruler(text) || is_grid_border(text)) {
    flush();
  } else if (text.front() == '|' && text.back() == '|' && text.size() > 1) {
    read_grid_row(text);
  } else {
    read_text(text);
    if (text.ends_with("::")) {
      flush();
      skips_ = true;
      skip_indent_ = indent;
    }
  }
}

// ".. name:: argument", ".. _target:", ".. [1] footnote", ".. comment"
void RestructuredFile::read_explicit(std::string_view text, std::size_t indent) {
  flush();
  text = trimmed(text.substr(2));
  const std::size_t colons = text.find("::");
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    if (end != std::string_view::npos) return read_text(text.substr(end + 2));
  } else if (colons != std::string_view::npos && text.front() != '|' &&
             std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colons),
                         is_rst_word)) {
    return read_directive(text.substr(0, colons), trimmed(text.substr(colons + 2)), indent);
  }
  skips_ = true;
  skip_indent_ = indent;
}

void RestructuredFile::read_directive(std::string_view name, std::string_view argument,
                                      std::size_t indent) {
  if (std::find(kSpeaking.begin(), kSpeaking.end(), name) == kSpeaking.end()) {
    skips_ = true;
    skip_indent_ = indent;
    return;
  }
  in_options_ = true;
  if (name.starts_with("version") || name == "deprecated") return;  // the argument is a number
  if (!argument.empty()) read_text(argument);
}

void RestructuredFile::read_grid_row(std::string_view text) {
  flush();
  std::string row(text);
  std::replace(row.begin(), row.end(), '|', ' ');
  paragraph_ = row;
  flush();
}

void RestructuredFile::read_text(std::string_view text) {
  const std::size_t mark = text.find_first_not_of("-*+#.0123456789()");
  const bool is_item =
      mark != std::string_view::npos && mark > 0 && mark < 5 && is_space(text[mark]);
  if (is_item) flush();
  if (is_item && (text.front() == '-' || text.front() == '*' || text.front() == '+') && mark == 1) {
    text = trimmed(text.substr(mark));
  } else if (text.starts_with("| ")) {
    flush();
    text.remove_prefix(2);
  } else if (is_field(text)) {
    flush();  // a field, ":Author: name"
    text.remove_prefix(1);
  }
  if (text == "::") return;
  if (text.ends_with("::")) text.remove_suffix(1);
  if (!paragraph_.empty()) paragraph_ += '\n';
  paragraph_ += text;
}

}  // namespace

std::string text_of_restructured(std::string_view file) {
  RestructuredFile reader;
  reader.read(file);
  return reader.text();
}

}  // namespace tupelo

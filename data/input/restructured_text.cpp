#include "data/input/restructured_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/input/text_lines.h"

namespace tupelo {
namespace {

constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

// Of roles and footnotes: so that nothing is searched for without end.
constexpr std::size_t kLongestName = 200;

// Directives whose body is text for readers.
constexpr auto kSpeaking = std::to_array<std::string_view>(
    {"admonition",     "attention",  "caution",  "danger",    "deprecated", "epigraph",
     "error",          "highlights", "hint",     "important", "note",       "pull-quote",
     "rubric",         "seealso",    "sidebar",  "tip",       "topic",      "versionadded",
     "versionchanged", "warning",    "compound", "container", "centered"});

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == ':' || c == '+' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

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
  const std::size_t end = text.substr(0, kLongestName).find(": ");
  return end != std::string_view::npos && text.substr(0, end).find('`') == std::string_view::npos;
}

// Reads one piece of inline markup at the start of `rest`, or nothing.
class Inline {
 public:
  explicit Inline(std::string_view text) : all_(text) {}

  std::string read() {
    while (at_ < all_.size()) {
      if (!read_markup()) text_ += all_[at_++];
    }
    return std::move(text_);
  }

 private:
  std::string_view rest() const { return all_.substr(at_); }
  bool begins_word() const { return at_ == 0 || !is_word(all_[at_ - 1]) || all_[at_ - 1] == ':'; }
  bool read_markup();
  bool read_between(std::string_view mark);
  bool read_role();
  bool read_interpreted();
  bool read_footnote();
  bool skip_underscore();

  const std::string_view all_;
  std::size_t at_ = 0;
  std::string text_;
};

bool Inline::read_markup() {
  switch (all_[at_]) {
    case '\\':
      ++at_;
      if (at_ < all_.size() && !is_space(all_[at_])) text_ += all_[at_++];
      return true;
    case '`':
      return read_between("``") || read_interpreted();
    case '*':
      return read_between("**") || read_between("*");
    case '|':
      return read_between("|");
    case ':':
      return read_role();
    case '[':
      return read_footnote();
    case '_':
      return skip_underscore();
    default:
      return false;
  }
}

bool Inline::read_between(std::string_view mark) {
  if (!rest().starts_with(mark)) return false;
  const std::size_t start = at_ + mark.size();
  const std::size_t end = all_.find(mark, start);
  if (end == std::string_view::npos || end == start) return false;
  if (is_space(all_[start]) || is_space(all_[end - 1])) return false;
  text_ += all_.substr(start, end - start);
  at_ = end + mark.size();
  return true;
}

// :role:`text`
bool Inline::read_role() {
  const std::size_t last = std::min(all_.size(), at_ + kLongestName);
  std::size_t end = at_ + 1;
  while (end < last && is_word(all_[end])) ++end;
  if (end == at_ + 1 || end >= all_.size() || all_[end] != '`' || all_[end - 1] != ':')
    return false;
  const std::size_t before = at_;
  at_ = end;
  if (read_interpreted()) return true;
  at_ = before;
  return false;
}

// `text`, `text <target>`, `text <target>`_
bool Inline::read_interpreted() {
  const std::size_t end = all_.find('`', at_ + 1);
  if (end == std::string_view::npos || end == at_ + 1) return false;
  std::string_view inside = all_.substr(at_ + 1, end - at_ - 1);
  const std::size_t target = inside.rfind('<');
  if (target != std::string_view::npos && target > 0 && inside.back() == '>') {
    inside = trimmed(inside.substr(0, target));
  }
  text_ += inside;
  at_ = end + 1;
  while (at_ < all_.size() && all_[at_] == '_') ++at_;
  return true;
}

// [1]_, [#name]_, [Name2020]_
bool Inline::read_footnote() {
  const std::size_t length = rest().substr(0, kLongestName).find_first_of("] ");
  if (length == std::string_view::npos || rest().substr(length, 2) != "]_") return false;
  at_ += length + 2;
  return true;
}

// name_ and name__, at the end of a word
bool Inline::skip_underscore() {
  if (at_ == 0 || !is_word(all_[at_ - 1]) || all_[at_ - 1] == '_') return false;
  std::size_t end = at_;
  while (end < all_.size() && all_[end] == '_') ++end;
  if (end - at_ > 2 || (end < all_.size() && is_word(all_[end]) && all_[end] != '.')) return false;
  if (end < all_.size() && all_[end] == '.' && end + 1 < all_.size() && is_word(all_[end + 1])) {
    return false;
  }
  at_ = end;
  return true;
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
  lines_.append(Inline(paragraph_).read());
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
                         is_word)) {
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

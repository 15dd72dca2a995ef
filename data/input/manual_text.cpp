#include "data/input/manual_text.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "data/errors.h"
#include "data/input/roff_escapes.h"
#include "data/input/text_lines.h"

namespace tupelo {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr int kDeepestCondition = 16;  // conditions on one line

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Words of a request; quotation marks hold one together, "" inside them is one.
std::vector<std::string> arguments_of(std::string_view text) {
  std::vector<std::string> arguments;
  while (true) {
    const std::size_t start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return arguments;
    text.remove_prefix(start);
    if (text.starts_with("\\\"")) return arguments;
    const bool quoted = text.front() == '"';
    if (quoted) text.remove_prefix(1);
    std::string argument;
    while (!text.empty()) {
      const char c = text.front();
      if (quoted && c == '"' && !text.starts_with("\"\"")) break;
      if (!quoted && (c == ' ' || c == '\t')) break;
      const std::size_t taken = (c == '\\' || (quoted && c == '"')) && text.size() > 1 ? 2 : 1;
      argument += c == '"' ? text.substr(0, 1) : text.substr(0, taken);
      text.remove_prefix(taken);
    }
    if (quoted && !text.empty()) text.remove_prefix(1);
    arguments.push_back(std::move(argument));
  }
}

// Those of mdoc that may stand inside a line.
bool is_callable_macro(std::string_view word) {
  return is_one_of(word, {"Ac",  "Ad", "An", "Ao", "Ap", "Aq", "Ar", "Bc", "Bo", "Bq", "Brc", "Bro",
                          "Brq", "Cm", "Dc", "Do", "Dq", "Dv", "Em", "Er", "Ev", "Fa", "Fc",  "Fl",
                          "Fn",  "Fo", "Ft", "Ic", "Li", "Lk", "Mt", "Nm", "No", "Ns", "Oc",  "Oo",
                          "Op",  "Pa", "Pc", "Pf", "Po", "Pq", "Qc", "Ql", "Qo", "Qq", "Sc",  "So",
                          "Sq",  "Sy", "Ta", "Tn", "Va", "Vt", "Xc", "Xo", "Xr"});
}

class ManualPage {
 public:
  void read(std::string_view page) {
    while (!page.empty()) {
      const std::size_t end = std::min(page.find('\n'), page.size());
      read_line(page.substr(0, end));
      page.remove_prefix(std::min(end + 1, page.size()));
    }
  }
  bool is_manual() const { return has_begun_ || includes_; }
  std::string text() { return lines_.take(); }

 private:
  void read_line(std::string_view line);
  void read_request(std::string_view line);
  bool read_control(std::string_view name, std::string_view rest);
  bool read_break(std::string_view name, const std::vector<std::string>& arguments);
  void read_conditional(std::string_view name, std::string_view rest);
  void read_mdoc(std::string_view name, const std::vector<std::string>& arguments);
  bool read_table_line(std::string_view line);
  void skip_block(std::string_view line);
  void say(std::string_view text);
  void say_all(const std::vector<std::string>& arguments, std::string_view between);

  TextLines lines_;
  bool has_begun_ = false, includes_ = false, is_mdoc_ = false;
  bool filled_ = true, continues_ = false;
  bool in_table_ = false, in_table_format_ = false, in_text_block_ = false;
  bool took_branch_ = true;
  int depth_ = 0;
  int open_braces_ = 0;        // of a conditional that is left out
  std::string name_;           // of what an mdoc page is about
  std::string skipped_until_;  // the request that ends a definition
};

void ManualPage::say(std::string_view text) {
  if (!has_begun_) return;
  bool continues = false;
  const std::string plain = without_roff_escapes(text, continues);
  if (filled_) {
    if (!continues_) lines_.append("\n");
    lines_.append(plain);
  } else {
    lines_.append_preformatted(plain);
    if (!continues) lines_.end_line();
  }
  continues_ = continues;
}

void ManualPage::say_all(const std::vector<std::string>& arguments, std::string_view between) {
  std::string joined;
  for (const std::string& argument : arguments) {
    if (!joined.empty()) joined += between;
    joined += argument;
  }
  say(joined);
}

void ManualPage::read_line(std::string_view line) {
  if (open_braces_ > 0) return skip_block(line);
  const bool is_request = !line.empty() && (line.front() == '.' || line.front() == '\'');
  if (!skipped_until_.empty()) {
    const std::vector<std::string> words =
        is_request ? arguments_of(line.substr(1)) : std::vector<std::string>();
    const std::string end = words.empty() ? std::string() : words.front();
    if (end == skipped_until_) skipped_until_.clear();
    return;
  }
  if (is_request) return read_request(line.substr(1));
  if (in_table_ && read_table_line(line)) return;
  if (line.find_first_not_of(kBlanks) == std::string_view::npos) return lines_.end_line();
  if (filled_ && kBlanks.find(line.front()) != std::string_view::npos) lines_.end_line();
  say(line);
}

void ManualPage::read_request(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::size_t end = std::min(line.find_first_of(" \t\\\""), line.size());
  const std::string_view name = line.substr(0, end), rest = line.substr(end);
  if (name.empty() || read_control(name, rest)) return;
  const std::vector<std::string> arguments = arguments_of(rest);
  if (read_break(name, arguments)) return;
  if (is_one_of(name, {"B", "I", "SM", "SB", "CW", "R"})) {
    say_all(arguments, " ");
  } else if (is_one_of(name, {"BR", "RB", "BI", "IB", "IR", "RI"})) {
    say_all(arguments, "");
  } else if (is_one_of(name, {"UE", "ME", "SY", "OP"})) {
    say_all(arguments, " ");
  } else if (is_mdoc_) {
    read_mdoc(name, arguments);
  }
}

// Requests that steer the reader and say nothing themselves.
bool ManualPage::read_control(std::string_view name, std::string_view rest) {
  if (is_one_of(name, {"if", "ie", "el", "while"})) {
    read_conditional(name, rest);
  } else if (is_one_of(name, {"de", "de1", "am", "ig", "EQ"})) {
    const std::vector<std::string> words = arguments_of(rest);
    const std::size_t end = name == "ig" ? 0 : 1;
    skipped_until_ = name == "EQ" ? "EN" : words.size() > end ? words[end] : ".";
  } else if (name == "so") {
    includes_ = true;
  } else if (is_one_of(name, {"nf", "EX", "Bd"})) {
    lines_.end_line();
    filled_ = name == "Bd" && rest.find("-filled") != std::string_view::npos;
  } else if (is_one_of(name, {"fi", "EE", "Ed"})) {
    lines_.end_line();
    filled_ = true;
  } else if (name == "TS") {
    lines_.end_line();
    in_table_ = in_table_format_ = true;
  } else if (name == "TE") {
    lines_.end_line();
    in_table_ = false;
  } else if (is_one_of(name, {"TH", "Dd"})) {
    has_begun_ = true;
    is_mdoc_ = name == "Dd";
  } else {
    return false;
  }
  return true;
}

// Requests that begin a new line.
bool ManualPage::read_break(std::string_view name, const std::vector<std::string>& arguments) {
  const bool heading = is_one_of(name, {"SH", "SS", "Sh", "Ss"});
  if (!heading && !is_one_of(name, {"PP", "P", "LP", "HP", "TP", "TQ", "IP", "Pp", "Lp", "br", "sp",
                                    "RS", "RE", "in", "ti", "ce", "YS"})) {
    return false;
  }
  has_begun_ = has_begun_ || heading;
  lines_.end_line();
  filled_ = filled_ || heading;
  if (heading && !arguments.empty()) {
    say_all(arguments, " ");
    lines_.end_line();
  }
  if (name == "IP" && !arguments.empty()) say(arguments.front());
  return true;
}

// `.if n x`: this is what people read on a terminal, so n holds and everything else does not.
void ManualPage::read_conditional(std::string_view name, std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  bool holds = name == "el" && !took_branch_;
  if (name == "if" || name == "ie") {
    const bool negated = rest.starts_with('!');
    if (negated) rest.remove_prefix(1);
    const bool simple = rest.size() > 1 && (rest.front() == 'n' || rest.front() == 't') &&
                        kBlanks.find(rest[1]) != std::string_view::npos;
    holds = simple && (rest.front() == 'n') != negated;
    took_branch_ = holds;
    const std::size_t body = simple ? 1 : rest.find_first_of(kBlanks);
    rest.remove_prefix(std::min(body, rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  }
  if (!holds) return skip_block(rest);
  if (rest.starts_with("\\{")) rest.remove_prefix(2);
  if (rest == "\\" || rest.empty() || depth_ == kDeepestCondition) return;
  ++depth_;
  read_line(rest);
  --depth_;
}

void ManualPage::skip_block(std::string_view line) {
  for (std::size_t at = line.find('\\'); at < line.size(); at = line.find('\\', at + 2)) {
    if (line.substr(at).starts_with("\\{")) ++open_braces_;
    if (line.substr(at).starts_with("\\}")) --open_braces_;
    if (line.substr(at).starts_with("\\\"")) break;
  }
  open_braces_ = std::max(open_braces_, 0);
}

// Macros of mdoc call each other: ".Op Fl v Ar file" says "-v file".
void ManualPage::read_mdoc(std::string_view name, const std::vector<std::string>& arguments) {
  if (is_one_of(name, {"Os", "Dt", "Bl", "El", "Bk", "Ek", "Rs", "Re", "Db", "Sm"})) {
    if (name == "Bl" || name == "El") lines_.end_line();
    return;
  }
  if (name == "It") lines_.end_line();
  if (name == "Nm" && name_.empty() && !arguments.empty()) name_ = arguments.front();
  if (name == "Nm" && arguments.empty()) return say(name_);
  if (name == "Xr" && arguments.size() > 1) {
    return say(arguments[0] + "(" + arguments[1] + ")" +
               (arguments.size() > 2 ? arguments[2] : std::string()));
  }
  std::string text;
  bool dash = name == "Fl" || name == "Nd";
  for (const std::string& word : arguments) {
    if (word == "Fl") dash = true;
    if (is_callable_macro(word)) continue;
    const bool closes = word.size() == 1 &&
                        std::string_view(".,:;)]?!").find(word.front()) != std::string_view::npos;
    if (!text.empty() && !closes) text += ' ';
    if (dash) text += name == "Nd" ? "- " : "-";
    text += word;
    dash = false;
  }
  if (!text.empty()) say(text);
}

// Rows become lines; the lines before them say how to print the table.
bool ManualPage::read_table_line(std::string_view line) {
  if (in_table_format_) {
    const std::size_t last = line.find_last_not_of(kBlanks);
    in_table_format_ = last == std::string_view::npos || line[last] != '.';
    return true;
  }
  if (line == "_" || line == "=") return true;
  std::string row;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::string_view mark = line.substr(at, 2);
    if (mark == "T{" || mark == "T}") {
      in_text_block_ = mark == "T{";
      ++at;
    } else {
      row += line[at] == '\t' ? ' ' : line[at];
    }
  }
  say(row);
  if (!in_text_block_) lines_.end_line();
  return true;
}

}  // namespace

std::string text_of_manual(std::string_view page) {
  ManualPage manual;
  manual.read(page);
  if (!manual.is_manual()) {
    throw CorpusError("is no manual page: it has none of .TH, .Dd, .SH, .Sh and .so");
  }
  return manual.text();
}

}  // namespace tupelo

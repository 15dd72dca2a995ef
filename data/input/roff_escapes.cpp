#include "data/input/roff_escapes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

using Glyph = std::pair<std::string_view, std::string_view>;

// groff_char(7); those that occur in manual pages.
constexpr auto kGlyphs = std::to_array<Glyph>(
    {{"!=", "≠"}, {"'A", "Á"}, {"'E", "É"}, {"'a", "á"},  {"'e", "é"}, {"'i", "í"},  {"'o", "ó"},
     {"'u", "ú"}, {"*a", "α"}, {"*b", "β"}, {"*m", "μ"},  {"*p", "π"}, {"+-", "±"},  {",c", "ç"},
     {"->", "→"}, {"/o", "ø"}, {"12", "½"}, {"14", "¼"},  {"34", "¾"}, {":A", "Ä"},  {":O", "Ö"},
     {":U", "Ü"}, {":a", "ä"}, {":e", "ë"}, {":i", "ï"},  {":o", "ö"}, {":u", "ü"},  {"<-", "←"},
     {"<=", "≤"}, {"==", "≡"}, {">=", "≥"}, {"Bq", "„"},  {"Cs", "¤"}, {"Do", "$"},  {"Eu", "€"},
     {"Fc", "»"}, {"Fo", "«"}, {"Po", "£"}, {"R", "®"},   {"S", ""},   {"Tm", "™"},  {"Ye", "¥"},
     {"^a", "â"}, {"^e", "ê"}, {"^i", "î"}, {"^o", "ô"},  {"`a", "à"}, {"`e", "è"},  {"aa", "´"},
     {"ae", "æ"}, {"ap", "~"}, {"aq", "'"}, {"at", "@"},  {"ba", "|"}, {"bq", "‚"},  {"br", "|"},
     {"bu", "•"}, {"bv", "|"}, {"ci", "○"}, {"co", "©"},  {"cq", "’"}, {"ct", "¢"},  {"da", "↓"},
     {"de", "°"}, {"di", "÷"}, {"dg", "†"}, {"dq", "\""}, {"em", "—"}, {"en", "–"},  {"eq", "="},
     {"fm", "′"}, {"ga", "`"}, {"ha", "^"}, {"hy", "-"},  {"if", "∞"}, {"lB", "["},  {"lC", "{"},
     {"la", "⟨"}, {"lh", "☜"}, {"lq", "“"}, {"mc", "µ"},  {"mi", "−"}, {"mu", "×"},  {"no", "¬"},
     {"nq", "'"}, {"oq", "‘"}, {"pc", "·"}, {"pl", "+"},  {"ps", "¶"}, {"rB", "]"},  {"rC", "}"},
     {"ra", "⟩"}, {"rg", "®"}, {"rh", "☞"}, {"rn", "‾"},  {"rq", "”"}, {"rs", "\\"}, {"ru", "_"},
     {"sc", "§"}, {"sh", "#"}, {"sl", "/"}, {"sq", "□"},  {"ss", "ß"}, {"sr", "√"},  {"ti", "~"},
     {"tm", "™"}, {"ts", "ς"}, {"ua", "↑"}, {"ul", "_"},  {"~n", "ñ"}, {"~=", "≈"},  {"~~", "≈"}});

std::string_view glyph_of(std::string_view name) {
  const auto found = std::find_if(kGlyphs.begin(), kGlyphs.end(),
                                  [&](const Glyph& glyph) { return glyph.first == name; });
  return found == kGlyphs.end() ? std::string_view() : found->second;
}

class Escapes {
 public:
  explicit Escapes(std::string_view line) : rest_(line) {}

  bool continues = false;

  std::string read() {
    while (!rest_.empty()) {
      const std::size_t backslash = rest_.find('\\');
      text_ += rest_.substr(0, backslash);
      if (backslash == std::string_view::npos) break;
      rest_.remove_prefix(backslash + 1);
      if (rest_.empty()) break;
      const std::string_view kind = take_characters(1);
      if (kind.size() == 1) {
        escape(kind.front());
      } else {
        text_ += kind;
      }
    }
    return std::move(text_);
  }

 private:
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view take_characters(int count) {
    std::size_t bytes = 0;
    for (; count > 0 && bytes < rest_.size(); --count) {
      bytes += read_utf8(rest_.data() + bytes, rest_.data() + rest_.size()).bytes;
    }
    return take(bytes);
  }
  // What stands before `end`, which goes too.
  std::string_view take_until(std::string_view end) {
    const std::string_view taken = take(rest_.find(end));
    take(end.size());
    return taken;
  }
  // A name as in \fB, \f(CW, \f[name]; after \n and \s, signs may stand before it.
  std::string_view take_name() {
    while (!rest_.empty() && (rest_.front() == '+' || rest_.front() == '-')) take(1);
    if (rest_.empty()) return {};
    if (rest_.front() == '(') return take(1), take_characters(2);
    if (rest_.front() == '[') return take(1), take_until("]");
    return take_characters(1);
  }
  std::string_view take_argument() {
    return rest_.empty() ? std::string_view() : take_until(take_characters(1));
  }
  // \s takes digits without brackets, and quotation marks as well.
  void skip_size() {
    if (!rest_.empty() && rest_.front() == '\'') {
      take_argument();
      return;
    }
    const std::string_view name = take_name();
    const bool may_go_on = name.size() == 1 && name.front() >= '1' && name.front() <= '3';
    if (may_go_on && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') take(1);
  }
  void add_code_point(std::string_view digits, int base) {
    std::uint32_t code = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const bool is_scalar = code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF);
    if (result.ec == std::errc() && code >= 0x20 && is_scalar) text_ += to_utf8(code);
  }
  // \[em], \[u4E2D], \[u0061_0301]
  void add_named(std::string_view name) {
    if (name.size() < 5 || name.front() != 'u') {
      text_ += glyph_of(name);
      return;
    }
    name.remove_prefix(1);
    for (std::size_t end; !name.empty(); name.remove_prefix(std::min(end, name.size()))) {
      end = std::min(name.find('_'), name.size());
      add_code_point(name.substr(0, end), 16);
      ++end;
    }
  }
  void escape(char kind);

  std::string_view rest_;
  std::string text_;
};

void Escapes::escape(char kind) {
  switch (kind) {
    case '"':
    case '#':
      rest_ = {};
      return;
    case '(':
      return add_named(take_characters(2));
    case '[':
      return add_named(take_until("]"));
    case 'C':
      return add_named(take_argument());
    case '*':
      return add_named(take_name());  // strings that man and mdoc predefine are named as glyphs
    case 'N':
      return add_code_point(take_argument(), 10);
    case 'e':
    case '\\':
      text_ += '\\';
      return;
    case '-':
    case '.':
    case '_':
      text_ += kind;
      return;
    case '\'':
      text_ += "´";
      return;
    case '`':
      text_ += '`';
      return;
    case ' ':
    case '~':
    case '0':
    case 't':
      text_ += ' ';
      return;
    case 'c':
      continues = true;
      return;
    case 'f':
    case 'F':
    case 'm':
    case 'M':
    case 'g':
    case 'k':
    case 'n':
    case 'V':
    case 'Y':
      take_name();
      return;
    case 's':
      return skip_size();
    case 'A':
    case 'B':
    case 'D':
    case 'H':
    case 'L':
    case 'R':
    case 'S':
    case 'X':
    case 'Z':
    case 'b':
    case 'h':
    case 'l':
    case 'o':
    case 'v':
    case 'w':
    case 'x':
      take_argument();
      return;
    case '&':
    case ')':
    case '/':
    case ',':
    case ':':
    case '%':
    case '|':
    case '^':
    case '!':
    case '?':
    case '{':
    case '}':
    case 'a':
    case 'd':
    case 'p':
    case 'r':
    case 'u':
    case 'z':
    case 'E':
      return;
    default:
      text_ += kind;  // as roff does with what it does not know
  }
}

}  // namespace

std::string without_roff_escapes(std::string_view line, bool& continues) {
  Escapes escapes(line);
  std::string text = escapes.read();
  continues = escapes.continues;
  return text;
}

}  // namespace tupelo

#include "data/input/restructured_inline.h"

#include <algorithm>
#include <utility>

namespace tupelo {
namespace {

// Of roles and footnotes: so that nothing is searched for without end.
constexpr std::size_t kLongestName = 200;

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

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
  bool begins_word() const {
    return at_ == 0 || !is_rst_word(all_[at_ - 1]) || all_[at_ - 1] == ':';
  }
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
  while (end < last && is_rst_word(all_[end])) ++end;
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
    inside = inside.substr(0, inside.find_last_not_of(' ', target - 1) + 1);
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
  if (at_ == 0 || !is_rst_word(all_[at_ - 1]) || all_[at_ - 1] == '_') return false;
  std::size_t end = at_;
  while (end < all_.size() && all_[end] == '_') ++end;
  if (end - at_ > 2 || (end < all_.size() && is_rst_word(all_[end]) && all_[end] != '.'))
    return false;
  if (end < all_.size() && all_[end] == '.' && end + 1 < all_.size() &&
      is_rst_word(all_[end + 1])) {
    return false;
  }
  at_ = end;
  return true;
}

}  // namespace

bool is_rst_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == ':' || c == '+' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

std::string without_inline_markup(std::string_view text) { return Inline(text).read(); }

}  // namespace tupelo

#include "data/cleaning/html_leftovers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::size_t kLongestTag = 2000;
constexpr std::size_t kLongestEntity = 12;

constexpr auto kInline = std::to_array<std::string_view>(
    {"a",     "abbr", "b",      "big",    "cite",  "code", "del",  "em",
     "font",  "i",    "img",    "ins",    "label", "link", "meta", "s",
     "small", "span", "strike", "strong", "sub",   "sup",  "tt",   "u"});
constexpr auto kBlock = std::to_array<std::string_view>(
    {"blockquote", "body",  "br", "center", "dd",    "div",   "dl",     "dt",      "form",
     "h1",         "h2",    "h3", "h4",     "h5",    "h6",    "head",   "hr",      "html",
     "iframe",     "input", "li", "ol",     "p",     "pre",   "script", "section", "style",
     "table",      "tbody", "td", "th",     "thead", "title", "tr",     "ul"});

using Entity = std::pair<std::string_view, std::string_view>;
constexpr auto kEntities = std::to_array<Entity>(
    {{"amp", "&"},   {"apos", "'"},   {"bull", "•"},   {"copy", "©"},   {"emsp", " "},
     {"ensp", " "},  {"gt", ">"},     {"hellip", "…"}, {"laquo", "«"},  {"ldquo", "“"},
     {"lsquo", "‘"}, {"lt", "<"},     {"mdash", "—"},  {"middot", "·"}, {"nbsp", " "},
     {"ndash", "–"}, {"quot", "\""},  {"raquo", "»"},  {"rdquo", "”"},  {"reg", "®"},
     {"rsquo", "’"}, {"thinsp", " "}, {"times", "×"},  {"trade", "™"}});

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '6');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return result;
}

// Bytes of the tag or comment at the start of `text`, 0 when there is none; `replacement` is set.
std::size_t tag_at(std::string_view text, std::string_view& replacement) {
  replacement = "";
  if (text.starts_with("<!--")) {
    const std::size_t end = text.substr(0, kLongestTag).find("-->");
    return end == std::string_view::npos ? 0 : end + 3;
  }
  const std::size_t start = text.starts_with("</") ? 2 : 1;
  std::size_t end = start;
  while (end < text.size() && end < start + 12 && is_name_character(text[end])) ++end;
  const std::string name = lower(text.substr(start, end - start));
  const bool is_block = contains(kBlock, name);
  if (!is_block && !contains(kInline, name)) return 0;
  if (end < text.size() && std::string_view(" \t/>").find(text[end]) == std::string_view::npos) {
    return 0;
  }
  const std::size_t close = text.substr(0, kLongestTag).find_first_of("<>", end);
  if (close == std::string_view::npos || text[close] != '>') return 0;
  replacement = is_block ? " " : "";
  return close + 1;
}

// The character that "#20013" or "#x4e2d" stands for; empty for none.
std::string referenced(std::string_view number) {
  const bool hexadecimal = number.size() > 1 && (number[1] | 0x20) == 'x';
  number.remove_prefix(hexadecimal ? 2 : 1);
  std::uint32_t code = 0;
  const auto result =
      std::from_chars(number.data(), number.data() + number.size(), code, hexadecimal ? 16 : 10);
  const bool whole = result.ec == std::errc() && result.ptr == number.data() + number.size();
  if (!whole || code < 0x20 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return to_utf8(code);
}

// Bytes of the entity at the start of `text`, 0 when there is none.
std::size_t entity_at(std::string_view text, std::string& character) {
  const std::size_t end = text.substr(0, kLongestEntity).find(';');
  if (end == std::string_view::npos || end < 2) return 0;
  const std::string_view name = text.substr(1, end - 1);
  if (name.front() == '#') {
    character = referenced(name);
  } else {
    const auto found = std::find_if(kEntities.begin(), kEntities.end(),
                                    [&](const Entity& entity) { return entity.first == name; });
    character = found == kEntities.end() ? std::string() : std::string(found->second);
  }
  return character.empty() ? 0 : end + 1;
}

}  // namespace

std::string without_html(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const std::size_t next = std::min(line.find_first_of("<&"), line.size());
    text += line.substr(0, next);
    line.remove_prefix(next);
    if (line.empty()) break;
    std::string_view replacement;
    std::string character;
    std::size_t taken = 0;
    if (line.front() == '<') {
      taken = tag_at(line, replacement);
    } else {
      taken = entity_at(line, character);
      replacement = character;
    }
    text += taken > 0 ? replacement : line.substr(0, 1);
    line.remove_prefix(std::max<std::size_t>(taken, 1));
  }
  return text;
}

}  // namespace tupelo

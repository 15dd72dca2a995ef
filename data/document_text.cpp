#include "data/document_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "data/content_digest.h"
#include "data/errors.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kIdeographicSpace = "\xE3\x80\x80";

// Calls valid(part) and invalid(part) for the maximal parts of `text`, in order. Zero bytes are
// invalid: they are well-formed, but no text has them.
template <typename Valid, typename Invalid>
void split_by_validity(std::string_view text, Valid valid, Invalid invalid) {
  const char* const end = text.data() + text.size();
  const char* begin = text.data();
  const char* at = begin;
  while (at < end) {
    const Utf8Character character = read_utf8(at, end);
    const std::string_view bytes(at, character.bytes);
    if (character.code_point != 0 &&
        (character.code_point != kReplacementCharacter || bytes == kReplacement)) {
      at += character.bytes;
      continue;
    }
    valid(std::string_view(begin, static_cast<std::size_t>(at - begin)));
    invalid(bytes);
    at += character.bytes;
    begin = at;
  }
  valid(std::string_view(begin, static_cast<std::size_t>(at - begin)));
}

// Listens to a JSON parser for one member of the outermost object and keeps nothing else, so that
// depth and size of the rest cost no memory.
class MemberListener : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit MemberListener(std::vector<std::string> path) : path_(std::move(path)) {}

  bool is_object = false, found = false, is_text = false;
  std::string text, error;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& read) override {
    if (is_wanted()) {
      is_text = true;
      text = std::move(read);
    }
    return value();
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object = true;
    const bool descends = at_wanted_ && depth_ == matched_ + 1 && matched_ + 1 < path_.size();
    enter();
    if (descends) ++matched_;
    return true;
  }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    at_wanted_ = depth_ == matched_ + 1 && is_object && name == path_[matched_];
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& what) override {
    error = what.what();
    return false;
  }

 private:
  bool is_wanted() const {
    return at_wanted_ && depth_ == matched_ + 1 && matched_ + 1 == path_.size();
  }
  bool value() {
    if (is_wanted()) found = true;
    if (depth_ == matched_ + 1) at_wanted_ = false;
    return true;
  }
  bool enter() {
    if (is_wanted()) {
      found = true;
      is_text = false;
    }
    at_wanted_ = false;
    ++depth_;
    return true;
  }
  bool leave() {
    if (matched_ > 0 && depth_ == matched_ + 1) --matched_;
    --depth_;
    return true;
  }

  const std::vector<std::string> path_;
  std::uint64_t depth_ = 0;    // open objects and arrays
  std::uint64_t matched_ = 0;  // names of the path that open objects stand under
  bool at_wanted_ = false;
};

// "a.b\.c" -> "a", "b.c"
std::vector<std::string> path_of(const std::string& key) {
  std::vector<std::string> path(1);
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '\\' && i + 1 < key.size() && key[i + 1] == '.') {
      path.back() += key[++i];
    } else if (key[i] == '.') {
      path.emplace_back();
    } else {
      path.back() += key[i];
    }
  }
  return path;
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: ..." without its first two
// thirds.
std::string reason_of(const std::string& message) {
  const std::size_t column = message.find("column ");
  return column == std::string::npos ? message : message.substr(column);
}

}  // namespace

std::uint64_t count_invalid_bytes(std::string_view text) {
  std::uint64_t bytes = 0;
  split_by_validity(
      text, [](std::string_view) {}, [&](std::string_view part) { bytes += part.size(); });
  return bytes;
}

std::uint64_t replace_invalid_bytes(std::string& text) {
  if (is_valid_utf8(text) && text.find('\0') == std::string::npos) return 0;
  std::uint64_t bytes = 0;
  std::string repaired;
  split_by_validity(
      text, [&](std::string_view part) { repaired += part; },
      [&](std::string_view part) {
        bytes += part.size();
        repaired += kReplacement;
      });
  text = std::move(repaired);
  return bytes;
}

std::uint64_t drop_invalid_lines(std::string& text, std::uint64_t& dropped_lines) {
  if (is_valid_utf8(text) && text.find('\0') == std::string::npos) return 0;
  std::uint64_t bytes = 0;
  std::string kept;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::uint64_t invalid = count_invalid_bytes(line);
    bytes += invalid;
    if (invalid > 0) {
      ++dropped_lines;
    } else {
      if (!kept.empty()) kept += '\n';
      kept += line;
    }
  }
  text = std::move(kept);
  return bytes;
}

std::string text_of_json_line(std::string_view line, const std::string& key) {
  MemberListener listener(path_of(key));
  const bool parsed = nlohmann::json::sax_parse(line, &listener);
  if (!parsed) throw CorpusError("is not JSON: " + reason_of(listener.error));
  if (!listener.is_object) throw CorpusError("is not a JSON object");
  if (!listener.found) throw CorpusError("has no key '" + key + "'");
  if (!listener.is_text) throw CorpusError("key '" + key + "' is not a string");
  return std::move(listener.text);
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    if (text.starts_with(kIdeographicSpace)) {
      text.remove_prefix(kIdeographicSpace.size());
    } else if (std::string_view(" \t\r\n\v\f").find(text.front()) != std::string_view::npos) {
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

std::uint64_t document_hash(std::string_view text, ContentDigest& digest) {
  digest.update(text.data(), text.size());
  const ContentDigest::Bytes bytes = digest.finish();
  std::uint64_t hash = 0;
  for (int i = 0; i < 8; ++i) hash = hash << 8 | bytes[static_cast<std::size_t>(i)];
  return hash;
}

}  // namespace tupelo

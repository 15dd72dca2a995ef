#include "data/input/message_catalogue.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "data/errors.h"
#include "data/input/transcoder.h"

namespace tupelo {
namespace {

constexpr std::uint32_t kMagic = 0x950412DE;
constexpr std::size_t kHeaderBytes = 28;
constexpr std::size_t kDescriptorBytes = 8;  // length and place of a string

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// The forms of a plural, which zeros separate: each once, one a line.
std::string forms_of(std::string_view text) {
  std::vector<std::string_view> forms;
  for (;;) {
    const std::size_t zero = text.find('\0');
    const std::string_view form = text.substr(0, zero);
    if (!form.empty() && std::find(forms.begin(), forms.end(), form) == forms.end()) {
      forms.push_back(form);
    }
    if (zero == std::string_view::npos) break;
    text.remove_prefix(zero + 1);
  }
  std::string joined;
  for (const std::string_view form : forms) {
    if (!joined.empty()) joined += '\n';
    joined += form;
  }
  return joined;
}

}  // namespace

MessageCatalogue::MessageCatalogue(std::string bytes, const std::string& name)
    : bytes_(std::move(bytes)), name_(name) {
  if (bytes_.size() < kHeaderBytes) refuse("is shorter than its header of 28 bytes");
  big_endian_ = number_at(0) != kMagic;
  if (number_at(0) != kMagic) refuse("does not begin with the magic number 0x950412de");
  if (number_at(4) >> 16 > 1) {
    refuse("has revision " + std::to_string(number_at(4) >> 16) + ", not 0 or 1");
  }
  entries_ = number_at(8);
  originals_ = number_at(12);
  translations_ = number_at(16);
  check_table(originals_, "originals");
  check_table(translations_, "translations");
  read_charset();
}

void MessageCatalogue::refuse(const std::string& what) const {
  throw CorpusError(name_ + ": is no gettext catalogue: it " + what);
}

std::uint32_t MessageCatalogue::number_at(std::size_t at) const {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[at + i]));
    number |= byte << (8 * (big_endian_ ? 3 - i : i));
  }
  return number;
}

void MessageCatalogue::check_table(std::size_t table, const char* what) const {
  const std::size_t size = bytes_.size();
  if (table > size || entries_ > (size - table) / kDescriptorBytes) {
    refuse(std::string("has a table of ") + what + " that reaches beyond its end");
  }
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < entries_; ++i) {
    const std::size_t length = number_at(table + i * kDescriptorBytes);
    const std::size_t place = number_at(table + i * kDescriptorBytes + 4);
    const std::string entry = std::string("entry ") + std::to_string(i + 1) + " of its " + what;
    if (place >= size || length >= size - place) refuse("ends before " + entry + " does");
    if (bytes_[place + length] != '\0') refuse("has no zero behind " + entry);
    total += length;
    if (total > size) refuse(std::string("has ") + what + " that overlap");
  }
}

std::string_view MessageCatalogue::string_at(std::size_t table, std::uint32_t entry) const {
  const std::size_t length = number_at(table + entry * kDescriptorBytes);
  const std::size_t place = number_at(table + entry * kDescriptorBytes + 4);
  return std::string_view(bytes_).substr(place, length);
}

// From "Content-Type: text/plain; charset=UTF-8" in the translation of the empty string.
void MessageCatalogue::read_charset() {
  charset_ = "UTF-8";
  for (std::uint32_t i = 0; i < entries_; ++i) {
    if (!string_at(originals_, i).empty()) continue;
    const std::string_view header = string_at(translations_, i);
    const std::size_t at = header.find("charset=");
    if (at == std::string_view::npos) return;
    const std::string_view rest = header.substr(at + 8);
    charset_ = upper(rest.substr(0, rest.find_first_of(" \t\r\n;")));
    return;
  }
}

bool MessageCatalogue::next(std::string& translation) {
  while (entry_ < entries_) {
    const std::uint32_t entry = entry_++;
    if (string_at(originals_, entry).empty()) continue;
    translation = forms_of(string_at(translations_, entry));
    if (translation.empty()) continue;
    if (charset_ != "UTF-8" && charset_ != "UTF8" && charset_ != "US-ASCII") {
      translation = transcoded_to_utf8(translation, charset_, name_);
    }
    return true;
  }
  return false;
}

}  // namespace tupelo

#include "data/segmenter/word_frequencies.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/errors.h"
#include "data/segmenter/likeliest_words.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class LineError {
 public:
  LineError(const std::filesystem::path& file, std::size_t line) : file_(file), line_(line) {}
  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError("dictionary " + file_.string() + ": line " + std::to_string(line_) + ": " +
                      what);
  }

 private:
  const std::filesystem::path& file_;
  std::size_t line_;
};

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_user_tag(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// The parts of a line between single spaces, at least one.
std::vector<std::string_view> split_fields(std::string_view line, const LineError& error) {
  if (!is_valid_utf8(line)) error.refuse("is not valid UTF-8");
  if (line.find('\0') != line.npos) error.refuse("holds a NUL byte: not a text file?");
  if (line.find_first_of("\t\r\v\f") != line.npos) {
    error.refuse("holds white space other than single spaces between the fields");
  }
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end == 0) error.refuse("has an empty field: spaces at its start or end, or two in a row");
    fields.push_back(line.substr(0, end));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

void check_word(std::string_view word, const LineError& error) {
  if (word.size() > kMaxWordBytes) {
    error.refuse("its word is longer than " + std::to_string(kMaxWordBytes) + " bytes");
  }
}

std::uint64_t frequency_of(std::string_view digits, const LineError& error) {
  if (!is_number(digits)) {
    error.refuse("the frequency '" + std::string(digits) + "' is not a whole number");
  }
  std::uint64_t frequency = 0;
  for (const char digit : digits) {
    frequency = frequency * 10 + static_cast<std::uint64_t>(digit - '0');
    if (frequency > kMaxWordFrequency) {
      error.refuse("the frequency is above " + std::to_string(kMaxWordFrequency));
    }
  }
  return frequency;
}

// Calls visit(line without its end, error) for each line; returns the SHA-256 of the bytes.
template <class Visit>
std::string each_line(const std::filesystem::path& file, Visit visit) {
  const std::string bytes = read_corpus_text(file, kMaxDictionaryBytes);
  std::string_view rest = bytes;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const LineError error(file, number);
    if (number > kMaxDictionaryWords) {
      error.refuse("more than " + std::to_string(kMaxDictionaryWords) + " lines");
    }
    visit(line, error);
  }
  return sha256_hex_of(bytes.data(), bytes.size());
}

struct UserEntry {
  std::string_view word;
  std::optional<std::uint64_t> frequency;
};

// The optional fields are the last ones; what is before them is the word, spaces and all.
UserEntry user_entry(std::string_view line, const LineError& error) {
  std::vector<std::string_view> fields = split_fields(line, error);
  UserEntry entry{line, {}};
  const auto take_last = [&] {
    entry.word.remove_suffix(fields.back().size() + 1);
    fields.pop_back();
  };
  if (fields.size() > 1 && is_user_tag(fields.back())) take_last();
  if (fields.size() > 1 && is_number(fields.back())) {
    entry.frequency = frequency_of(fields.back(), error);
    take_last();
  }
  if (std::any_of(fields.begin() + 1, fields.end(), is_number)) {
    error.refuse("is not `word [frequency] [tag]` with a whole number and a tag of letters a-z");
  }
  check_word(entry.word, error);
  return entry;
}

// The dictionary as it stands, to find out how it would cut a word that is not in it yet.
class CurrentLexicon {
 public:
  explicit CurrentLexicon(const WordFrequencies& words)
      : words_(words), log_total_(std::log(static_cast<double>(words.total()))) {}

  class Cursor {
   public:
    explicit Cursor(const CurrentLexicon& lexicon) : lexicon_(lexicon) {}
    bool extend(const char* begin, const char*, const char* to) {
      at_ = lexicon_.words_.find({begin, static_cast<std::size_t>(to - begin)});
      return at_.found;
    }
    bool is_word() const { return at_.frequency > 0; }
    double weight() const {
      return std::log(static_cast<double>(at_.frequency)) - lexicon_.log_total_;
    }

   private:
    const CurrentLexicon& lexicon_;
    WordFrequencies::Found at_{true, 0};
  };

  Cursor cursor() const { return Cursor(*this); }
  double unknown_weight() const { return -log_total_; }

 private:
  const WordFrequencies& words_;
  double log_total_;
};

}  // namespace

void WordFrequencies::add_word(std::string_view word, std::uint64_t frequency) {
  frequencies_.insert_or_assign(std::string(word), frequency);
  total_ += frequency;
  for (std::size_t at = 0; at < word.size();) {
    at += read_utf8(word.data() + at, word.data() + word.size()).bytes;
    const std::string_view beginning = word.substr(0, at);
    if (!frequencies_.contains(beginning)) frequencies_.emplace(beginning, 0);
  }
}

std::string WordFrequencies::add_dictionary(const std::filesystem::path& file) {
  const std::string sha256 = each_line(file, [this](std::string_view line, const LineError& error) {
    if (line.empty()) error.refuse("empty, but each line must hold a word and its frequency");
    const std::vector<std::string_view> fields = split_fields(line, error);
    if (fields.size() < 2) error.refuse("has no frequency behind the word");
    if (fields.size() > 3) error.refuse("has more than the fields word, frequency, tag");
    check_word(fields[0], error);
    add_word(fields[0], frequency_of(fields[1], error));
  });
  if (total_ == 0) {
    throw CorpusError("dictionary " + file.string() +
                      ": no word has a frequency above 0; each line must be `word frequency tag`");
  }
  return sha256;
}

std::string WordFrequencies::add_user_dictionary(const std::filesystem::path& file) {
  return each_line(file, [this](std::string_view line, const LineError& error) {
    if (line.empty()) return;
    const UserEntry entry = user_entry(line, error);
    add_word(entry.word, entry.frequency ? *entry.frequency : suggested_frequency(entry.word));
  });
}

// jieba's arithmetic, in its order.
std::uint64_t WordFrequencies::suggested_frequency(std::string_view word) const {
  const auto frequency_or_one = [this](std::string_view text) {
    const Found entry = find(text);
    return entry.found ? entry.frequency : 1;
  };
  const double total = static_cast<double>(total_);
  const CurrentLexicon lexicon(*this);
  std::vector<std::size_t> ends;
  LikeliestWords<CurrentLexicon>(lexicon).find(word, ends);
  double probability = 1;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    probability *= static_cast<double>(frequency_or_one(word.substr(begin, end - begin))) / total;
    begin = end;
  }
  const auto least = static_cast<std::uint64_t>(probability * total) + 1;
  return std::max(least, frequency_or_one(word));
}

WordFrequencies::Found WordFrequencies::find(std::string_view text) const {
  const auto entry = frequencies_.find(text);
  if (entry == frequencies_.end()) return {false, 0};
  return {true, entry->second};
}

void WordFrequencies::each_word(
    const std::function<void(const std::string&, std::uint64_t)>& visit) const {
  for (const auto& [word, frequency] : frequencies_) {
    if (frequency > 0) visit(word, frequency);
  }
}

}  // namespace tupelo

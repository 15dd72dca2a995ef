#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "data/cleaning/characters.h"
#include "data/cleaning/cleaning_rule.h"
#include "data/cleaning/html_leftovers.h"
#include "data/cleaning/lines.h"
#include "data/cleaning/repetition.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%g %%", share * 100);
  return text;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

// Changes lines, one by one.
template <typename Change>
void change_lines(std::string& text, RuleLog& log, Change change) {
  std::string kept;
  kept.reserve(text.size());
  bool first = true;
  for_each_line(text, [&](std::string_view line) {
    const std::string changed = change(line);
    if (changed != line) {
      const std::size_t shorter = line.size() - std::min(changed.size(), line.size());
      log.change_line(line, shorter);
    }
    if (!first) kept += '\n';
    first = false;
    kept += changed;
  });
  text = std::move(kept);
}

// Drops lines; a document without any line left is dropped.
template <typename Drops>
void drop_lines(std::string& text, RuleLog& log, Drops drops) {
  std::string kept;
  bool any_dropped = false;
  for_each_line(text, [&](std::string_view line) {
    if (!line.empty() && drops(line)) {
      log.drop_line(line);
      any_dropped = true;
    } else {
      if (!kept.empty()) kept += '\n';
      kept += line;
    }
  });
  if (any_dropped) text = std::move(kept);
}

class ControlCharacters : public CleaningRule {
 public:
  std::string name() const override { return "control-characters"; }
  std::string what() const override {
    return "control, invisible, private and replacement characters, taken out";
  }
  void apply(std::string& text, RuleLog& log) const override {
    if (has_noise(text)) change_lines(text, log, without_noise);
  }

 private:
  static bool has_noise(std::string_view text) {
    for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
      const Utf8Character character = read_utf8(at, end);
      if (is_noise(character.code_point)) return true;
      at += character.bytes;
    }
    return false;
  }
  static std::string without_noise(std::string_view line) {
    std::string text;
    for (const char *at = line.data(), *const end = at + line.size(); at < end;) {
      const Utf8Character character = read_utf8(at, end);
      if (!is_noise(character.code_point)) text.append(at, character.bytes);
      at += character.bytes;
    }
    return text;
  }
};

class HtmlLeftovers : public CleaningRule {
 public:
  std::string name() const override { return "html"; }
  std::string what() const override { return "tags taken out, entities made characters"; }
  void apply(std::string& text, RuleLog& log) const override {
    if (text.find_first_of("<&") != std::string::npos) change_lines(text, log, without_html);
  }
};

class SymbolLines : public CleaningRule {
 public:
  std::string name() const override { return "symbol-lines"; }
  std::string what() const override { return "lines without a letter or digit"; }
  void apply(std::string& text, RuleLog& log) const override {
    drop_lines(text, log, [](std::string_view line) {
      const CharacterCounts counts = count_characters(line, "");
      return counts.characters > 0 && counts.letters + counts.digits == 0;
    });
  }
};

class ShortLines : public CleaningRule {
 public:
  explicit ShortLines(std::uint64_t least) : least_(least) {}
  std::string name() const override { return "short-lines"; }
  std::string what() const override {
    return std::string("lines of less than ") + number(least_) + " characters";
  }
  void apply(std::string& text, RuleLog& log) const override {
    drop_lines(text, log, [this](std::string_view line) {
      return line.size() < 4 * least_ && count_visible_characters(line) < least_;
    });
  }

 private:
  std::uint64_t least_;
};

// Looks at a document as a whole.
class WholeDocumentRule : public CleaningRule {
 public:
  void apply(std::string& text, RuleLog& log) const override {
    if (!drops(text)) return;
    log.drop_document(text);
    text.clear();
  }

 private:
  virtual bool drops(const std::string& text) const = 0;
};

class RepeatedLines : public WholeDocumentRule {
 public:
  explicit RepeatedLines(double most) : most_(most) {}
  std::string name() const override { return "repeated-lines"; }
  std::string what() const override {
    return std::string("documents in which more than ") + percent(most_) +
           " of the text are lines said before";
  }

 private:
  bool drops(const std::string& text) const override {
    return repeated_share_of_lines(text) > most_;
  }
  double most_;
};

class RepeatedGrams : public WholeDocumentRule {
 public:
  explicit RepeatedGrams(double most) : most_(most) {}
  std::string name() const override { return "repeated-grams"; }
  std::string what() const override {
    return std::string("documents in which more than ") + percent(most_) +
           " of the runs of 10 characters are said before";
  }

 private:
  bool drops(const std::string& text) const override {
    return repeated_share_of_grams(text) > most_;
  }
  double most_;
};

class LittleChinese : public WholeDocumentRule {
 public:
  explicit LittleChinese(double least) : least_(least) {}
  std::string name() const override { return "chinese"; }
  std::string what() const override {
    return std::string("documents in which less than ") + percent(least_) +
           " of the letters are Han";
  }

 private:
  bool drops(const std::string& text) const override {
    const CharacterCounts counts = count_characters(text, "");
    return static_cast<double>(counts.han) < least_ * static_cast<double>(counts.letters);
  }
  double least_;
};

class ForeignDocuments : public WholeDocumentRule {
 public:
  ForeignDocuments(double most, std::string language)
      : most_(most), language_(std::move(language)) {}
  std::string name() const override { return "language"; }
  std::string what() const override {
    return std::string("documents in which more than ") + percent(most_) +
           " of the letters are of scripts that are not those of '" + language_ + "'";
  }

 private:
  bool drops(const std::string& text) const override {
    const CharacterCounts counts = count_characters(text, language_);
    return static_cast<double>(counts.foreign) > most_ * static_cast<double>(counts.letters);
  }
  double most_;
  std::string language_;
};

class Length : public WholeDocumentRule {
 public:
  Length(std::uint64_t least, std::uint64_t most) : least_(least), most_(most) {}
  std::string name() const override { return "length"; }
  std::string what() const override {
    return std::string("documents of less than ") + number(least_) +
           (most_ > 0 ? std::string(" or more than ") + number(most_) : std::string()) +
           " characters";
  }

 private:
  bool drops(const std::string& text) const override {
    const std::uint64_t characters = count_visible_characters(text);
    return characters < least_ || (most_ > 0 && characters > most_);
  }
  std::uint64_t least_, most_;
};

}  // namespace

std::vector<std::unique_ptr<CleaningRule>> cleaning_rules(const CleaningOptions& options,
                                                          const std::string& language) {
  std::vector<std::unique_ptr<CleaningRule>> rules;
  const auto add = [&](bool wanted, auto make) {
    if (wanted) rules.push_back(make());
  };
  add(options.control_characters, [] { return std::make_unique<ControlCharacters>(); });
  add(options.html, [] { return std::make_unique<HtmlLeftovers>(); });
  add(options.symbol_lines, [] { return std::make_unique<SymbolLines>(); });
  add(options.min_line_characters > 0,
      [&] { return std::make_unique<ShortLines>(options.min_line_characters); });
  add(options.most_repeated_lines < 1,
      [&] { return std::make_unique<RepeatedLines>(options.most_repeated_lines); });
  add(options.most_repeated_grams < 1,
      [&] { return std::make_unique<RepeatedGrams>(options.most_repeated_grams); });
  add(options.min_chinese > 0,
      [&] { return std::make_unique<LittleChinese>(options.min_chinese); });
  add(options.most_foreign < 1,
      [&] { return std::make_unique<ForeignDocuments>(options.most_foreign, language); });
  add(options.min_document_characters > 0 || options.max_document_characters > 0, [&] {
    return std::make_unique<Length>(options.min_document_characters,
                                    options.max_document_characters);
  });
  return rules;
}

}  // namespace tupelo

#include "data/segmenter/segmenter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/content_digest.h"
#include "data/segmenter/likeliest_words.h"
#include "data/segmenter/word_frequencies.h"
#include "data/tokenizer/double_array.h"

namespace tupelo {
namespace {

constexpr const char* kRules = "words of largest probability 1";

std::vector<std::string> sorted_words(const WordFrequencies& frequencies) {
  std::vector<std::string> words;
  frequencies.each_word([&](const std::string& word, std::uint64_t) { words.push_back(word); });
  std::sort(words.begin(), words.end());
  return words;
}

std::string fingerprint_of(const std::vector<DictionaryFile>& files) {
  std::string text = std::string(kRules) + "\n";
  for (const DictionaryFile& file : files) text += file.sha256 + "\n";
  return sha256_hex_of(text.data(), text.size());
}

}  // namespace

class Segmenter::Lexicon {
 public:
  explicit Lexicon(const WordFrequencies& frequencies)
      : Lexicon(frequencies, sorted_words(frequencies)) {}

  class Cursor {
   public:
    explicit Cursor(const Lexicon& lexicon) : lexicon_(lexicon) {}

    bool extend(const char*, const char* from, const char* to) {
      for (; from != to; ++from) {
        node_ = lexicon_.trie_.step(node_, *from);
        if (node_ == DoubleArray::kNone) return false;
      }
      word_ = lexicon_.trie_.value(node_);
      return true;
    }
    bool is_word() const { return word_ != DoubleArray::kNone; }
    double weight() const { return lexicon_.weights_[word_]; }

   private:
    const Lexicon& lexicon_;
    std::uint32_t node_ = DoubleArray::kRoot;
    std::uint32_t word_ = DoubleArray::kNone;
  };

  Cursor cursor() const { return Cursor(*this); }
  double unknown_weight() const { return unknown_weight_; }

 private:
  Lexicon(const WordFrequencies& frequencies, const std::vector<std::string>& words)
      : trie_(words) {
    // The order of operations is jieba's, so that ties fall as they do there.
    const double log_total = std::log(static_cast<double>(frequencies.total()));
    unknown_weight_ = -log_total;
    for (const std::string& word : words) {
      const auto frequency = static_cast<double>(frequencies.find(word).frequency);
      weights_.push_back(std::log(frequency) - log_total);
    }
  }

  DoubleArray trie_;
  std::vector<double> weights_;  // log probability of each word
  double unknown_weight_ = 0;
};

Segmenter::Segmenter(const std::filesystem::path& dictionary,
                     const std::vector<std::filesystem::path>& user_dictionaries) {
  WordFrequencies frequencies;
  files_.push_back({dictionary, frequencies.add_dictionary(dictionary)});
  for (const std::filesystem::path& file : user_dictionaries) {
    files_.push_back({file, frequencies.add_user_dictionary(file)});
  }
  fingerprint_ = fingerprint_of(files_);
  lexicon_ = std::make_unique<const Lexicon>(frequencies);
}

Segmenter::~Segmenter() = default;

void Segmenter::segment(std::string_view text, std::vector<std::size_t>& word_ends) const {
  LikeliestWords<Lexicon>(*lexicon_).find(text, word_ends);
}

}  // namespace tupelo

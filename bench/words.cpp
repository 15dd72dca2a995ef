// How fast text is cut into words, beside jieba, and how fast tokens are masked.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "data/masker.h"
#include "data/segmenter/segmenter.h"
#include "data/tokenizer/utf8.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kVocabulary = 21128;
constexpr std::uint64_t kRow = 510;  // tokens, without [CLS] and [SEP]

// Reads a file's first bytes and prints the seconds that jieba takes to cut its lines.
constexpr const char* kJieba =
    "import jieba,sys,time;jieba.setLogLevel(60);jieba.initialize();"
    "lines=open(sys.argv[1],'rb').read(int(sys.argv[2])).decode('utf8','ignore').split(chr(10));"
    "start=time.perf_counter();"
    "[list(jieba.cut(line,HMM=False)) for line in lines];"
    "print(time.perf_counter()-start)";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string read_text(const std::string& file, std::size_t bytes) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.empty()) throw std::invalid_argument("--text names no file with text: " + file);
  return text;
}

double segment_seconds(const Segmenter& segmenter, std::string_view text) {
  std::vector<std::size_t> ends;
  const auto start = Clock::now();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ends.clear();
    segmenter.segment(text.substr(begin, end - begin), ends);
    begin = end + 1;
  }
  return seconds_since(start);
}

double jieba_seconds(const std::string& python, const std::string& file, std::size_t bytes) {
  const std::string command =
      python + " -c \"" + kJieba + "\" '" + file + "' " + std::to_string(bytes);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double seconds = 0;
  if (!pipe || std::fscanf(pipe.get(), "%lf", &seconds) != 1) {
    throw std::runtime_error("jieba could not be timed: " + python + " needs the package jieba");
  }
  return seconds;
}

// The text as one document: a token for each character, words by the segmenter.
struct Document {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> word_start;
};

Document document_of(const Segmenter& segmenter, const std::string& text) {
  std::vector<std::size_t> ends;
  segmenter.segment(text, ends);
  Document document;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    for (std::size_t at = begin; at < end;) {
      const Utf8Character character = read_utf8(text.data() + at, text.data() + end);
      document.ids.push_back(100 + character.code_point % (kVocabulary - 100));
      document.word_start.push_back(at == begin ? 1 : 0);
      at += character.bytes;
    }
    begin = end;
  }
  return document;
}

double mask_seconds(const Masker& masker, const Document& document, std::uint64_t epoch,
                    std::size_t& masked_tokens) {
  std::vector<std::uint32_t> tokens;
  std::vector<MaskedToken> masked;
  masked_tokens = 0;
  const std::uint64_t count = document.ids.size();
  const auto start = Clock::now();
  for (std::uint64_t first = 0; first < count; first += kRow) {
    const std::uint64_t end = std::min(count, first + kRow);
    tokens.assign(document.ids.begin() + static_cast<std::ptrdiff_t>(first),
                  document.ids.begin() + static_cast<std::ptrdiff_t>(end));
    const TokenRange flags = masker.flags_for({first, end}, count);
    masked.clear();
    masker.mask(
        epoch, 0, count, first, tokens,
        {flags.first, std::span(document.word_start).subspan(flags.first, flags.end - flags.first)},
        masked);
    masked_tokens += masked.size();
  }
  return seconds_since(start);
}

struct Row {
  std::string what, unit;
  double amount;  // of the unit, per round
  Samples seconds;

  double rate() const { return amount / seconds.min(); }
};

void print(const std::vector<Row>& rows, bool json) {
  if (!json) std::printf("%-24s %10s %10s %12s\n", "", "min s", "median s", "rate");
  for (const Row& row : rows) {
    std::printf(json ? "{\"bench\": \"words\", \"what\": \"%s\", \"min_seconds\": %.6f, "
                       "\"median_seconds\": %.6f, \"rate\": %.3f, \"unit\": \"%s\"}\n"
                     : "%-24s %10.4f %10.4f %12.2f %s\n",
                row.what.c_str(), row.seconds.min(), row.seconds.median(), row.rate(),
                row.unit.c_str());
  }
}

void run(const Arguments& arguments) {
  const std::string& file = arguments.text("--text");
  const auto bytes = static_cast<std::size_t>(arguments.number("--bytes"));
  const std::string text = read_text(file, bytes);
  const auto load_start = Clock::now();
  const Segmenter segmenter(arguments.text("--dictionary"));
  Row load{"load the dictionary", "per s", 1, {{seconds_since(load_start)}}};
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  Row ours{"segment", "MB/s", megabytes, {}}, jieba{"jieba, HMM off", "MB/s", megabytes, {}};

  const Document document = document_of(segmenter, text);
  CorpusInfo info;
  info.vocab_size = kVocabulary;
  for (std::uint32_t id = 0; id < 100; ++id) info.reserved_ids.push_back(id);
  info.special = {.pad = 0, .unk = 1, .cls = 2, .sep = 3, .mask = 4};
  const double megatokens = static_cast<double>(document.ids.size()) / 1e6;
  const std::vector<std::pair<std::string, Masking>> modes = {
      {"mask token", Masking::kToken},
      {"mask whole-word", Masking::kWholeWord},
      {"mask span", Masking::kSpan},
      {"mask ngram", Masking::kNgram}};
  std::vector<Row> masking;
  for (const auto& [name, mode] : modes) masking.push_back({name, "Mtok/s", megatokens, {}});

  for (std::int64_t round = 0; round < arguments.number("--rounds"); ++round) {
    ours.seconds.values.push_back(segment_seconds(segmenter, text));
    if (!arguments.text("--python").empty()) {
      jieba.seconds.values.push_back(jieba_seconds(arguments.text("--python"), file, text.size()));
    }
    for (std::size_t i = 0; i < modes.size(); ++i) {
      DataOptions options;
      options.masking = modes[i].second;
      const Masker masker(info, options);
      std::size_t masked = 0;
      masking[i].seconds.values.push_back(
          mask_seconds(masker, document, static_cast<std::uint64_t>(round), masked));
    }
  }
  std::vector<Row> rows{load, ours};
  if (!jieba.seconds.values.empty()) rows.push_back(jieba);
  rows.insert(rows.end(), masking.begin(), masking.end());
  print(rows, arguments.json());
  if (!jieba.seconds.values.empty() && !arguments.json()) {
    std::printf("segment / jieba: %.1f\n", jieba.seconds.min() / ours.seconds.min());
  }
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("words", argc, argv,
                                  {{"--text", ""},
                                   {"--bytes", "4000000"},
                                   {"--dictionary", ""},
                                   {"--python", ""},
                                   {"--rounds", "5"}},
                                  tupelo::bench::run);
}

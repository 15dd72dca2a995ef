// How fast text becomes token ids, on one thread.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "data/tokenizer/load_tokenizer.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::invalid_argument("cannot open the text " + path + "; name one with --text");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void export_json(const Tokenizer& tokenizer, const std::string& path) {
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name == "tokenizer.json") std::ofstream(path, std::ios::binary) << file.content;
  }
}

// Each line by itself, as a document; ids are counted and forgotten.
std::size_t encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  std::size_t tokens = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> word_start;
  for (const std::string& line : lines) {
    ids.clear();
    word_start.clear();
    tokenizer.encode(line, ids, &word_start);
    tokens += ids.size();
  }
  return tokens;
}

void run(const Arguments& arguments) {
  const auto tokenizer =
      load_tokenizer(arguments.text("--tokenizer"),
                     {.wordpiece = {.lowercase = arguments.number("--lowercase") != 0},
                      .byte_bpe = {.add_prefix_space = arguments.number("--prefix-space") != 0}});
  if (!arguments.text("--export").empty()) export_json(*tokenizer, arguments.text("--export"));
  const std::vector<std::string> lines = read_lines(arguments.text("--text"));
  double bytes = 0;
  for (const std::string& line : lines) bytes += static_cast<double>(line.size());
  Samples seconds;
  std::size_t tokens = 0;
  for (std::int64_t round = 0; round < arguments.number("--rounds"); ++round) {
    const auto start = Clock::now();
    tokens = encode_all(*tokenizer, lines);
    seconds.values.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const auto count = static_cast<double>(tokens);
  if (arguments.json()) {
    std::printf("{\"kind\": \"%s\", \"bytes\": %.0f, \"tokens\": %zu, \"seconds\": [",
                tokenizer->kind().c_str(), bytes, tokens);
    for (std::size_t i = 0; i < seconds.values.size(); ++i) {
      std::printf("%s%.6f", i == 0 ? "" : ", ", seconds.values[i]);
    }
    std::printf("]}\n");
  } else {
    std::printf("%s: %.1f MB, %zu tokens, min %.3f s (%.1f MB/s, %.1f Mtok/s), median %.3f s\n",
                tokenizer->kind().c_str(), bytes / 1e6, tokens, seconds.min(),
                bytes / 1e6 / seconds.min(), count / 1e6 / seconds.min(), seconds.median());
  }
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("tokenize", argc, argv,
                                  {{"--tokenizer", ""},
                                   {"--text", ""},
                                   {"--rounds", "5"},
                                   {"--lowercase", "1"},
                                   {"--prefix-space", "0"},
                                   {"--export", ""}},
                                  tupelo::bench::run);
}

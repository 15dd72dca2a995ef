// Lets another program talk to the tokenizers and their trainers over pipes.
//   tokenizer_stream encode PATH cased|uncased|prefix|plain   records in, ids and word flags out
//   tokenizer_stream decode PATH                    records of ids in, records of text out
//   tokenizer_stream write PATH cased|uncased|prefix|plain FOLDER   the tokenizer's files
//   tokenizer_stream train SIZE MIN_COUNT THREADS cased|uncased   records in, vocab.txt out
//   tokenizer_stream train SIZE MIN_COUNT THREADS prefix|plain FOLDER   the same; BPE's files
// A record is its length in bytes (32 bits, this machine's byte order) and its bytes. For each
// record encode answers the number of ids (32 bits), the ids (32 bits each) and the flags (8 bits
// each).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/byte_bpe_trainer.h"
#include "data/tokenizer/load_tokenizer.h"
#include "data/tokenizer/wordpiece_trainer.h"

namespace {

std::optional<std::string> read_record() {
  std::uint32_t size = 0;
  if (std::fread(&size, sizeof size, 1, stdin) != 1) return std::nullopt;
  std::string bytes(size, '\0');
  if (std::fread(bytes.data(), 1, size, stdin) != size) return std::nullopt;
  return bytes;
}

tupelo::WordPieceOptions parse_options(const std::string& word) {
  return tupelo::WordPieceOptions{.lowercase = word == "uncased"};
}

std::unique_ptr<tupelo::Tokenizer> load(const std::string& path, const std::string& word) {
  return tupelo::load_tokenizer(
      path, {.wordpiece = parse_options(word), .byte_bpe = {.add_prefix_space = word == "prefix"}});
}

int decode(const std::string& path) {
  const auto tokenizer = load(path, "plain");
  while (const auto record = read_record()) {
    std::vector<std::uint32_t> ids(record->size() / sizeof(std::uint32_t));
    std::memcpy(ids.data(), record->data(), ids.size() * sizeof ids[0]);
    const std::string text = tokenizer->decode(ids);
    const auto size = static_cast<std::uint32_t>(text.size());
    std::fwrite(&size, sizeof size, 1, stdout);
    std::fwrite(text.data(), 1, size, stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

void write(const tupelo::Tokenizer& tokenizer, const std::string& folder) {
  for (const auto& [name, content] : tokenizer.files()) {
    std::ofstream(folder + "/" + name, std::ios::binary) << content;
  }
}

int encode(const std::string& path, const std::string& word) {
  const auto tokenizer = load(path, word);
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> word_start;
  while (const auto text = read_record()) {
    ids.clear();
    word_start.clear();
    tokenizer->encode(*text, ids, &word_start);
    if (ids.size() != word_start.size()) return 3;
    const auto count = static_cast<std::uint32_t>(ids.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(ids.data(), sizeof ids[0], count, stdout);
    std::fwrite(word_start.data(), 1, count, stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

template <class Trainer>
void add_records(Trainer& trainer) {
  std::vector<std::string> texts;
  const auto flush = [&] {
    trainer.add(texts);
    texts.clear();
  };
  std::size_t bytes = 0;
  while (auto text = read_record()) {
    bytes += text->size();
    texts.push_back(std::move(*text));
    if (bytes > (std::size_t{8} << 20)) {
      flush();
      bytes = 0;
    }
  }
  flush();
}

int train(const tupelo::WordPieceTrainerOptions& options) {
  tupelo::WordPieceTrainer trainer(options);
  add_records(trainer);
  for (const std::string& token : trainer.train()) std::printf("%s\n", token.c_str());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int train(const tupelo::ByteBpeTrainerOptions& options, const std::string& folder) {
  tupelo::ByteBpeTrainer trainer(options);
  add_records(trainer);
  write(*trainer.train(), folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "encode") return encode(arguments[1], arguments[2]);
  if (arguments.size() == 2 && arguments[0] == "decode") return decode(arguments[1]);
  if (arguments.size() == 4 && arguments[0] == "write") {
    write(*load(arguments[1], arguments[2]), arguments[3]);
    return 0;
  }
  if (arguments.size() == 5 && arguments[0] == "train") {
    return train({.vocab_size = static_cast<std::uint32_t>(std::stoul(arguments[1])),
                  .min_count = std::stoull(arguments[2]),
                  .wordpiece = parse_options(arguments[4]),
                  .threads = std::stoi(arguments[3])});
  }
  if (arguments.size() == 6 && arguments[0] == "train") {
    return train({.vocab_size = static_cast<std::uint32_t>(std::stoul(arguments[1])),
                  .min_count = std::stoull(arguments[2]),
                  .byte_bpe = {.add_prefix_space = arguments[4] == "prefix"},
                  .threads = std::stoi(arguments[3])},
                 arguments[5]);
  }
  std::fprintf(stderr, "usage: tokenizer_stream encode|decode|write|train ...\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// libFuzzer: any bytes as the files of a tokenizer are loaded or refused with a CorpusError; a
// tokenizer that was loaded gives ids of its vocabulary for any text, and its own files make it
// again. The first byte chooses the kind, and whether the others are the file itself or changes to
// a sound one: four bytes each, a place, what to do there, and a value.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/errors.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

// A file without a name, filled anew each time.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", 0)) {}
  fs::path holding(const std::string& bytes) const {
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) !=
                                                static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

struct Files {
  MemoryFile first, second;
};

const std::string kVocabularyText =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused0]\na\nb\nab\n##a\n##b\n##ab\nthe\n##s\n.\n,"
    "\n\xE4\xB8\xAD\n"
    "\xE5\x9B\xBD\n\xC3\xA9\n1\n##1\n";

std::string byte_vocabulary() {
  std::string json = "{\"<s>\": 0, \"</s>\": 1, \"<pad>\": 2, \"<unk>\": 3, \"<mask>\": 4";
  int id = 5;
  const auto add = [&](const std::string& token) {
    json += ", \"" + token + "\": " + std::to_string(id++);
  };
  // The 256 characters that stand for bytes, as GPT-2 chose them.
  int others = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || byte > 173;
    const unsigned character = itself ? byte : 256 + static_cast<unsigned>(others++);
    std::string token;
    if (character < 128) {
      if (character == '"' || character == '\\') token += '\\';
      token += static_cast<char>(character);
    } else {
      token += static_cast<char>(0xC0 | character >> 6);
      token += static_cast<char>(0x80 | (character & 63));
    }
    add(token);
  }
  for (const char* token : {"ab", "th", "the", "\xC4\xA0t", "\xC4\xA0the"}) add(token);
  return json + "}";
}

const std::string kMerges = "#version: 0.2\na b\nt h\nth e\n\xC4\xA0 t\n\xC4\xA0t he\n";

std::string json_of(const Tokenizer& tokenizer) {
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name == "tokenizer.json") return file.content;
  }
  std::abort();
}

struct SoundFiles {
  std::string vocabulary = byte_vocabulary();
  std::string wordpiece_json, byte_json;
  explicit SoundFiles(const Files& files) {
    wordpiece_json = json_of(*load_wordpiece(files.first.holding(kVocabularyText), {}));
    // Its merges lead to tokens that are there.
    const std::string merges = "a b\nt h\nth e\n\xC4\xA0 t\n";
    byte_json =
        json_of(*load_byte_bpe(files.first.holding(vocabulary), files.second.holding(merges), {}));
  }
};

std::string changed(std::string file, const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = 0; i + 4 <= size && !file.empty(); i += 4) {
    const std::size_t at = static_cast<std::size_t>(data[i] | data[i + 1] << 8) % file.size();
    const std::size_t count = data[i + 2] / 4;
    const char value = static_cast<char>(data[i + 3]);
    if (data[i + 2] % 4 == 0) file.insert(at, count + 1, value);
    if (data[i + 2] % 4 == 1) file.erase(at, count + 1);
    if (data[i + 2] % 4 == 2) file[at] = value;
    if (data[i + 2] % 4 == 3) file.insert(at, file.substr(data[i + 3], count + 1));
  }
  return file;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> word_start;
  tokenizer.encode(text, ids, &word_start);
  require(ids.size() == word_start.size());
  for (const std::uint32_t id : ids) require(id < tokenizer.vocab_size());
  tokenizer.decode(ids);
  for (const std::uint32_t id : tokenizer.reserved_ids()) require(id < tokenizer.vocab_size());
}

// 0: vocab.txt, 1: vocab.json and merges.txt, 2 and 3: tokenizer.json.
std::unique_ptr<Tokenizer> load(int kind, const std::string& bytes, bool raw, const Files& files,
                                const SoundFiles& sound) {
  const auto content = [&](const std::string& of) {
    if (raw) return bytes;
    return changed(of, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  if (kind == 0) {
    return load_wordpiece(files.first.holding(content(kVocabularyText)), {.lowercase = !raw});
  }
  if (kind == 1 && raw) {
    return load_byte_bpe(files.first.holding(sound.vocabulary), files.second.holding(bytes), {});
  }
  if (kind == 1) {
    return load_byte_bpe(files.first.holding(content(sound.vocabulary)),
                         files.second.holding(kMerges), {});
  }
  return load_tokenizer_json(
      files.first.holding(content(kind == 2 ? sound.wordpiece_json : sound.byte_json)));
}

void check(int kind, const std::string& bytes, bool raw, bool twice) {
  static const Files files;
  static const SoundFiles sound(files);
  const std::unique_ptr<Tokenizer> tokenizer = load(kind, bytes, raw, files, sound);
  use(*tokenizer, bytes);
  use(*tokenizer, "The abs, \xE4\xB8\xAD\xE5\x9B\xBD caf\xC3\xA9 111 the.");
  if (!twice) return;
  const auto again = load_tokenizer_json(files.first.holding(json_of(*tokenizer)));
  require(again->fingerprint() == tokenizer->fingerprint());
}

}  // namespace
}  // namespace tupelo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    // Making the tables of characters takes the most time: not often twice.
    tupelo::check(data[0] % 4, {reinterpret_cast<const char*>(data) + 1, size - 1},
                  /*raw=*/data[0] >= 0xC0, /*twice=*/(data[0] & 0x1C) == 0);
  } catch (const tupelo::CorpusError&) {
  }
  return 0;
}

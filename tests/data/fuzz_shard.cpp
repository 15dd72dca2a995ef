// libFuzzer: a sound shard with any of its bytes changed, or cut short, gives what was written or a
// CorpusError. The first byte chooses the shard, and whether checksums and digests are made to
// agree with what was changed; then each four bytes are a place and a value.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "data/errors.h"
#include "data/shard.h"
#include "tests/data/changed_bytes.h"
#include "tests/data/resigned_shard.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

struct SoundShard {
  ShardIdentity identity;
  std::vector<std::uint32_t> ids;
  std::string bytes;
  ShardDatasets datasets;
};

SoundShard sound_shard(std::uint32_t vocab_size, bool sentences) {
  SoundShard sound;
  sound.identity = {.split = "train",
                    .language = "zh",
                    .tokenizer_kind = "wordpiece",
                    .tokenizer_fingerprint = std::string(64, 'f'),
                    .segmenter_kind = "",
                    .segmenter_fingerprint = "",
                    .sentence_rules = sentences ? 1u : 0u,
                    .vocab_size = vocab_size,
                    .special = {.pad = 0, .unk = 1, .cls = 2, .sep = 3, .mask = 4}};
  ShardContent content(vocab_size);
  for (std::uint32_t d = 0; d < 7; ++d) {
    std::vector<std::uint32_t> ids;
    std::vector<std::uint8_t> words, starts;
    for (std::uint32_t i = 0; i < 150; ++i) {
      ids.push_back(5 + (d * 150 + i) * 7919 % (vocab_size - 5));
      words.push_back(i % 3 == 0 ? 1 : 0);
      starts.push_back(i % 10 == 0 ? 1 : 0);
    }
    content.add(ids, words, d, d * 1234567, starts);
    sound.ids.insert(sound.ids.end(), ids.begin(), ids.end());
  }
  const fs::path path = fs::temp_directory_path() / ("fuzz-" + std::to_string(::getpid()) + ".h5");
  content.write(path, sound.identity);
  sound.datasets = find_shard_datasets(RegularFile(path), sound.identity);
  std::ifstream stream(path, std::ios::binary);
  sound.bytes = {std::istreambuf_iterator<char>(stream), {}};
  fs::remove(path);
  return sound;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void read(const fs::path& path, const SoundShard& sound, bool resigned) {
  const Shard shard(path, sound.identity);
  require(shard.tokens() <= 2 * sound.bytes.size() && shard.documents() <= sound.bytes.size());
  std::vector<std::uint64_t> offsets(shard.documents() + 1);
  shard.read_offsets(0, offsets.size(), offsets.data());
  require(offsets.front() == 0 && offsets.back() == shard.tokens());
  std::vector<std::uint8_t> flags(shard.tokens());
  shard.read_word_starts(0, flags.size(), flags.data());
  if (shard.has_sentences()) shard.read_sentence_starts(0, flags.size(), flags.data());
  for (const std::uint8_t flag : flags) require(flag <= 1);
  for (std::uint64_t d = 0; d < shard.documents(); ++d) {
    shard.hash(d);
    shard.source(d);
  }
  std::vector<std::uint32_t> ids(shard.tokens());
  shard.read(0, ids.size(), ids.data());
  for (const std::uint32_t id : ids) require(id < sound.identity.vocab_size);
  require(resigned || ids == sound.ids);
  shard.verify(std::string(64, '0'));
}

std::vector<SoundShard> sound_shards() {
  std::vector<SoundShard> shards;
  for (const std::uint32_t vocab_size : {1000u, 100000u}) {
    for (const bool sentences : {false, true}) {
      shards.push_back(sound_shard(vocab_size, sentences));
    }
  }
  return shards;
}

}  // namespace
}  // namespace tupelo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<tupelo::SoundShard> shards = tupelo::sound_shards();
  static const int descriptor = ::memfd_create("fuzz", 0);
  if (size < 1) return 0;
  const tupelo::SoundShard& sound = shards[data[0] % shards.size()];
  std::string file = tupelo::testing::changed(sound.bytes, data + 1, size - 1);
  const bool resigned = data[0] >= 0x80 && file.size() == sound.bytes.size();
  if (resigned) tupelo::resign(file, sound.datasets);
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) {
    std::abort();
  }
  try {
    tupelo::read("/proc/self/fd/" + std::to_string(descriptor), sound, resigned);
  } catch (const tupelo::CorpusError&) {
  }
  return 0;
}

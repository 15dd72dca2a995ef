#include "data/corpus_writer.h"

#include <cmath>
#include <system_error>

#include "data/corpus_files.h"

namespace tupelo {
namespace {

std::string five_digits(std::size_t number) {
  std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::string unnumbered_name(Split split, std::size_t shard) {
  return split_name(split) + "/shard-" + five_digits(shard) + ".h5";
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) throw std::system_error(error, "cannot create " + folder.string());
}

}  // namespace

std::string shard_file_name(Split split, std::size_t shard, std::size_t shards) {
  return split_name(split) + "/shard-" + five_digits(shard) + "-of-" + five_digits(shards) + ".h5";
}

bool is_held_out(std::uint64_t hash, double fraction) {
  // 53 bits of the hash are what a double holds exactly.
  return std::ldexp(static_cast<double>(hash >> 11), -53) < fraction;
}

CorpusWriter::CorpusWriter(const std::filesystem::path& folder, const CorpusInfo& info,
                           double held_out_fraction, std::uint64_t shard_tokens)
    : folder_(folder),
      info_(info),
      held_out_fraction_(held_out_fraction),
      shard_tokens_(shard_tokens),
      train_{Split::kTrain, ShardContent(info.vocab_size), {}},
      held_out_{Split::kHeldOut, ShardContent(info.vocab_size), {}} {
  create_folder(folder / split_name(Split::kTrain));
  create_folder(folder / split_name(Split::kHeldOut));
}

void CorpusWriter::add(std::span<const std::uint32_t> ids, std::span<const std::uint8_t> word_start,
                       std::uint64_t source, std::uint64_t hash,
                       std::span<const std::uint8_t> sent_start) {
  add_to(is_held_out(hash, held_out_fraction_) ? Split::kHeldOut : Split::kTrain, ids, word_start,
         source, hash, sent_start);
}

void CorpusWriter::add_to(Split split, std::span<const std::uint32_t> ids,
                          std::span<const std::uint8_t> word_start, std::uint64_t source,
                          std::uint64_t hash, std::span<const std::uint8_t> sent_start) {
  SplitWriter& writer = split == Split::kHeldOut ? held_out_ : train_;
  writer.content.add(ids, word_start, source, hash, sent_start);
  if (writer.content.tokens() >= shard_tokens_) write_shard(writer);
}

void CorpusWriter::write_shard(SplitWriter& writer) {
  const std::string name = unnumbered_name(writer.split, writer.shards.size());
  writer.shards.push_back(
      writer.content.write(folder_ / name, shard_identity(info_, writer.split)));
  writer.content = ShardContent(info_.vocab_size);
}

void CorpusWriter::name_shards(SplitWriter& writer) const {
  for (std::size_t i = 0; i < writer.shards.size(); ++i) {
    writer.shards[i].file = shard_file_name(writer.split, i, writer.shards.size());
    std::error_code error;
    std::filesystem::rename(folder_ / unnumbered_name(writer.split, i),
                            folder_ / writer.shards[i].file, error);
    if (error) throw std::system_error(error, "cannot create " + writer.shards[i].file);
  }
}

CorpusIndex CorpusWriter::finish() {
  CorpusIndex index;
  for (SplitWriter* writer : {&train_, &held_out_}) {
    if (writer->content.documents() > 0) write_shard(*writer);
    name_shards(*writer);
  }
  index.info = info_;
  index.train = train_.shards;
  index.held_out = held_out_.shards;
  index.info.digest = corpus_digest(index);
  index.held_out_fraction = held_out_fraction_;
  index.shard_tokens = shard_tokens_;
  return index;
}

void publish_corpus(UnfinishedCorpus& corpus, const CorpusIndex& index) {
  write_corpus_file(corpus.folder() / "index.json", format_corpus_index(index));
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    const ShardedCorpus opens(corpus.folder(), split);
  }
  ShardedCorpus::load_tokenizer(corpus.folder());
  corpus.publish();
}

}  // namespace tupelo

#include "data/corpus_index.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/errors.h"
#include "data/shard.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;

std::uint64_t tokens_of(const std::vector<ShardSummary>& shards) {
  return std::accumulate(shards.begin(), shards.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& shard) { return sum + shard.tokens; });
}

std::uint64_t documents_of(const std::vector<ShardSummary>& shards) {
  return std::accumulate(
      shards.begin(), shards.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& shard) { return sum + shard.documents; });
}

Json payload_json(const std::vector<ByteRange>& payload) {
  Json list = Json::array();
  for (const ByteRange& range : payload) list.push_back({range.first, range.bytes});
  return list;
}

Json shard_json(const ShardSummary& shard) {
  return {{"file", shard.file},
          {"bytes", shard.bytes},
          {"tokens", shard.tokens},
          {"documents", shard.documents},
          {"sha256", shard.sha256},
          {"payload", payload_json(shard.payload)},
          {"structure_sha256", shard.structure_sha256}};
}

Json split_json(const std::vector<ShardSummary>& shards) {
  Json list = Json::array();
  for (const ShardSummary& shard : shards) list.push_back(shard_json(shard));
  return {{"documents", documents_of(shards)}, {"tokens", tokens_of(shards)}, {"shards", list}};
}

Json tokenizer_json(const CorpusInfo& info) {
  const SpecialTokens& special = info.special;
  return {{"kind", info.tokenizer_kind},
          {"fingerprint", info.tokenizer_fingerprint},
          {"vocab_size", info.vocab_size},
          {"special",
           {{"pad", special.pad},
            {"unk", special.unk},
            {"cls", special.cls},
            {"sep", special.sep},
            {"mask", special.mask}}},
          {"reserved_ids", info.reserved_ids}};
}

Json segmenter_json(const SegmenterInfo& segmenter) {
  Json json = {{"kind", segmenter.kind}};
  if (segmenter.fingerprint.empty()) return json;
  json["fingerprint"] = segmenter.fingerprint;
  for (const SegmenterInfo::File& file : segmenter.files) {
    json["files"].push_back({{"file", file.file}, {"sha256", file.sha256}});
  }
  return json;
}

Json source_json(const CorpusIndex& index) {
  Json files = Json::array();
  for (const auto& source : index.sources) {
    files.push_back({{"file", source.file},
                     {"bytes", source.bytes},
                     {"documents", source.report.documents},
                     {"text_bytes", source.report.text_bytes},
                     {"invalid_bytes", source.report.invalid_bytes}});
    if (!source.report.damage.empty()) files.back()["damage"] = source.report.damage;
  }
  return {{"bytes", index.input_bytes},
          {"invalid_bytes", index.invalid_bytes},
          {"empty_documents", index.empty_documents},
          {"unknown_tokens", index.unknown_tokens},
          {"files", files}};
}

// Reads keys of one file, naming it and them when something is wrong.
class IndexReader {
 public:
  IndexReader(const fs::path& file, const std::string& text) : file_(file) {
    root_ = Json::parse(text, nullptr, false);
    if (!root_.is_object()) refuse("is not a JSON object");
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(file_.string() + ": " + what);
  }
  const Json& root() const { return root_; }

  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) {
      refuse(std::string("key '") + key + "' is missing");
    }
    return object.at(key);
  }
  std::string text(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) refuse(std::string("key '") + key + "' is not a text");
    return value.get<std::string>();
  }
  std::uint64_t number(const Json& object, const char* key) const {
    return as_number(member(object, key), key);
  }
  std::uint32_t id(const Json& object, const char* key) const {
    return as_id(member(object, key), key);
  }
  std::uint64_t as_number(const Json& value, const char* key) const {
    if (!value.is_number_unsigned()) {
      refuse(std::string("key '") + key + "' is not a whole number of at least 0");
    }
    return value.get<std::uint64_t>();
  }
  std::uint32_t as_id(const Json& value, const char* key) const {
    const std::uint64_t number = as_number(value, key);
    if (number > UINT32_MAX) refuse(std::string("key '") + key + "' is not a token id");
    return static_cast<std::uint32_t>(number);
  }
  const Json& list(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_array()) refuse(std::string("key '") + key + "' is not a list");
    return value;
  }

 private:
  fs::path file_;
  Json root_;
};

// A shard's name must not lead out of the corpus.
void check_file_name(const IndexReader& reader, const fs::path& name) {
  const bool inside = !name.empty() && name.is_relative() &&
                      std::none_of(name.begin(), name.end(), [](const fs::path& part) {
                        return part == ".." || part.empty();
                      });
  if (!inside) reader.refuse("shard file '" + name.string() + "' is not a path inside the corpus");
}

std::vector<ByteRange> read_payload(const IndexReader& reader, const Json& shard) {
  std::vector<ByteRange> payload;
  for (const Json& range : reader.list(shard, "payload")) {
    if (!range.is_array() || range.size() != 2) {
      reader.refuse("key 'payload' is not a list of pairs [first byte, bytes]");
    }
    payload.push_back(
        {reader.as_number(range[0], "payload"), reader.as_number(range[1], "payload")});
  }
  return payload;
}

ShardSummary read_shard(const IndexReader& reader, const Json& shard) {
  ShardSummary summary = {.file = reader.text(shard, "file"),
                          .bytes = reader.number(shard, "bytes"),
                          .tokens = reader.number(shard, "tokens"),
                          .documents = reader.number(shard, "documents"),
                          .sha256 = reader.text(shard, "sha256"),
                          .payload = read_payload(reader, shard),
                          .structure_sha256 = reader.text(shard, "structure_sha256")};
  check_file_name(reader, summary.file);
  return summary;
}

std::vector<ShardSummary> read_split(const IndexReader& reader, Split split) {
  const std::string name = split_name(split);
  const Json& entry = reader.member(reader.member(reader.root(), "splits"), name.c_str());
  std::vector<ShardSummary> shards;
  for (const Json& shard : reader.list(entry, "shards")) {
    shards.push_back(read_shard(reader, shard));
  }
  if (reader.number(entry, "tokens") != tokens_of(shards) ||
      reader.number(entry, "documents") != documents_of(shards)) {
    reader.refuse("the totals of split '" + name + "' are not the sums over its shards");
  }
  return shards;
}

void check_ids(const IndexReader& reader, const CorpusInfo& info) {
  const std::vector<std::uint32_t>& ids = info.reserved_ids;
  const auto out_of_order = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>());
  if (out_of_order != ids.end() || (!ids.empty() && ids.back() >= info.vocab_size)) {
    reader.refuse("key 'reserved_ids' does not rise or leaves the vocabulary");
  }
  const SpecialTokens& special = info.special;
  for (const std::uint32_t id :
       {special.pad, special.unk, special.cls, special.sep, special.mask}) {
    if (!std::binary_search(ids.begin(), ids.end(), id)) {
      reader.refuse("special token " + std::to_string(id) + " is not among 'reserved_ids'");
    }
  }
}

SegmenterInfo read_segmenter(const IndexReader& reader) {
  SegmenterInfo segmenter;
  if (!reader.root().contains("segmenter")) return segmenter;
  const Json& json = reader.member(reader.root(), "segmenter");
  segmenter.kind = reader.text(json, "kind");
  if (segmenter.kind == "spaces") return segmenter;
  if (segmenter.kind != "dictionary") {
    reader.refuse("key 'segmenter' is of kind '" + segmenter.kind +
                  "', neither 'dictionary' nor 'spaces'");
  }
  segmenter.fingerprint = reader.text(json, "fingerprint");
  for (const Json& file : reader.list(json, "files")) {
    segmenter.files.push_back({reader.text(file, "file"), reader.text(file, "sha256")});
  }
  return segmenter;
}

CorpusInfo read_info(const IndexReader& reader) {
  const Json& tokenizer = reader.member(reader.root(), "tokenizer");
  const Json& special = reader.member(tokenizer, "special");
  CorpusInfo info;
  info.language = reader.text(reader.root(), "language");
  info.tokenizer_kind = reader.text(tokenizer, "kind");
  info.tokenizer_fingerprint = reader.text(tokenizer, "fingerprint");
  info.vocab_size = reader.id(tokenizer, "vocab_size");
  info.special = {.pad = reader.id(special, "pad"),
                  .unk = reader.id(special, "unk"),
                  .cls = reader.id(special, "cls"),
                  .sep = reader.id(special, "sep"),
                  .mask = reader.id(special, "mask")};
  for (const Json& id : reader.list(tokenizer, "reserved_ids")) {
    info.reserved_ids.push_back(reader.as_id(id, "reserved_ids"));
  }
  check_ids(reader, info);
  info.segmenter = read_segmenter(reader);
  if (reader.root().contains("sentences")) {
    info.sentence_rules = reader.number(reader.member(reader.root(), "sentences"), "rules");
    if (info.sentence_rules == 0) reader.refuse("key 'rules' of 'sentences' is 0");
  }
  info.digest = reader.text(reader.root(), "digest");
  return info;
}

void read_provenance(const IndexReader& reader, CorpusIndex& index) {
  const Json& source = reader.member(reader.root(), "source");
  index.input_bytes = reader.number(source, "bytes");
  index.invalid_bytes = reader.number(source, "invalid_bytes");
  index.empty_documents = reader.number(source, "empty_documents");
  index.unknown_tokens = reader.number(source, "unknown_tokens");
  for (const Json& file : reader.list(source, "files")) {
    CorpusIndex::Source entry = {reader.text(file, "file"), reader.number(file, "bytes")};
    const auto count = [&](const char* key) {
      return file.contains(key) ? reader.number(file, key) : 0;
    };
    entry.report = {count("documents"), count("text_bytes"), count("invalid_bytes"),
                    file.contains("damage") ? reader.text(file, "damage") : std::string()};
    index.sources.push_back(std::move(entry));
  }
  index.shard_tokens = reader.number(reader.root(), "shard_tokens");
  const Json& fraction = reader.member(reader.root(), "held_out_fraction");
  if (!fraction.is_number()) reader.refuse("key 'held_out_fraction' is not a number");
  index.held_out_fraction = fraction.get<double>();
}

}  // namespace

std::string corpus_digest(const CorpusIndex& index) {
  ContentDigest digest;
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    for (const ShardSummary& shard : index.shards(split)) {
      const std::string line = shard.sha256 + "\n";
      digest.update(line.data(), line.size());
    }
  }
  return digest.finish_hex();
}

std::string format_corpus_index(const CorpusIndex& index) {
  Json json = {
      {"format", shard_layout::kFormat},
      {"version", shard_layout::kVersion},
      {"digest", corpus_digest(index)},
      {"language", index.info.language},
      {"tokenizer", tokenizer_json(index.info)},
      {"held_out_fraction", index.held_out_fraction},
      {"shard_tokens", index.shard_tokens},
      {"splits", {{"train", split_json(index.train)}, {"held-out", split_json(index.held_out)}}},
      {"source", source_json(index)}};
  if (!index.info.segmenter.kind.empty()) json["segmenter"] = segmenter_json(index.info.segmenter);
  if (index.info.sentence_rules > 0) json["sentences"] = {{"rules", index.info.sentence_rules}};
  // File names are bytes of any kind, JSON is not.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string read_corpus_index_text(const fs::path& corpus) {
  return read_corpus_text(corpus / "index.json", kMaxIndexBytes);
}

std::string format_shard_summary(const ShardSummary& shard) { return shard_json(shard).dump(); }

ShardSummary read_shard_summary(const fs::path& file) {
  const IndexReader reader(file, read_corpus_text(file, kMaxIndexBytes));
  return read_shard(reader, reader.root());
}

CorpusIndex read_corpus_index(const fs::path& corpus) {
  const IndexReader reader(corpus / "index.json", read_corpus_index_text(corpus));
  if (reader.text(reader.root(), "format") != shard_layout::kFormat) {
    reader.refuse(std::string("key 'format' is not '") + shard_layout::kFormat + "'");
  }
  const std::uint64_t version = reader.number(reader.root(), "version");
  if (version != shard_layout::kVersion) {
    reader.refuse("key 'version' is " + std::to_string(version) + ", but this program reads " +
                  std::to_string(shard_layout::kVersion) + " only: prepare the corpus again");
  }
  CorpusIndex index;
  index.info = read_info(reader);
  index.train = read_split(reader, Split::kTrain);
  index.held_out = read_split(reader, Split::kHeldOut);
  read_provenance(reader, index);
  if (index.info.digest != corpus_digest(index)) {
    reader.refuse("key 'digest' does not follow from the digests of the shards");
  }
  return index;
}

}  // namespace tupelo

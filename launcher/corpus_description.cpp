#include "launcher/corpus_description.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/corpus.h"
#include "data/corpus_statistics.h"
#include "launcher/console.h"
#include "launcher/text_table.h"

namespace tupelo {
namespace {

using nlohmann::ordered_json;

void print_pair(const std::string& name, const std::string& value) {
  std::string line = name;
  line.resize(std::max<std::size_t>(line.size() + 1, 20), ' ');
  std::cout << line << value << "\n";
}

std::string count(std::uint64_t number) { return grouped(static_cast<std::int64_t>(number)); }
std::string count(const ordered_json& number) { return count(number.get<std::uint64_t>()); }

std::string percent(double share) { return significant(100 * share, 3) + " %"; }
std::string percent(const ordered_json& share) { return percent(share.get<double>()); }

const char* packing_name(Packing packing) {
  switch (packing) {
    case Packing::kFull:
      return "full";
    case Packing::kDocument:
      return "doc";
    case Packing::kBestFit:
      return "packed";
  }
  return "?";
}

ordered_json describe_lengths(const LengthStatistics& lengths) {
  ordered_json percentiles, above = ordered_json::array();
  for (const auto& percentile : lengths.percentiles) {
    percentiles[std::to_string(percentile.percent)] = percentile.tokens;
  }
  for (const auto& part : lengths.above) {
    above.push_back(
        {{"length", part.length}, {"documents", part.documents}, {"tokens", part.tokens}});
  }
  return {{"shortest", lengths.shortest},
          {"longest", lengths.longest},
          {"mean", lengths.mean},
          {"percentiles", percentiles},
          {"above", above}};
}

ordered_json describe_padding(const std::vector<PaddingEstimate>& estimates) {
  ordered_json list = ordered_json::array();
  for (const PaddingEstimate& estimate : estimates) {
    list.push_back({{"sequence_length", estimate.sequence_length},
                    {"packing", packing_name(estimate.packing)},
                    {"rows", estimate.rows},
                    {"padding", estimate.padding}});
  }
  return list;
}

ordered_json describe_split(const ShardedCorpus& corpus, bool verify) {
  ordered_json shards = ordered_json::array();
  for (std::size_t i = 0; i < corpus.shards().size(); ++i) {
    if (verify) corpus.verify_shard(i);
    const ShardSummary& shard = corpus.shards()[i];
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"documents", shard.documents},
                      {"tokens", shard.tokens},
                      {"sha256", shard.sha256}});
  }
  ordered_json split = {{"documents", corpus.documents()}, {"tokens", corpus.tokens()}};
  if (corpus.documents() > 0) {
    split["lengths"] = describe_lengths(length_statistics(corpus.document_offsets()));
    split["rows"] = describe_padding(padding_estimates(corpus.document_offsets()));
  }
  split["shards"] = shards;
  return split;
}

ordered_json describe_words(const SegmenterInfo& segmenter) {
  ordered_json words = {{"kind", segmenter.kind.empty() ? "tokenizer" : segmenter.kind}};
  if (segmenter.fingerprint.empty()) return words;
  words["fingerprint"] = segmenter.fingerprint;
  for (const SegmenterInfo::File& file : segmenter.files) words["files"].push_back(file.file);
  return words;
}

std::string first_words(const ShardedCorpus& corpus, const Tokenizer& tokenizer) {
  if (corpus.documents() == 0) return "";
  std::vector<std::uint32_t> tokens(std::min<std::uint64_t>(corpus.length(0), 40));
  corpus.read(0, 0, tokens.size(), tokens.data());
  return tokenizer.decode(tokens);
}

void print_lengths(const ordered_json& lengths) {
  print_pair("  document lengths", count(lengths["shortest"]) + " to " + count(lengths["longest"]) +
                                       " tokens, mean " +
                                       significant(lengths["mean"].get<double>(), 4));
  std::string line;
  for (const auto& [percent, tokens] : lengths["percentiles"].items()) {
    line += (line.empty() ? "" : "  ") + percent + "%: " + count(tokens);
  }
  print_pair("  percentiles", line);
  for (const auto& part : lengths["above"]) {
    print_pair(
        "  longer than " + count(part["length"]),
        percent(part["documents"]) + " of documents, " + percent(part["tokens"]) + " of tokens");
  }
}

void print_rows(const ordered_json& rows) {
  TextTable table({"  rows of", "packing<", "rows", "padding"});
  for (const auto& row : rows) {
    table.add({"  " + count(row["sequence_length"]), row["packing"].get<std::string>(),
               count(row["rows"]), percent(row["padding"])});
  }
  std::cout << table.text();
}

void print_split(const std::string& name, const ordered_json& split) {
  print_pair(name, count(split["documents"]) + " documents, " + count(split["tokens"]) + " tokens");
  for (const auto& shard : split["shards"]) {
    print_pair("", shard["file"].get<std::string>() + "  " + count(shard["tokens"]) + " tokens  " +
                       count(shard["bytes"]) + " bytes");
  }
  if (!split.contains("lengths")) return;
  print_lengths(split["lengths"]);
  print_rows(split["rows"]);
}

std::string words_text(const ordered_json& words) {
  std::string text = words["kind"].get<std::string>();
  if (words.contains("fingerprint")) {
    text += ", fingerprint ";
    text += words["fingerprint"].get<std::string>();
  }
  return text;
}

}  // namespace

ordered_json describe_corpus(const std::string& folder, bool verify) {
  const ShardedCorpus train(folder, Split::kTrain);
  const ShardedCorpus held_out(folder, Split::kHeldOut);
  const auto tokenizer = ShardedCorpus::load_tokenizer(folder);
  const CorpusInfo& info = train.info();
  return {{"kind", "corpus"},
          {"folder", folder},
          {"language", info.language},
          {"tokenizer", info.tokenizer_kind},
          {"tokenizer_fingerprint", info.tokenizer_fingerprint},
          {"vocab_size", info.vocab_size},
          {"words", describe_words(info.segmenter)},
          {"sentence_rules", info.sentence_rules},
          {"digest", info.digest},
          {"verified", verify},
          {"train", describe_split(train, verify)},
          {"held_out", describe_split(held_out, verify)},
          {"first_document", first_words(train, *tokenizer)}};
}

void print_corpus(const ordered_json& corpus) {
  const auto text = [&](const char* key) { return corpus[key].get<std::string>(); };
  print_pair("corpus", text("folder"));
  print_pair("language", text("language"));
  print_pair("tokenizer", text("tokenizer") + ", " + count(corpus["vocab_size"]) +
                              " tokens, fingerprint " + text("tokenizer_fingerprint"));
  print_pair("words from", words_text(corpus["words"]));
  if (corpus["sentence_rules"] != 0) {
    print_pair("sentences", "rules " + count(corpus["sentence_rules"]));
  }
  print_pair("digest", text("digest"));
  print_split("train", corpus["train"]);
  print_split("held out", corpus["held_out"]);
  print_pair("first document", text("first_document"));
  print_pair("content", corpus["verified"].get<bool>() ? "every digest verified"
                                                       : "not verified (--verify re-hashes it)");
  std::cout << std::flush;
}

}  // namespace tupelo

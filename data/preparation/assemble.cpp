#include "data/preparation/assemble.h"

#include <optional>
#include <string>
#include <utility>

#include "data/corpus_files.h"
#include "data/corpus_writer.h"
#include "data/errors.h"
#include "data/preparation/patience.h"
#include "data/preparation/token_part.h"
#include "data/shard.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

// A document among those of all parts.
struct DocumentPlace {
  std::size_t part = 0;
  std::uint64_t document = 0;
  auto operator<=>(const DocumentPlace&) const = default;
};

// Of the documents of its split, those from `first` to `last`.
struct PlannedShard {
  Split split;
  std::size_t number;  // within the split
  DocumentPlace first, last;
  std::uint64_t tokens;
};

struct Plan {
  std::vector<PlannedShard> train, held_out;

  std::vector<PlannedShard> all() const {
    std::vector<PlannedShard> shards = train;
    shards.insert(shards.end(), held_out.begin(), held_out.end());
    return shards;
  }
};

class Assembly {
 public:
  Assembly(PreparationJob& job, const PartFolder& folder, const CorpusInfo& info)
      : job_(job), folder_(folder), info_(info), parts_(folder.all()) {}

  void plan();
  void make_folders() const;
  void write_missing();
  CorpusIndex index() const;

 private:
  TokenPartFile open(std::size_t part) const {
    const std::size_t bytes = info_.vocab_size <= shard_layout::kNarrowVocabulary ? 2 : 4;
    return {folder_.file(parts_[part]), bytes, info_.sentence_rules > 0};
  }
  Split split_of(const TokenDocument& document) const {
    return is_held_out(document.hash, job_.options().held_out) ? Split::kHeldOut : Split::kTrain;
  }
  std::vector<PlannedShard>& shards_of(Split split) {
    return split == Split::kTrain ? plan_.train : plan_.held_out;
  }
  std::string name_of(const PlannedShard& shard) const {
    const auto& all = shard.split == Split::kTrain ? plan_.train : plan_.held_out;
    return shard_file_name(shard.split, shard.number, all.size());
  }
  // Says that the shard is there; written behind it.
  fs::path summary_file(const PlannedShard& shard) const {
    return job_.scratch() / "shards" /
           (split_name(shard.split) + "-" + std::to_string(shard.number));
  }
  void write(const PlannedShard& shard);
  void add_documents(const PlannedShard& shard, ShardContent& content) const;

  PreparationJob& job_;
  const PartFolder& folder_;
  const CorpusInfo& info_;
  const std::vector<PartKey> parts_;
  Plan plan_;
};

void Assembly::plan() {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const TokenPartFile file = open(part);
    for (std::uint64_t d = 0; d < file.documents().size(); ++d) {
      const TokenDocument& document = file.documents()[d];
      const Split split = split_of(document);
      std::vector<PlannedShard>& shards = shards_of(split);
      if (shards.empty() || shards.back().tokens >= job_.options().shard_tokens) {
        shards.push_back({split, shards.size(), {part, d}, {}, 0});
      }
      shards.back().last = {part, d};
      shards.back().tokens += document.tokens;
    }
  }
}

void Assembly::make_folders() const {
  for (const fs::path& folder :
       {job_.corpus() / split_name(Split::kTrain), job_.corpus() / split_name(Split::kHeldOut),
        job_.scratch() / "shards"}) {
    fs::create_directory(folder);
  }
}

void Assembly::write_missing() {
  const std::vector<PlannedShard> shards = plan_.all();
  std::vector<std::uint64_t> costs;
  std::uint64_t all = 0, there = 0;
  for (const PlannedShard& shard : shards) {
    costs.push_back(shard.tokens);
    all += shard.tokens;
    if (fs::exists(summary_file(shard))) there += shard.tokens;
  }
  job_.begin_phase("shards", all, there);
  for (const std::size_t index : job_.share(costs)) {
    if (!fs::exists(summary_file(shards[index]))) write(shards[index]);
  }
}

void Assembly::write(const PlannedShard& shard) {
  ShardContent content(info_.vocab_size);
  add_documents(shard, content);
  const fs::path file = job_.corpus() / name_of(shard);
  be_patient([&] { return fs::exists(file.parent_path()); }, [&] { return file.parent_path(); });
  fs::remove(file);  // half of it may be there
  ShardSummary summary = content.write(file, shard_identity(info_, shard.split));
  summary.file = name_of(shard);
  replace_corpus_file(summary_file(shard), format_shard_summary(summary));
  job_.advance(0);
}

void Assembly::add_documents(const PlannedShard& shard, ShardContent& content) const {
  for (std::size_t part = shard.first.part; part <= shard.last.part; ++part) {
    const TokenPartFile file = open(part);
    TokenPartFile::Reader reader(file);
    for (DocumentPlace place{part, 0};
         place.document < file.documents().size() && place <= shard.last; ++place.document) {
      const TokenDocument& document = file.documents()[place.document];
      const bool wanted = place >= shard.first && split_of(document) == shard.split;
      reader.next(wanted);
      if (!wanted) continue;
      content.add(reader.ids(), reader.flags().word_start, document.source, document.hash,
                  reader.flags().sentence_start);
      job_.advance(document.tokens, 1, document.tokens);
    }
  }
}

CorpusIndex Assembly::index() const {
  CorpusIndex index;
  index.info = info_;
  for (const PlannedShard& shard : plan_.all()) {
    const fs::path file = summary_file(shard);
    be_patient([&] { return fs::exists(file); }, [&] { return file; });
    auto& shards = shard.split == Split::kTrain ? index.train : index.held_out;
    shards.push_back(read_shard_summary(file));
  }
  index.info.digest = corpus_digest(index);
  index.held_out_fraction = job_.options().held_out;
  index.shard_tokens = job_.options().shard_tokens;
  return index;
}

}  // namespace

CorpusIndex assemble_shards(PreparationJob& job, const PartFolder& tokens, const CorpusInfo& info) {
  Assembly assembly(job, tokens, info);
  job.together([&] {
    assembly.plan();
    if (job.is_first()) assembly.make_folders();
  });
  job.together([&] { assembly.write_missing(); });
  CorpusIndex index;
  job.together([&] {
    if (job.is_first()) index = assembly.index();
  });
  return index;
}

}  // namespace tupelo

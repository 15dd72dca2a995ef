// What the phases of a preparation share: the input, the place of work, and the other processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus_files.h"
#include "data/document_texts.h"
#include "data/prepare.h"
#include "data/segmenter/text_rules.h"
#include "data/text_group.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

class PreparationJob {
 public:
  using Progress = std::function<void(const PrepareProgress&)>;

  // Collective. Lists the input and finds or makes the work place, whose name follows from
  // everything that decides the corpus' bytes and from this program's own: only what an equal job
  // left is gone on with. Throws as prepare_corpus() does.
  PreparationJob(const PrepareOptions& options, const PrepareTeam& team, Progress progress);

  const PrepareOptions& options() const { return options_; }
  const std::vector<TextSource>& sources() const { return sources_; }
  const SkippedEntries& skipped() const { return skipped_; }
  const std::vector<TextGroup>& groups() const { return groups_; }
  std::uint64_t input_bytes() const;
  const DocumentTexts& texts() const { return *texts_; }
  const TextRules& rules() const { return *rules_; }
  // The one that the options name; nullptr when one is to be trained.
  const Tokenizer* given_tokenizer() const { return tokenizer_.get(); }

  std::filesystem::path corpus() const { return place_.corpus(); }
  std::filesystem::path scratch() const { return place_.scratch(); }
  int rank() const { return team_.rank; }
  int processes() const { return team_.size; }
  bool is_first() const { return team_.rank == 0; }

  // Runs `action` on every process and waits for all. When it threw on one, the others leave theirs
  // at their next advance(), and all throw.
  void together(const std::function<void()>& action);

  bool all_agree(bool value) const { return team_.all_agree(value); }

  // Which of the pieces of work with these costs are this process': all processes together do each
  // once, about equally much.
  std::vector<std::size_t> share(const std::vector<std::uint64_t>& costs) const;

  // Tells how far all processes are. `done` of `total` bytes were there before.
  void begin_phase(const std::string& name, std::uint64_t total, std::uint64_t done);
  // What this process did since.
  void advance(std::uint64_t bytes, std::uint64_t documents = 0, std::uint64_t tokens = 0);

  // Gives the corpus its name. On the first process alone.
  void publish() { unfinished_->publish(); }

 private:
  struct PeerFailed {};
  std::string identity() const;
  void list_input();
  void meet();
  void write_progress() const;
  void read_progress_of_others(PrepareProgress& progress) const;
  std::filesystem::path failure_file() const { return scratch() / "failed"; }

  const PrepareOptions options_;
  const PrepareTeam team_;
  const Progress progress_;
  SkippedEntries skipped_;
  std::vector<TextSource> sources_;
  std::vector<TextGroup> groups_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const TextRules> rules_;
  std::optional<DocumentTexts> texts_;
  WorkPlace place_;
  std::optional<UnfinishedCorpus> unfinished_;  // of the first process
  PrepareProgress phase_;                       // what this process did in it
  std::chrono::steady_clock::time_point told_;
};

}  // namespace tupelo

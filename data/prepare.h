// Text files to a sharded corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/cleaning/cleaner.h"

namespace tupelo {

enum class TextFormat {
  kAuto,       // by extension (list_text_sources), else kBlankLine
  kBlankLine,  // a blank line ends a document
  kLinePerDocument,
  kJsonLines,        // one object per line, the text under `text_key`
  kTabSeparated,     // one document per line, in column `text_column`
  kHtml,             // a page is a document
  kManual,           // a manual page (roff) is a document
  kRestructured,     // a reStructuredText file is a document
  kMessageCatalogue  // every translation of a gettext .mo file is a document
};

// A byte order mark overrules each.
enum class TextEncoding { kUtf8, kGb18030, kAuto };

// What becomes of a line with bytes that are no character, or are zero.
enum class InvalidBytes { kReplace, kDropLine };

// What becomes of files and records that are not what they should be.
enum class DamagedInput { kRefuse, kSkip };

enum class TokenizerKind { kWordPiece, kByteBpe };

struct PrepareOptions {
  // Files, folders (every regular file inside, sorted), or patterns with *, ** and ?. Files may be
  // compressed by gzip or zstd.
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;  // must not exist, unless `force`
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";     // a.b: key b of the object under a; \. is a dot in a key
  std::string text_column = "text";  // its name in a file's first line, or its number from 1
  TextEncoding encoding = TextEncoding::kUtf8;
  InvalidBytes invalid_bytes = InvalidBytes::kReplace;
  DamagedInput damaged_input = DamagedInput::kRefuse;
  // Exactly one of these two: a tokenizer in any form that load_tokenizer() knows, or the size of
  // one to train.
  std::optional<std::filesystem::path> vocab_file;
  std::optional<std::uint32_t> train_vocab_size;
  TokenizerKind train_kind = TokenizerKind::kWordPiece;
  std::uint32_t vocab_multiple = 1;  // a trained vocabulary is padded to a multiple of this
  std::uint64_t min_count = 2;  // occurrences that a character or a merge needs for the vocabulary
  // A vocabulary is learnt from about so many bytes of the files, taken evenly; 0: from all.
  std::uint64_t vocab_text_bytes = std::uint64_t{1} << 30;
  // Of tokenizers that do not say it themselves: vocab.txt and vocab.json, and those to train.
  bool lowercase = true;          // WordPiece
  bool add_prefix_space = false;  // byte-level BPE
  CleaningOptions cleaning = {};
  double held_out = 0.01;                  // fraction of documents, chosen by document hash
  std::uint64_t shard_tokens = 64u << 20;  // a shard is closed at the first document past this
  std::string language = "zh";
  int threads = 1;     // of each process
  bool force = false;  // replace an existing corpus
  // Processes share the input out in units of so many bytes; work is lost by half of them when one
  // is killed.
  std::uint64_t unit_bytes = std::uint64_t{64} << 20;
  // Where words begin: by a dictionary in jieba's format, and the user's own on top of it, or by
  // spaces between the words of the input; neither: as the tokenizer sees words, each Chinese
  // character one.
  std::optional<std::filesystem::path> segmenter_dictionary;
  std::vector<std::filesystem::path> user_dictionaries;
  bool pre_segmented = false;    // spaces between Chinese words are not part of the text
  bool sentence_starts = false;  // store which tokens begin a sentence
};

struct PrepareProgress {
  // "clean" and "compare" (looking for duplicates), "vocabulary", "tokenize", "shards", "verify"
  std::string phase;
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::uint64_t skipped_bytes = 0;  // of those done, what a killed run had left
  std::uint64_t documents = 0, tokens = 0;
};

// The processes that prepare a corpus together, on a file system that they share. All of them run
// prepare_corpus() with equal options, except for `threads`.
struct PrepareTeam {
  int rank = 0, size = 1;
  // Runs the action and returns when every process has run its own. When it threw on one, throws on
  // all, and waits no longer.
  std::function<void(const std::function<void()>&)> together = [](const auto& action) { action(); };
  // Whether the value is true on every process.
  std::function<bool(bool)> all_agree = [](bool value) { return value; };
};

// What a file gave.
struct SourceReport {
  std::uint64_t documents = 0;  // those without a token are counted too
  std::uint64_t text_bytes = 0;
  std::uint64_t invalid_bytes = 0;
  std::string damage;  // why it was not read to its end; empty when it was
};

struct PrepareReport {
  std::uint64_t input_bytes = 0, invalid_bytes = 0, documents = 0, empty_documents = 0;
  std::uint64_t train_documents = 0, held_out_documents = 0, train_tokens = 0, held_out_tokens = 0;
  std::uint64_t unknown_tokens = 0;
  std::uint32_t vocab_size = 0;
  int train_shards = 0, held_out_shards = 0;
  std::uint64_t dropped_lines = 0;    // for their invalid bytes
  std::uint64_t damaged_records = 0;  // skipped
  std::uint64_t damaged_files = 0;    // not read to their end
  std::uint64_t empty_files = 0;      // whole, and without a document
  std::uint64_t special_files = 0, dangling_links = 0, repeated_files = 0;  // SkippedEntries
  std::vector<std::string> damage;    // sentences on the first files and records
  std::vector<SourceReport> sources;  // by input file
  CleaningReport cleaning;            // empty when there was none
  double seconds = 0;                 // wall clock, whole job
  double tokenize_seconds = 0;        // wall clock, tokenizing and writing
};

// Writes into a hidden sibling of `output` and renames at the end, so that a corpus exists entirely
// or not at all. The same inputs and options give the same bytes for any number of threads and
// processes. An error leaves nothing behind; what a killed run left is gone on with when the same
// is asked for again, and gives the same bytes, too. Otherwise the next run removes it.
//
// Memory does not grow with the input: beside vocabulary and dictionaries a process needs about 3
// MB for each thread, a shard twice, and CleaningOptions::sort_bytes. The disk holds the corpus
// twice (as `unit_bytes` pieces, then as shards), and before that 24 bytes for each fingerprint of
// cleaning.
//
// Collective over the team; only its first process reports. Throws std::invalid_argument (options),
// CorpusError (inputs without text, damaged vocabulary), std::system_error (files), and what
// `team.together` throws. `progress` is called from the calling thread of the first process.
PrepareReport prepare_corpus(const PrepareOptions& options,
                             const std::function<void(const PrepareProgress&)>& progress = {},
                             const PrepareTeam& team = {});

}  // namespace tupelo

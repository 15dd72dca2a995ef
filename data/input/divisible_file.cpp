#include "data/input/divisible_file.h"

#include <optional>
#include <string>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/plain_file.h"
#include "data/input/text_bytes.h"

namespace tupelo {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
// Longer lines are cut by the reader, so that they may hold the end of a document within.
constexpr std::size_t kMostBlankBytes = std::size_t{64} << 10;

const FileState* state_of(const TextSource& source) {
  return source.state ? &*source.state : nullptr;
}

// Lines of a file from some byte of it.
class LineScan {
 public:
  LineScan(const TextSource& source, std::uint64_t from)
      : file_(source.file, state_of(source), {from, source.bytes}), position_(from) {}

  // Of the byte that next_line() begins with.
  std::uint64_t position() const { return position_; }
  // The next line with its end; of a line of more than `most` bytes only so many. None at the end
  // of the file.
  std::optional<std::string_view> next_line(std::size_t most) {
    line_.clear();
    for (;;) {
      if (at_ == block_.size() && !fill()) break;
      const std::size_t newline = block_.find('\n', at_);
      const std::size_t end = newline == std::string::npos ? block_.size() : newline + 1;
      if (line_.size() < most) line_.append(block_, at_, std::min(end - at_, most - line_.size()));
      position_ += end - at_;
      at_ = end;
      if (newline != std::string::npos) return line_;
    }
    if (line_.empty()) return std::nullopt;
    return line_;
  }

 private:
  bool fill() {
    block_.resize(kBlockBytes);
    block_.resize(file_.read(block_.data(), block_.size()));
    at_ = 0;
    return !block_.empty();
  }

  PlainFile file_;
  std::uint64_t position_;
  std::string block_, line_;
  std::size_t at_ = 0;
};

bool has_lines(TextFormat format) {
  return format == TextFormat::kBlankLine || format == TextFormat::kLinePerDocument ||
         format == TextFormat::kJsonLines || format == TextFormat::kTabSeparated;
}

}  // namespace

bool is_divisible(const TextSource& source, const ReadOptions& options) {
  if (!has_lines(source.format)) return false;
  try {
    const auto bytes = open_byte_source(source.file, state_of(source));
    return dynamic_cast<PlainFile*>(bytes.get()) != nullptr &&
           is_plain_utf8(*bytes, options.encoding, source.file.string());
  } catch (const CorpusError&) {
    return false;
  }
}

std::uint64_t document_boundary(const TextSource& source, std::uint64_t from) {
  if (from == 0) return 0;
  if (from >= source.bytes) return source.bytes;
  LineScan scan(source, from - 1);  // a line may begin at `from` itself
  scan.next_line(0);
  if (source.format != TextFormat::kBlankLine) return scan.position();
  for (;;) {
    const std::uint64_t begin = scan.position();
    const auto line = scan.next_line(kMostBlankBytes);
    if (!line) return source.bytes;
    if (line->size() < kMostBlankBytes && is_blank(*line)) return begin;
  }
}

}  // namespace tupelo

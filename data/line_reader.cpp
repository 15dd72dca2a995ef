#include "data/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tupelo {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kCutSearchBytes = std::size_t{4} << 10;
// How much of `text` to give out when its line goes on; less than all of it.
std::size_t cut_position(std::string_view text) {
  const std::size_t space = text.find_last_of(" \t");
  if (space != std::string_view::npos && space > 0 && space + kCutSearchBytes >= text.size()) {
    return space;
  }
  const auto continues_character = [text](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t end = text.size() - 1;
  for (int back = 0; back < 3 && end > 1 && continues_character(end); ++back) --end;
  return end;
}

}  // namespace

struct LineReader::State {
  std::unique_ptr<ByteSource> text;
  std::size_t max_line_bytes;
  std::unique_ptr<char[]> buffer;  // bytes [begin, end) are read but not yet given out
  std::size_t capacity = 0, begin = 0, end = 0;
  bool at_end = false, cut = false;
  std::uint64_t number = 0;

  std::string_view pending() const { return {buffer.get() + begin, end - begin}; }
  void fill();
  bool take(std::string_view& line, std::size_t bytes, std::size_t with_end, bool continues);
};

// Reads at most one block behind what is pending.
void LineReader::State::fill() {
  if (begin > 0) {
    std::memmove(buffer.get(), buffer.get() + begin, end - begin);
    end -= begin;
    begin = 0;
  }
  const std::size_t got = text->read(buffer.get() + end, std::min(kReadBytes, capacity - end));
  at_end = got == 0;
  end += got;
}

bool LineReader::State::take(std::string_view& line, std::size_t bytes, std::size_t with_end,
                             bool continues) {
  if (!cut) ++number;
  line = pending().substr(0, bytes);
  begin += with_end;
  cut = continues;
  if (!continues && line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

LineReader::LineReader(std::unique_ptr<ByteSource> text, std::size_t max_line_bytes)
    : state_(std::make_unique<State>()) {
  state_->text = std::move(text);
  state_->max_line_bytes = max_line_bytes;
  state_->capacity = max_line_bytes + kReadBytes;
  state_->buffer = std::make_unique_for_overwrite<char[]>(state_->capacity);
}

LineReader::~LineReader() = default;

bool LineReader::next(std::string_view& line) {
  State& state = *state_;
  for (std::size_t searched = 0;;) {
    const std::string_view pending = state.pending();
    const std::size_t newline = pending.find('\n', searched);
    if (newline != std::string_view::npos && newline <= state.max_line_bytes) {
      return state.take(line, newline, newline + 1, false);
    }
    if (pending.size() > state.max_line_bytes) {
      const std::size_t cut = cut_position(pending.substr(0, state.max_line_bytes + 1));
      return state.take(line, cut, cut, true);
    }
    if (state.at_end) {
      if (pending.empty()) return false;
      return state.take(line, pending.size(), pending.size(), false);
    }
    searched = pending.size();
    state.fill();
  }
}

std::uint64_t LineReader::number() const { return state_->number; }
bool LineReader::cut() const { return state_->cut; }
std::uint64_t LineReader::bytes_read() const { return state_->text->file_bytes(); }

}  // namespace tupelo

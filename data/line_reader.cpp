#include "data/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "data/document_text.h"
#include "data/errors.h"

namespace tupelo {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kProbeBytes = std::size_t{64} << 10;
constexpr std::size_t kCutSearchBytes = std::size_t{4} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A few stray bytes are counted and replaced; this much is a file in another encoding.
constexpr std::uint64_t kStrayBytes = 256;

struct Magic {
  std::string_view bytes, what;
};
constexpr Magic kOtherFormats[] = {
    {"\x1F\x8B", "it is compressed (gzip): decompress it first"},
    {"\x28\xB5\x2F\xFD", "it is compressed (zstd): decompress it first"},
    {"\xFD"
     "7zXZ",
     "it is compressed (xz): decompress it first"},
    {"BZh", "it is compressed (bzip2): decompress it first"},
    {"\xFF\xFE", "it is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
    {"\xFE\xFF", "it is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
};

// Why the beginning of a file is not text in UTF-8; empty when it is.
std::string complaint_about(std::string_view start) {
  const bool binary = start.find('\0') != std::string_view::npos;
  const std::uint64_t invalid = count_invalid_utf8(start);
  if (!binary && (invalid < kStrayBytes || invalid < start.size() / 4)) return {};
  for (const Magic& magic : kOtherFormats) {
    if (start.starts_with(magic.bytes)) return std::string(magic.what);
  }
  if (binary) return "byte " + std::to_string(start.find('\0')) + " is zero, so it is binary";
  return std::to_string(invalid) + " of its first " + std::to_string(start.size()) +
         " bytes are not UTF-8: convert it, from GB 18030 with iconv -f GB18030 -t UTF-8";
}

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
  std::filesystem::path path;
  std::size_t max_line_bytes;
  int descriptor = -1;
  std::unique_ptr<char[]> buffer;  // bytes [begin, end) are read but not yet given out
  std::size_t capacity = 0, begin = 0, end = 0;
  bool at_end = false, cut = false;
  std::uint64_t number = 0, bytes_read = 0;

  ~State() {
    if (descriptor >= 0) ::close(descriptor);
  }
  [[noreturn]] void refuse() const {
    const int code = errno;
    throw std::system_error(code, std::generic_category(), "cannot read " + path.string());
  }
  std::string_view pending() const { return {buffer.get() + begin, end - begin}; }

  void open();
  void fill();
  void probe();
  bool take(std::string_view& line, std::size_t bytes, std::size_t with_end, bool continues);
};

void LineReader::State::open() {
  // O_NONBLOCK: a FIFO that took the file's place must not make this wait.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) refuse();
  if (!S_ISREG(status.st_mode)) throw CorpusError(path.string() + ": is not a regular file");
  capacity = max_line_bytes + kReadBytes;
  buffer = std::make_unique_for_overwrite<char[]>(capacity);
  while (!at_end && end < kProbeBytes) fill();
  probe();
}

// Reads at most one block behind what is pending.
void LineReader::State::fill() {
  if (begin > 0) {
    std::memmove(buffer.get(), buffer.get() + begin, end - begin);
    end -= begin;
    begin = 0;
  }
  const std::size_t room = std::min(kReadBytes, capacity - end);
  ssize_t got;
  do {
    got = ::read(descriptor, buffer.get() + end, room);
  } while (got < 0 && errno == EINTR);
  if (got < 0) refuse();
  if (got == 0) at_end = true;
  end += static_cast<std::size_t>(got);
  bytes_read += static_cast<std::uint64_t>(got);
}

void LineReader::State::probe() {
  if (pending().starts_with(kByteOrderMark)) begin += kByteOrderMark.size();
  const std::string complaint = complaint_about(pending().substr(0, kProbeBytes));
  if (!complaint.empty()) {
    throw CorpusError(path.string() + ": is not text in UTF-8: " + complaint);
  }
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

LineReader::LineReader(const std::filesystem::path& file, std::size_t max_line_bytes)
    : state_(std::make_unique<State>()) {
  state_->path = file;
  state_->max_line_bytes = max_line_bytes;
  state_->open();
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
std::uint64_t LineReader::bytes_read() const { return state_->bytes_read; }

}  // namespace tupelo

#include "data/input/text_bytes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/memory_bytes.h"
#include "data/input/transcoder.h"

namespace tupelo {
namespace {

constexpr std::size_t kProbeBytes = std::size_t{64} << 10;

// A few stray bytes are counted and replaced; this much is a file in another encoding.
constexpr std::uint64_t kStrayBytes = 256;
// Zero bytes are stray as well, but text does not have that many, nor in that share of its bytes.
constexpr std::uint64_t kStrayZeros = 16;
constexpr std::uint64_t kBinaryShare = 16;

constexpr const char* kGb18030 = "GB18030";

struct Mark {
  std::string_view bytes;
  const char* encoding;  // null: UTF-8
};
// UTF-32's before UTF-16's, which begins alike.
constexpr Mark kByteOrderMarks[] = {
    {"\xEF\xBB\xBF", nullptr},
    {std::string_view("\xFF\xFE\0\0", 4), "UTF-32LE"},
    {std::string_view("\0\0\xFE\xFF", 4), "UTF-32BE"},
    {"\xFF\xFE", "UTF-16LE"},
    {"\xFE\xFF", "UTF-16BE"},
};

struct Magic {
  std::size_t at;
  std::string_view bytes, what;
};
constexpr Magic kOtherFormats[] = {
    {0,
     "\xFD"
     "7zXZ",
     "it is compressed (xz): decompress it first"},
    {0, "BZh", "it is compressed (bzip2): decompress it first"},
    {0, "PK\x03\x04", "it is a zip archive: unpack it first"},
    {257, "ustar", "it is a tar archive: unpack it first"},
    {0, "%PDF-", "it is a PDF: convert it with pdftotext"},
    {0, "\x89PNG", "it is an image (PNG)"},
    {0, "\xFF\xD8\xFF", "it is an image (JPEG)"},
    {0, "GIF8", "it is an image (GIF)"},
    {0, "\x89HDF", "it is an HDF5 file"},
    {0,
     "\x7F"
     "ELF",
     "it is a program"},
};

std::string_view other_format(std::string_view start) {
  for (const Magic& magic : kOtherFormats) {
    if (start.size() > magic.at && start.substr(magic.at).starts_with(magic.bytes)) {
      return magic.what;
    }
  }
  return {};
}

// Without the character that the end of the probe may have cut.
std::uint64_t invalid_bytes_of(std::string_view start) {
  const std::uint64_t invalid = count_invalid_bytes(start);
  if (start.size() < kProbeBytes) return invalid;
  return std::min(invalid, count_invalid_bytes(start.substr(0, start.size() - 3)));
}

// Why the beginning of a text, decoded to UTF-8, is none; empty when it is.
std::string complaint_about(std::string_view start, const char* encoding) {
  const auto zeros = static_cast<std::uint64_t>(std::count(start.begin(), start.end(), '\0'));
  const std::uint64_t invalid = invalid_bytes_of(start);
  if (zeros > kStrayZeros && zeros > start.size() / kBinaryShare) {
    return std::to_string(zeros) + " of its first " + std::to_string(start.size()) +
           " bytes are zero, so it is binary";
  }
  if (invalid < kStrayBytes || invalid < start.size() / 4) return {};
  std::string complaint =
      std::to_string(invalid) + " of its first " + std::to_string(start.size()) + " bytes are not ";
  complaint +=
      encoding == nullptr ? "UTF-8: choose its encoding (gb18030, auto), or convert it" : encoding;
  return complaint;
}

std::uint64_t bytes_beyond_ascii(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }));
}

bool nearly_all_valid(std::uint64_t invalid, std::uint64_t of) { return invalid <= of / 100; }

bool looks_like_gb18030(std::string_view start, const std::string& name) {
  const std::uint64_t beyond_ascii = bytes_beyond_ascii(start);
  if (nearly_all_valid(invalid_bytes_of(start), beyond_ascii)) return false;
  const std::string decoded = transcoded_to_utf8(start, kGb18030, name);
  const std::uint64_t cut = start.size() == kProbeBytes ? 3 : 0;
  return count_invalid_bytes(decoded) <= beyond_ascii / 100 + cut;
}

// The encoding by ICU's name, null for UTF-8; moves `start` behind a byte order mark.
const char* encoding_of(std::string& start, TextEncoding wanted, const std::string& name) {
  for (const Mark& mark : kByteOrderMarks) {
    if (!start.starts_with(mark.bytes)) continue;
    start.erase(0, mark.bytes.size());
    return mark.encoding;
  }
  if (wanted == TextEncoding::kGb18030) return kGb18030;
  if (wanted == TextEncoding::kAuto && looks_like_gb18030(start, name)) return kGb18030;
  return nullptr;
}

std::string read_probe(ByteSource& bytes) {
  std::string start(kProbeBytes, '\0');
  std::size_t size = 0;
  while (size < start.size()) {
    const std::size_t got = bytes.read(start.data() + size, start.size() - size);
    if (got == 0) break;
    size += got;
  }
  start.resize(size);
  return start;
}

// What the first bytes of a text are in: ICU's name for it, null for UTF-8. Moves `start` behind a
// byte order mark. Throws CorpusError when they are no text.
const char* checked_encoding(std::string& start, TextEncoding wanted, const std::string& name) {
  const std::string_view other = other_format(start);
  if (!other.empty() && count_invalid_bytes(start) > 0) {
    throw CorpusError(name + ": is not text: " + std::string(other));
  }
  const char* const found = encoding_of(start, wanted, name);
  const std::string complaint =
      complaint_about(found == nullptr ? start : transcoded_to_utf8(start, found, name), found);
  if (!complaint.empty()) {
    throw CorpusError(name + ": is not text in " + (found == nullptr ? "UTF-8" : found) + ": " +
                      complaint);
  }
  return found;
}

}  // namespace

std::unique_ptr<ByteSource> open_text(std::unique_ptr<ByteSource> bytes, TextEncoding encoding,
                                      const std::string& name) {
  std::string start = read_probe(*bytes);
  const char* const found = checked_encoding(start, encoding, name);
  auto text = std::make_unique<MemoryBytes>(std::move(start), std::move(bytes));
  if (found == nullptr) return text;
  return transcode_to_utf8(std::move(text), found, name);
}

bool is_plain_utf8(ByteSource& bytes, TextEncoding encoding, const std::string& name) {
  std::string start = read_probe(bytes);
  return checked_encoding(start, encoding, name) == nullptr;
}

}  // namespace tupelo

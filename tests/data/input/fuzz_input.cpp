// libFuzzer: any bytes as a file of any format are read or refused with a CorpusError, and what is
// read is valid UTF-8. The first byte chooses format, encoding and what becomes of invalid bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "data/cleaning/cleaner.h"
#include "data/cleaning/fingerprint.h"
#include "data/content_digest.h"
#include "data/document_batch.h"
#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/decompression.h"
#include "data/input/html_text.h"
#include "data/input/manual_text.h"
#include "data/input/memory_bytes.h"
#include "data/input/message_catalogue.h"
#include "data/input/restructured_text.h"
#include "data/input/text_bytes.h"
#include "data/line_reader.h"
#include "data/text_place.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

std::string decoded(std::string bytes, TextEncoding encoding) {
  const auto text =
      open_text(std::make_unique<MemoryBytes>(std::move(bytes), nullptr), encoding, "f");
  return read_all(*text, std::size_t{1} << 24, "f");
}

void read_archive(std::string bytes, bool zstd) {
  auto file = std::make_unique<MemoryBytes>(std::move(bytes), nullptr);
  auto source =
      zstd ? decompress_zstd(std::move(file), "f") : decompress_gzip(std::move(file), "f");
  LineReader lines(open_text(std::move(source), TextEncoding::kUtf8, "f"), 1000);
  std::string_view line;
  std::size_t total = 0;
  while (lines.next(line) && total < 1'000'000) total += line.size() + 1;
}

void read_catalogue(std::string bytes) {
  MessageCatalogue catalogue(std::move(bytes), "f");
  std::string translation;
  while (catalogue.next(translation)) replace_invalid_bytes(translation);
}

void clean(std::string text, const Cleaner& cleaner) {
  CleaningReport report = cleaner.empty_report();
  ContentDigest digest;
  if (text.empty()) return;
  cleaner.clean(text, TextPlace{}, report);
  if (!is_valid_utf8(text)) std::abort();
  const auto prints = cleaner.fingerprints(text, 0, digest);
  std::vector<std::uint64_t> positions;
  for (const Fingerprint& print : prints) {
    if (print.position < kNearDocument) positions.push_back(print.position);
  }
  cleaner.drop_duplicates(text, positions, TextPlace{}, report);
  if (!is_valid_utf8(text)) std::abort();
}

void read(std::string bytes, int format) {
  static const Cleaner cleaner({.enabled = true}, "zh");
  if (format == 0) return read_archive(std::move(bytes), false);
  if (format == 1) return read_archive(std::move(bytes), true);
  if (format == 2) return read_catalogue(std::move(bytes));
  std::string text = decoded(std::move(bytes), static_cast<TextEncoding>(format % 3));
  replace_invalid_bytes(text);
  if (!is_valid_utf8(text)) std::abort();
  std::string result;
  switch (format / 3) {
    case 1:
      result = text_of_html(text);
      break;
    case 2:
      result = text_of_manual(text);
      break;
    case 3:
      result = text_of_restructured(text);
      break;
    case 4:
      result = text_of_json_line(text, "a.b");
      break;
    default:
      return clean(std::move(text), cleaner);
  }
  if (!is_valid_utf8(result)) std::abort();
}

}  // namespace
}  // namespace tupelo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    tupelo::read(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), data[0] % 18);
  } catch (const tupelo::CorpusError&) {
  }
  return 0;
}

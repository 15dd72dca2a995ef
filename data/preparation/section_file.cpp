#include "data/preparation/section_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "data/content_digest.h"
#include "data/corpus_files.h"
#include "data/errors.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;

// magic, bytes of the head, SHA-256 of the head (hex), head; then the sections. All but the magic
// and the head's digest are padded to multiples of 8 bytes.
constexpr char kMagic[] = {'T', 'U', 'P', 'E', 'L', 'O', '0', '1'};
constexpr std::size_t kDigestBytes = 64;
constexpr std::size_t kHeadBegin = sizeof kMagic + sizeof(std::uint64_t) + kDigestBytes;

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

void append(std::vector<std::byte>& image, const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t end = image.size();
  image.resize(padded(end + bytes));
  std::memcpy(image.data() + end, data, bytes);
}

}  // namespace

void write_sections(const std::filesystem::path& file, const std::string& description,
                    const std::vector<std::span<const std::byte>>& sections) {
  Json head = {{"description", description}, {"sections", Json::array()}};
  std::uint64_t all = 0;
  for (const auto& section : sections) {
    head["sections"].push_back({section.size(), sha256_hex_of(section.data(), section.size())});
    all += padded(section.size());
  }
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string digest = sha256_hex_of(text.data(), text.size());
  const std::uint64_t head_bytes = text.size();
  std::vector<std::byte> image;
  image.reserve(kHeadBegin + padded(head_bytes) + all);
  append(image, kMagic, sizeof kMagic);
  append(image, &head_bytes, sizeof head_bytes);
  append(image, digest.data(), digest.size());
  append(image, text.data(), text.size());
  for (const auto& section : sections) append(image, section.data(), section.size());
  replace_corpus_file(file, image);
}

SectionFile::SectionFile(const std::filesystem::path& file) : path_(file), file_(file) {
  const std::span<const std::byte> bytes = file_.bytes();
  std::uint64_t head_bytes = 0;
  if (bytes.size() < kHeadBegin || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) refuse();
  std::memcpy(&head_bytes, bytes.data() + sizeof kMagic, sizeof head_bytes);
  if (head_bytes > bytes.size() - kHeadBegin) refuse();
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + kHeadBegin, head_bytes);
  const std::string digest = sha256_hex_of(text.data(), text.size());
  const std::byte* const written = bytes.data() + kHeadBegin - kDigestBytes;
  if (std::memcmp(written, digest.data(), kDigestBytes) != 0) refuse();
  const Json head = Json::parse(text);
  description_ = head.at("description").get<std::string>();
  std::uint64_t first = padded(kHeadBegin + head_bytes);
  for (const Json& section : head.at("sections")) {
    const auto size = section.at(0).get<std::uint64_t>();
    sections_.push_back({first, size, section.at(1).get<std::string>()});
    first += padded(size);
  }
  if (first != padded(bytes.size())) refuse();
}

void SectionFile::refuse() const {
  throw CorpusError(path_.string() +
                    ": an intermediate result is not what was written: remove the folder " +
                    path_.parent_path().parent_path().parent_path().string() +
                    ", check the disk and prepare again");
}

std::span<const std::byte> SectionFile::unchecked_section(std::size_t index) const {
  const Section& section = sections_.at(index);
  return file_.bytes().subspan(section.first, section.bytes);
}

std::span<const std::byte> SectionFile::section(std::size_t index) const {
  const auto bytes = unchecked_section(index);
  if (sha256_hex_of(bytes.data(), bytes.size()) != sections_[index].sha256) refuse();
  return bytes;
}

}  // namespace tupelo

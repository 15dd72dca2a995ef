#include "data/archive/archive_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "data/corpus_files.h"
#include "data/errors.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "tupelo-archive";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file) {
    root_ = Json::parse(read_corpus_text(file, kMaxIndexBytes), nullptr, false);
    if (!root_.is_object()) refuse("is not a JSON object");
  }
  const Json& root() const { return root_; }

  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(file_.string() + ": " + what);
  }
  std::string text(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object.at(key).is_string()) {
      refuse(std::string("key '") + key + "' is missing or not a text");
    }
    return object.at(key).get<std::string>();
  }
  std::uint64_t number(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object.at(key).is_number_unsigned()) {
      refuse(std::string("key '") + key + "' is missing or not a whole number of at least 0");
    }
    return object.at(key).get<std::uint64_t>();
  }

 private:
  fs::path file_;
  Json root_;
};

bool leads_inside(const fs::path& name) {
  return !name.empty() && name.is_relative() && name == name.lexically_normal() &&
         name.string().find('\0') == std::string::npos && name.has_filename() &&
         std::none_of(name.begin(), name.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

}  // namespace

std::string format_archive_index(const ArchiveIndex& index) {
  Json files = Json::array();
  for (const ArchivedFile& file : index.files) {
    files.push_back({{"file", file.name},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256},
                     {"compressed_bytes", file.compressed_bytes},
                     {"compressed_sha256", file.compressed_sha256}});
  }
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"corpus_digest", index.corpus_digest},
                     {"level", index.level},
                     {"files", files}};
  return json.dump(1) + "\n";
}

ArchiveIndex read_archive_index(const fs::path& archive) {
  const Reader reader(archive / kArchiveIndex);
  const Json& root = reader.root();
  if (reader.text(root, "format") != kFormat || reader.number(root, "version") != kVersion) {
    reader.refuse("keys 'format' and 'version' are not 'tupelo-archive' and 1");
  }
  ArchiveIndex index;
  index.corpus_digest = reader.text(root, "corpus_digest");
  index.level = static_cast<int>(std::min<std::uint64_t>(reader.number(root, "level"), 100));
  if (!root.contains("files") || !root.at("files").is_array()) {
    reader.refuse("key 'files' is missing or not a list");
  }
  std::set<std::string> names;
  for (const Json& file : root.at("files")) {
    index.files.push_back({reader.text(file, "file"), reader.number(file, "bytes"),
                           reader.text(file, "sha256"), reader.number(file, "compressed_bytes"),
                           reader.text(file, "compressed_sha256")});
    const std::string& name = index.files.back().name;
    if (!leads_inside(name) || !names.insert(name).second) {
      reader.refuse("file '" + name + "' is not a path inside the corpus, or is there twice");
    }
  }
  return index;
}

}  // namespace tupelo

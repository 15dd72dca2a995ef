#include "checkpoints/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoints/corrupt_checkpoint.h"
#include "checkpoints/strict_json.h"

namespace tupelo {
namespace {

constexpr char kFormat[] = "tupelo-checkpoint";
constexpr int kVersion = 1;

bool is_checkpoint_file(std::string_view name) {
  const std::string_view suffix = kTensorSuffix;
  return name == kStateFile || (name.size() > suffix.size() && name.ends_with(suffix) &&
                                is_tensor_file_stem(name.substr(0, name.size() - suffix.size())));
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

class ManifestReader {
 public:
  explicit ManifestReader(const std::string& where) : where_(where) {}

  Manifest read(const nlohmann::json& json) const {
    require(has_keys(json, {"format", "version", "step", "files"}),
            "must have exactly the keys format, version, step and files");
    require(json["format"] == kFormat, "is not the manifest of a checkpoint");
    require(json["version"].is_number_unsigned(), "has a version that is not a whole number");
    require(json["version"] == kVersion, "has version " + json["version"].dump() +
                                             ", but this program reads version " +
                                             std::to_string(kVersion));
    require(json["step"].is_number_unsigned() && json["step"].get<std::uint64_t>() <= INT64_MAX,
            "has a step that is not a whole number");
    require(json["files"].is_object(), "has files that are not an object");
    Manifest manifest;
    manifest.step = json["step"].get<std::int64_t>();
    for (const auto& [name, entry] : json["files"].items()) {
      require(is_checkpoint_file(name), "lists '" + name + "', which no file may be called");
      manifest.files[name] = read_entry(name, entry);
    }
    require(manifest.files.count(kStateFile) == 1, "does not list state.json");
    return manifest;
  }

 private:
  ManifestEntry read_entry(const std::string& name, const nlohmann::json& entry) const {
    require(has_keys(entry, {"size_bytes", "sha256"}),
            "must give exactly size_bytes and sha256 of '" + name + "'");
    require(entry["size_bytes"].is_number_unsigned(),
            "gives a size of '" + name + "' that is not a whole number");
    require(entry["sha256"].is_string() && is_sha256(entry["sha256"].get<std::string>()),
            "gives a sha256 of '" + name + "' that is not 64 digits");
    return {entry["size_bytes"].get<std::uint64_t>(), entry["sha256"].get<std::string>()};
  }

  static bool has_keys(const nlohmann::json& json, std::initializer_list<const char*> keys) {
    return json.is_object() && json.size() == keys.size() &&
           std::all_of(keys.begin(), keys.end(),
                       [&](const char* key) { return json.contains(key); });
  }

  void require(bool holds, const std::string& what) const {
    if (!holds) throw CorruptCheckpoint(where_ + " " + what);
  }

  const std::string& where_;
};

}  // namespace

bool is_tensor_file_stem(std::string_view stem) {
  return !stem.empty() && stem.size() <= 64 &&
         stem.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

std::string format_manifest(const Manifest& manifest) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : manifest.files) {
    files[name] = {{"size_bytes", entry.size_bytes}, {"sha256", entry.sha256}};
  }
  const nlohmann::ordered_json json = {
      {"format", kFormat}, {"version", kVersion}, {"step", manifest.step}, {"files", files}};
  return json.dump(2) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  return ManifestReader(where).read(parse_strict_json(text, JsonNumbers::kIntegersOnly, where));
}

}  // namespace tupelo

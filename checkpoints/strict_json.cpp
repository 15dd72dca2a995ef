#include "checkpoints/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "checkpoints/corrupt_checkpoint.h"

namespace tupelo {
namespace {

constexpr int kMaximumDepth = 32;

// What the parser lets pass but we do not.
class Objections {
 public:
  Objections(JsonNumbers numbers, const std::string& where) : numbers_(numbers), where_(where) {}

  void check(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kMaximumDepth) {
      fail("is nested deeper than " + std::to_string(kMaximumDepth) + " levels");
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) fail("holds the key '" + key + "' twice");
    } else if (event == Event::value && parsed.is_number_float() &&
               numbers_ == JsonNumbers::kIntegersOnly) {
      fail("holds the number " + parsed.dump() + ", which is not a 64-bit integer");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw CorruptCheckpoint(where_ + " " + what);
  }

  JsonNumbers numbers_;
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, JsonNumbers numbers,
                                 const std::string& where) {
  // The parser takes a NUL for the end of its input and ignores what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw CorruptCheckpoint(where + " holds a NUL byte");
  }
  if (text.empty() || text.front() != '{') {
    throw CorruptCheckpoint(where + " does not begin with '{'");
  }
  Objections objections(numbers, where);
  try {
    return nlohmann::json::parse(
        text, [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
          objections.check(depth, event, parsed);
          return true;
        });
  } catch (const nlohmann::json::exception& error) {
    throw CorruptCheckpoint(where + " is not JSON: " + error.what());
  }
}

}  // namespace tupelo

#include "data/tokenizer/json_file.h"

#include <unordered_set>
#include <vector>

#include "data/errors.h"
#include "data/tokenizer/bounded_file.h"

namespace tupelo {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;

// Listens to the parser, which by itself would keep the last of two equal keys.
class Watch {
 public:
  explicit Watch(std::string where) : where_(std::move(where)) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaxDepth) {
      throw CorpusError(where_ + ": nested deeper than " + std::to_string(kMaxDepth));
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw CorpusError(where_ + ": the key '" + parsed.get<std::string>() + "' occurs twice");
    }
    return true;
  }

 private:
  std::string where_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
};

}  // namespace

Json read_json_file(const std::filesystem::path& file, std::size_t max_bytes,
                    const std::string& what) {
  const std::string text = read_bounded_file(file, max_bytes, what);
  const std::string where = what + " " + file.string();
  Watch watch(where);
  try {
    return Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw CorpusError(where + ": not JSON, at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    throw CorpusError(where + ": holds a number that is out of range");
  }
}

}  // namespace tupelo

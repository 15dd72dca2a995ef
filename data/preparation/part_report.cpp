#include "data/preparation/part_report.h"

#include <nlohmann/json.hpp>

namespace tupelo {

using Json = nlohmann::json;

// Found by nlohmann's library by their names.
static void to_json(Json& json, const TextPlace& place) {
  json = {place.source, place.origin, place.line};
}
static void from_json(const Json& json, TextPlace& place) {
  place = {json[0].get<std::uint64_t>(), json[1].get<std::uint64_t>(),
           json[2].get<std::uint64_t>()};
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DamagedRecord, place, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TextCounts, invalid_bytes, dropped_lines, damaged_records,
                                   damage)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CleaningExample, place, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RuleReport, name, what, documents, lines, bytes, examples)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CleaningReport, documents_before, bytes_before, documents_after,
                                   bytes_after, rules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceReport, documents, text_bytes, invalid_bytes, damage)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DamagedFile, source, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PartReport, empty_documents, unknown_tokens, input_bytes, counts,
                                   cleaning, sources, damaged_files)

void PartReport::add(const PartReport& later) {
  empty_documents += later.empty_documents;
  unknown_tokens += later.unknown_tokens;
  input_bytes += later.input_bytes;
  counts.add(later.counts);
  cleaning.add(later.cleaning);
  for (const auto& [source, report] : later.sources) {
    SourceReport& sum = sources[source];
    sum.documents += report.documents;
    sum.text_bytes += report.text_bytes;
    sum.invalid_bytes += report.invalid_bytes;
  }
  damaged_files.insert(damaged_files.end(), later.damaged_files.begin(), later.damaged_files.end());
}

std::string format_part_report(const PartReport& report) {
  return Json(report).dump(-1, ' ', false, Json::error_handler_t::replace);
}

PartReport parse_part_report(const std::string& text) {
  return Json::parse(text).get<PartReport>();
}

}  // namespace tupelo

#include "data/plan_cache.h"

#include <algorithm>
#include <numeric>
#include <system_error>

#include "data/content_digest.h"
#include "data/errors.h"
#include "data/preparation/section_file.h"

namespace tupelo {
namespace {

std::string description_of(const PlanKey& key) {
  const char* const packing = key.packing == Packing::kFull       ? "full"
                              : key.packing == Packing::kDocument ? "doc"
                                                                  : "packed";
  std::string text = "tupelo-plan 1, corpus ";
  text += key.corpus;
  text += ", packing ";
  text += packing;
  text += ", length ";
  text += std::to_string(key.sequence_length);
  if (key.sentence_pairs) text += ", pairs";
  if (key.length_bins > 0) {
    text += ", bins ";
    text += std::to_string(key.length_bins);
  }
  return text;
}

std::vector<std::uint64_t> numbers(const SectionFile& file, std::size_t section) {
  const std::span<const std::uint64_t> values = file.values<std::uint64_t>(section);
  return {values.begin(), values.end()};
}

std::uint64_t documents_in(const DocumentTable& documents) {
  const auto& parts = documents.parts();
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& part) { return sum + part.documents; });
}

// Whether nothing in the tables leads outside of them or the documents.
bool fit(const PlanTables& tables, const DocumentTable& documents, Packing packing) {
  const std::size_t parts = documents.parts().size();
  if (tables.rows.size() != (packing == Packing::kFull ? 0 : parts) ||
      tables.bin_rows.size() != tables.bin_longest.size() * parts) {
    return false;
  }
  const auto& [first, items] = tables.shared;
  if (packing != Packing::kBestFit) return first.empty() && items.empty();
  const std::uint64_t count = documents_in(documents);
  return !first.empty() && first.front() == 0 && first.back() == items.size() &&
         std::is_sorted(first.begin(), first.end()) &&
         std::all_of(items.begin(), items.end(), [count](std::uint64_t d) { return d < count; });
}

}  // namespace

std::filesystem::path PlanCache::file_of(const PlanKey& key) const {
  const std::string text = description_of(key);
  return folder_ / ("plan-" + sha256_hex_of(text.data(), text.size()).substr(0, 16));
}

std::optional<PlanTables> PlanCache::find(const PlanKey& key,
                                          const DocumentTable& documents) const {
  try {
    const SectionFile file(file_of(key));
    if (file.description() != description_of(key)) return {};
    PlanTables tables{
        numbers(file, 0), {numbers(file, 1), numbers(file, 2)}, numbers(file, 3), numbers(file, 4)};
    if (fit(tables, documents, key.packing)) return tables;
  } catch (const CorpusError&) {
  } catch (const std::system_error&) {
  }
  return {};
}

void PlanCache::keep(const PlanKey& key, const DocumentTable& documents,
                     const PlanTables& tables) const {
  if (tables.rows.empty() || find(key, documents)) return;
  std::filesystem::create_directories(folder_);
  write_sections(
      file_of(key), description_of(key),
      {bytes_of(tables.rows), bytes_of(tables.shared.first), bytes_of(tables.shared.items),
       bytes_of(tables.bin_longest), bytes_of(tables.bin_rows)});
}

}  // namespace tupelo

// Tables of row plans kept in files, so that the lengths of all documents are read once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "data/data_options.h"
#include "data/row_plan.h"

namespace tupelo {

// What tables depend on.
struct PlanKey {
  std::string corpus;  // digest and split
  Packing packing;
  std::int64_t sequence_length;
  bool sentence_pairs;
  std::int64_t length_bins = 0;
};

// A folder of files plan-<16 digits of a hash of the key>. A file that is missing, damaged, of
// another key or unreadable is as if it were not there: tables can always be made again. Each has
// a digest of its content, and appears whole (data/preparation/section_file.h). They take 8 bytes
// for each shard and each of its bins, and with kBestFit 8 more for each document that shares a row
// and for each row.
class PlanCache {
 public:
  explicit PlanCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Tables for documents in these parts.
  std::optional<PlanTables> find(const PlanKey& key, const DocumentTable& documents) const;
  // Creates the folder; leaves a file that find() takes as it is. Throws std::system_error.
  void keep(const PlanKey& key, const DocumentTable& documents, const PlanTables& tables) const;

 private:
  std::filesystem::path file_of(const PlanKey& key) const;

  std::filesystem::path folder_;
};

}  // namespace tupelo

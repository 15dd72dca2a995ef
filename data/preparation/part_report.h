// What a part of the input gave, to be kept with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/cleaning/cleaner.h"
#include "data/document_batch.h"
#include "data/document_reader.h"
#include "data/prepare.h"

namespace tupelo {

struct PartReport {
  std::uint64_t empty_documents = 0, unknown_tokens = 0;
  std::uint64_t input_bytes = 0;  // of the whole group, in its last part
  TextCounts counts;
  CleaningReport cleaning;
  std::map<std::uint64_t, SourceReport> sources;
  std::vector<DamagedFile> damaged_files;  // of the whole group, in its last part

  // Of later documents.
  void add(const PartReport& later);
};

std::string format_part_report(const PartReport& report);
// Of what format_part_report() gave.
PartReport parse_part_report(const std::string& text);

}  // namespace tupelo

// Duplicates among all documents, found by many processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "data/preparation/job.h"
#include "data/preparation/part_folder.h"
#include "data/preparation/section_file.h"

namespace tupelo {

// Collective. Two phases, of which what is done is not done again: the fingerprints of all
// documents ("clean"), then those that occur twice ("compare"). Scratch: 24 bytes a fingerprint,
// 8 a duplicate; a document has 21 fingerprints and one for each long line.
void find_duplicates(PreparationJob& job);

// What find_duplicates() found. One thread at a time.
class DuplicateTable {
 public:
  // Throws CorpusError, std::system_error.
  explicit DuplicateTable(const PreparationJob& job);

  // Positions (fingerprint.h) within a part of the documents of this job, ascending.
  std::vector<std::uint64_t> positions(const PartKey& part) const;

 private:
  std::map<PartKey, std::uint64_t> first_documents_;  // and the end of the last part
  std::vector<std::unique_ptr<SectionFile>> files_;
};

}  // namespace tupelo

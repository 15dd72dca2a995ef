// One phase over all documents: results in parts that a killed job finds again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/ordered_pipeline.h"
#include "data/preparation/job.h"
#include "data/preparation/part_folder.h"

namespace tupelo {

// Of the input's bytes, those of the groups that are complete.
inline std::uint64_t bytes_done(const PreparationJob& job, const PartFolder& folder) {
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < job.groups().size(); ++group) {
    if (folder.is_complete(group)) bytes += job.groups()[group].bytes;
  }
  return bytes;
}

// The groups that are not complete yet and that this process is to do.
inline std::vector<std::size_t> groups_to_do(const PreparationJob& job, const PartFolder& folder) {
  std::vector<std::uint64_t> costs;
  for (const TextGroup& group : job.groups()) costs.push_back(group.bytes);
  // Shared out as if nothing was there: processes may not yet all see the same.
  std::vector<std::size_t> mine = job.share(costs);
  std::erase_if(mine, [&](std::size_t group) { return folder.is_complete(group); });
  return mine;
}

// The parts of a group that are not there yet. `Part` collects what transform(batch) gives by
// add(number of documents, result), which returns their tokens, learns of the end of the group by
// finish(reader), and writes itself by write(file).
template <typename Part, typename MakePart, typename Transform>
void make_parts(PreparationJob& job, const PartFolder& folder, std::size_t group,
                const DocumentTexts::Duplicates& duplicates, MakePart make_part,
                Transform transform) {
  constexpr std::size_t kBatchBytes = std::size_t{512} << 10;
  using Batch = DocumentTexts::Batch;
  struct Done {
    std::uint64_t part, documents, bytes;
    decltype(transform(std::declval<Batch&&>())) result;
  };
  DocumentTexts::Pass pass(job.texts(), job.groups()[group], duplicates);
  const std::uint64_t there = folder.parts(group);
  PartKey key = {group, there};
  Part part = make_part();
  std::uint64_t told = 0;
  ordered_pipeline<Batch>(
      job.options().threads,
      [&](Batch& batch) {
        do {
          batch = {};
          if (!pass.next(kBatchBytes, batch)) return false;
        } while (batch.part < there);
        return true;
      },
      [&](Batch&& batch) {
        const std::uint64_t number = batch.part, documents = batch.raw.documents.size();
        const std::uint64_t bytes = batch.raw.bytes;
        return Done{number, documents, bytes, transform(std::move(batch))};
      },
      [&](Done&& done) {
        if (done.part != key.part) {
          part.write(folder.new_file(key, false));
          part = make_part();
          key.part = done.part;
        }
        const std::uint64_t tokens = part.add(done.documents, std::move(done.result));
        job.advance(pass.reader().bytes_read() - told, done.documents, tokens);
        told = pass.reader().bytes_read();
      });
  part.finish(pass.reader());
  part.write(folder.new_file(key, true));
  job.advance(pass.reader().bytes_read() - told);
}

}  // namespace tupelo

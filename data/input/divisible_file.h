// Files that can be read in parts, each by somebody else.
#pragma once

#include <cstdint>

#include "data/input/file_documents.h"

namespace tupelo {

// Whether documents of the file can be found from its middle: lines of UTF-8 that is not
// compressed. Reads its first 64 KiB. What is no text is not divisible; it is refused where it is
// read. Throws std::system_error.
bool is_divisible(const TextSource& source, const ReadOptions& options);

// The first boundary between two documents of a divisible file that lies at byte `from` or behind
// it, or the file's end: before a line, or, of kBlankLine, before a blank line. Parts of the file
// between such boundaries hold together the documents of the whole. Throws CorpusError when the
// file changed, std::system_error.
std::uint64_t document_boundary(const TextSource& source, std::uint64_t from);

}  // namespace tupelo

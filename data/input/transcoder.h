// Text of other encodings as UTF-8.
#pragma once

#include <memory>

#include "data/input/byte_source.h"

namespace tupelo {

// `encoding` is a name that ICU knows. Bytes that are no character of it come out as as many bytes
// 0xFF, which are none of UTF-8 either, so that they are counted and replaced where those are.
// Throws CorpusError, which begins with `name`, when there is no such encoding.
std::unique_ptr<ByteSource> transcode_to_utf8(std::unique_ptr<ByteSource> bytes,
                                              const std::string& encoding, const std::string& name);

// The same for a text in memory.
std::string transcoded_to_utf8(std::string_view text, const std::string& encoding,
                               const std::string& name);

}  // namespace tupelo

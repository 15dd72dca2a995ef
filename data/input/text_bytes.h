// The text of a file as UTF-8, whatever it is encoded in.
#pragma once

#include <memory>

#include "data/input/byte_source.h"
#include "data/prepare.h"

namespace tupelo {

// A byte order mark, which is removed, decides (UTF-8, UTF-16, UTF-32); without one `encoding`
// does: kAuto takes GB 18030 when the first 64 KiB are nearly all valid in it and are not in UTF-8.
// The result may still hold ill-formed parts. Throws CorpusError, which begins with `name`, when
// the first 64 KiB are evidently something else than text in that encoding.
std::unique_ptr<ByteSource> open_text(std::unique_ptr<ByteSource> bytes, TextEncoding encoding,
                                      const std::string& name);

// Whether open_text() would give the bytes of this file as they are, but for a byte order mark.
// Throws std::system_error, CorpusError.
bool is_plain_utf8(ByteSource& bytes, TextEncoding encoding, const std::string& name);

}  // namespace tupelo

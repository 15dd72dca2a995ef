#include "data/input/transcoder.h"

#include <unicode/ucnv.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "data/errors.h"
#include "data/input/memory_bytes.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
constexpr char kInvalidByte = '\xFF';

struct CloseConverter {
  void operator()(UConverter* converter) const { ucnv_close(converter); }
};

class Transcoder : public ByteSource {
 public:
  Transcoder(std::unique_ptr<ByteSource> bytes, const std::string& encoding,
             const std::string& name);

  std::size_t read(char* to, std::size_t most) override;
  std::uint64_t file_bytes() const override { return bytes_->file_bytes(); }

 private:
  void convert_some();
  void append(const UChar* begin, const UChar* end);
  void append_invalid();

  std::unique_ptr<ByteSource> bytes_;
  std::unique_ptr<UConverter, CloseConverter> converter_;
  std::vector<char> block_;
  const char* at_ = nullptr;  // [at_, end_) of the block is not yet converted
  const char* end_ = nullptr;
  bool at_end_ = false, finished_ = false;
  char32_t lead_surrogate_ = 0;  // one that ended the last piece
  std::string output_;
  std::size_t given_ = 0;  // bytes of `output_` that were read
};

Transcoder::Transcoder(std::unique_ptr<ByteSource> bytes, const std::string& encoding,
                       const std::string& name)
    : bytes_(std::move(bytes)), block_(kBlockBytes) {
  UErrorCode status = U_ZERO_ERROR;
  converter_.reset(ucnv_open(encoding.c_str(), &status));
  if (U_FAILURE(status)) {
    throw CorpusError(name + ": is in the encoding '" + encoding + "', which is not known");
  }
  ucnv_setToUCallBack(converter_.get(), UCNV_TO_U_CALLBACK_STOP, nullptr, nullptr, nullptr,
                      &status);
  at_ = end_ = block_.data();
}

void Transcoder::append(const UChar* begin, const UChar* end) {
  for (; begin != end; ++begin) {
    char32_t code = *begin;
    if (code >= 0xD800 && code < 0xDC00) {
      lead_surrogate_ = code;
      continue;
    }
    if (code >= 0xDC00 && code < 0xE000) {
      code = 0x10000 + ((lead_surrogate_ - 0xD800) << 10) + (code - 0xDC00);
    }
    char utf8[kMaxUtf8Bytes];
    output_.append(utf8, write_utf8(code, utf8));
  }
}

void Transcoder::append_invalid() {
  char bytes[32];
  std::int8_t count = sizeof bytes;
  UErrorCode status = U_ZERO_ERROR;
  ucnv_getInvalidChars(converter_.get(), bytes, &count, &status);
  output_.append(U_SUCCESS(status) && count > 0 ? static_cast<std::size_t>(count) : 1,
                 kInvalidByte);
}

void Transcoder::convert_some() {
  if (at_ == end_ && !at_end_) {
    const std::size_t got = bytes_->read(block_.data(), block_.size());
    at_ = block_.data();
    end_ = at_ + got;
    at_end_ = got == 0;
  }
  UChar buffer[4096];
  UChar* target = buffer;
  UErrorCode status = U_ZERO_ERROR;
  ucnv_toUnicode(converter_.get(), &target, buffer + std::size(buffer), &at_, end_, nullptr,
                 at_end_, &status);
  append(buffer, target);
  if (status == U_BUFFER_OVERFLOW_ERROR) return;
  if (U_FAILURE(status)) {
    append_invalid();
    if (status == U_TRUNCATED_CHAR_FOUND) finished_ = true;
  } else if (at_end_) {
    finished_ = true;
  }
}

std::size_t Transcoder::read(char* to, std::size_t most) {
  if (given_ == output_.size()) {
    output_.clear();
    given_ = 0;
    while (output_.empty() && !finished_) convert_some();
  }
  const std::size_t count = std::min(most, output_.size() - given_);
  std::memcpy(to, output_.data() + given_, count);
  given_ += count;
  return count;
}

}  // namespace

std::unique_ptr<ByteSource> transcode_to_utf8(std::unique_ptr<ByteSource> bytes,
                                              const std::string& encoding,
                                              const std::string& name) {
  return std::make_unique<Transcoder>(std::move(bytes), encoding, name);
}

std::string transcoded_to_utf8(std::string_view text, const std::string& encoding,
                               const std::string& name) {
  Transcoder transcoder(std::make_unique<MemoryBytes>(std::string(text), nullptr), encoding, name);
  return read_all(transcoder, SIZE_MAX, name);
}

}  // namespace tupelo

#include <zstd.h>
#include <zstd_errors.h>

#include <utility>
#include <vector>

#include "data/errors.h"
#include "data/input/decompression.h"

namespace tupelo {
namespace {

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdBytes : public ByteSource {
 public:
  ZstdBytes(std::unique_ptr<ByteSource> file, std::string name)
      : file_(std::move(file)),
        name_(std::move(name)),
        block_(kCompressedBlockBytes),
        stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostZstdWindowLog);
  }

  std::size_t read(char* to, std::size_t most) override;
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  void decompress_some(ZSTD_outBuffer& output);
  std::string place() const {
    return std::string(" at byte ") +
           std::to_string(file_->file_bytes() - (input_.size - input_.pos)) + " of the file";
  }
  [[noreturn]] void refuse(std::size_t code) const;

  std::unique_ptr<ByteSource> file_;
  std::string name_;
  std::vector<char> block_;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  ZSTD_inBuffer input_ = {nullptr, 0, 0};
  bool in_frame_ = false;  // bytes are missing, or wait inside the decompressor
  bool may_hold_output_ = false;
};

void ZstdBytes::refuse(std::size_t code) const {
  const ZSTD_ErrorCode kind = ZSTD_getErrorCode(code);
  if (kind == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (kind == ZSTD_error_frameParameter_windowTooLarge) {
    throw CorpusError(name_ + ": the zstd data asks for a window of more than " +
                      std::to_string(1 << (kMostZstdWindowLog - 20)) + " MiB" + place() +
                      ": compress it again without --long or --ultra");
  }
  throw CorpusError(name_ + ": the zstd data is damaged (" + ZSTD_getErrorName(code) + ")" +
                    place());
}

void ZstdBytes::decompress_some(ZSTD_outBuffer& output) {
  const std::size_t result = ZSTD_decompressStream(stream_.get(), &output, &input_);
  if (ZSTD_isError(result)) refuse(result);
  in_frame_ = result != 0;
  may_hold_output_ = in_frame_ && output.pos == output.size;
}

std::size_t ZstdBytes::read(char* to, std::size_t most) {
  ZSTD_outBuffer output = {to, most, 0};
  while (output.pos == 0) {
    if (input_.pos == input_.size && !may_hold_output_) {
      input_ = {block_.data(), file_->read(block_.data(), block_.size()), 0};
      if (input_.size == 0) {
        if (in_frame_) throw CorpusError(name_ + ": the zstd data ends too early," + place());
        return 0;
      }
    }
    decompress_some(output);
  }
  return output.pos;
}

}  // namespace

std::unique_ptr<ByteSource> decompress_zstd(std::unique_ptr<ByteSource> file, std::string name) {
  return std::make_unique<ZstdBytes>(std::move(file), std::move(name));
}

}  // namespace tupelo

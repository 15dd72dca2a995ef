#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "data/errors.h"
#include "data/input/decompression.h"

namespace tupelo {
namespace {

constexpr int kGzipOnly = 15 + 16;  // largest window; zlib's flag for the gzip wrapper

class GzipBytes : public ByteSource {
 public:
  GzipBytes(std::unique_ptr<ByteSource> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), block_(kCompressedBlockBytes) {
    if (::inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipBytes() override { ::inflateEnd(&stream_); }

  std::size_t read(char* to, std::size_t most) override;
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  bool fill();
  bool begin_member();
  void inflate_some();
  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(name_ + ": the gzip data " + what + " at byte " +
                      std::to_string(file_->file_bytes() - stream_.avail_in) + " of the file");
  }

  std::unique_ptr<ByteSource> file_;
  std::string name_;
  std::vector<char> block_;
  z_stream stream_ = {};
  bool in_member_ = true;
};

// More input when there is none left; false at the end of the file.
bool GzipBytes::fill() {
  if (stream_.avail_in > 0) return true;
  const std::size_t got = file_->read(block_.data(), block_.size());
  stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
  stream_.avail_in = static_cast<uInt>(got);
  return got > 0;
}

// Between members; zeros there are what tapes and block devices leave behind the last one.
bool GzipBytes::begin_member() {
  while (fill()) {
    if (*stream_.next_in != 0) {
      if (::inflateReset(&stream_) != Z_OK) refuse("cannot go on");
      in_member_ = true;
      return true;
    }
    ++stream_.next_in;
    --stream_.avail_in;
  }
  return false;
}

void GzipBytes::inflate_some() {
  if (!fill()) refuse("ends too early,");
  const int result = ::inflate(&stream_, Z_NO_FLUSH);
  if (result == Z_STREAM_END) {
    in_member_ = false;
  } else if (result == Z_MEM_ERROR) {
    throw std::bad_alloc();
  } else if (result != Z_OK && result != Z_BUF_ERROR) {
    refuse(std::string("is damaged (") + (stream_.msg != nullptr ? stream_.msg : "unknown") + ")");
  }
}

std::size_t GzipBytes::read(char* to, std::size_t most) {
  stream_.next_out = reinterpret_cast<Bytef*>(to);
  stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, 1u << 30));
  const uInt room = stream_.avail_out;
  while (stream_.avail_out == room) {
    if (!in_member_ && !begin_member()) return 0;
    inflate_some();
  }
  return room - stream_.avail_out;
}

}  // namespace

std::unique_ptr<ByteSource> decompress_gzip(std::unique_ptr<ByteSource> file, std::string name) {
  return std::make_unique<GzipBytes>(std::move(file), std::move(name));
}

}  // namespace tupelo

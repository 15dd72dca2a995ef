#include "data/archive/zstd_file.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus_files.h"

namespace tupelo {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

std::size_t check(std::size_t result) {
  if (ZSTD_isError(result)) {
    throw std::runtime_error(std::string("zstd could not compress: ") + ZSTD_getErrorName(result));
  }
  return result;
}

using Context = std::unique_ptr<ZSTD_CCtx, FreeContext>;

Context context_for(std::uint64_t content_bytes, int level) {
  Context context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  check(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level));
  check(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  check(ZSTD_CCtx_setPledgedSrcSize(context.get(), content_bytes));
  return context;
}

}  // namespace

ZstdFile write_zstd_file(const std::filesystem::path& file, const RegularFile& content, int level) {
  const Context context = context_for(content.bytes(), level);
  NewCorpusFile opened(file);
  ContentDigest digest, content_digest;
  ZstdFile written;
  std::vector<std::byte> read(ZSTD_CStreamInSize()), block(ZSTD_CStreamOutSize());
  std::uint64_t offset = 0;
  for (bool is_last = false; !is_last;) {
    const auto bytes = std::min<std::uint64_t>(read.size(), content.bytes() - offset);
    content.read(offset, std::span(read).first(bytes));
    content_digest.update(read.data(), bytes);
    offset += bytes;
    is_last = offset == content.bytes();
    ZSTD_inBuffer input = {read.data(), bytes, 0};
    for (std::size_t left = 1; is_last ? left > 0 : input.pos < input.size;) {
      ZSTD_outBuffer output = {block.data(), block.size(), 0};
      left = check(ZSTD_compressStream2(context.get(), &output, &input,
                                        is_last ? ZSTD_e_end : ZSTD_e_continue));
      digest.update(block.data(), output.pos);
      opened.append(std::span(block).first(output.pos));
      written.bytes += output.pos;
    }
  }
  opened.sync();
  written.sha256 = digest.finish_hex();
  written.content_sha256 = content_digest.finish_hex();
  return written;
}

}  // namespace tupelo

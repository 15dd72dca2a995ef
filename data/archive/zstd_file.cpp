#include "data/archive/zstd_file.h"

#include <zstd.h>

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

}  // namespace

ZstdFile write_zstd_file(const std::filesystem::path& file, std::span<const std::byte> content,
                         int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  check(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level));
  check(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  check(ZSTD_CCtx_setPledgedSrcSize(context.get(), content.size()));
  NewCorpusFile opened(file);
  ContentDigest digest;
  ZstdFile written;
  std::vector<std::byte> block(ZSTD_CStreamOutSize());
  ZSTD_inBuffer input = {content.data(), content.size(), 0};
  for (std::size_t left = 1; left > 0;) {
    ZSTD_outBuffer output = {block.data(), block.size(), 0};
    left = check(ZSTD_compressStream2(context.get(), &output, &input, ZSTD_e_end));
    digest.update(block.data(), output.pos);
    opened.append(std::span(block).first(output.pos));
    written.bytes += output.pos;
  }
  opened.sync();
  written.sha256 = digest.finish_hex();
  return written;
}

}  // namespace tupelo

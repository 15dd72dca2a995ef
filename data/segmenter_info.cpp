#include "data/segmenter_info.h"

namespace tupelo {

SegmenterInfo segmenter_info(const TextRules& rules) {
  SegmenterInfo info{.kind = rules.word_kind(), .fingerprint = {}, .files = {}};
  if (rules.segmenter() == nullptr) return info;
  info.fingerprint = rules.segmenter()->fingerprint();
  for (const DictionaryFile& file : rules.segmenter()->files()) {
    // Wherever it lies, so that equal corpora have equal bytes.
    const bool is_jieba = file.sha256 == kJiebaSha256;
    info.files.push_back({is_jieba ? "jieba 0.42.1" : file.file.string(), file.sha256});
  }
  return info;
}

}  // namespace tupelo

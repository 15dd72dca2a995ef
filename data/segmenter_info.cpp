#include "data/segmenter_info.h"

namespace tupelo {

SegmenterInfo segmenter_info(const TextRules& rules) {
  SegmenterInfo info{.kind = rules.word_kind(), .fingerprint = {}, .files = {}};
  if (rules.segmenter() == nullptr) return info;
  info.fingerprint = rules.segmenter()->fingerprint();
  for (const DictionaryFile& file : rules.segmenter()->files()) {
    info.files.push_back({file.file.string(), file.sha256});
  }
  return info;
}

}  // namespace tupelo

// What a corpus says about where its words come from.
#pragma once

#include "data/corpus.h"
#include "data/segmenter/text_rules.h"

namespace tupelo {

SegmenterInfo segmenter_info(const TextRules& rules);

}  // namespace tupelo

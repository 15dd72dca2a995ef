// Small input encodings and batches for them.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/position/input_encoding.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"

namespace tupelo {

inline constexpr std::int64_t kVocabulary = 13, kHidden = 8, kMaxPositions = 9, kPad = 1;

inline InputContext small_context() {
  InputContext context;
  context.vocab_size = kVocabulary;
  context.hidden_size = kHidden;
  context.max_positions = kMaxPositions;
  context.pad_id = kPad;
  return context;
}

inline std::shared_ptr<InputEncoding> make_input(const std::string& text,
                                                 torch::ScalarType type = torch::kFloat64,
                                                 const InputContext& around = small_context()) {
  const auto encoding = InputPosition::parse(text).make(around);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(type);
  perturb(*encoding, 0.2);
  return encoding;
}

// Embeddings and ids of a batch; ids avoid the padding's.
struct InputBatch {
  InputBatch(std::int64_t rows, std::int64_t tokens)
      : embeddings(torch::randn({rows, tokens, kHidden}, torch::kFloat64)),
        ids(torch::randint(2, kVocabulary, {rows, tokens}, torch::kInt64)) {}

  torch::Tensor embeddings, ids;

  torch::Tensor through(InputEncoding& encoding, const TokenLayout& layout) const {
    return encoding.forward(embeddings, {ids, layout});
  }
  torch::Tensor through(InputEncoding& encoding) const {
    return through(encoding, TokenLayout::rows(ids, {}));
  }
  // Columns first .. first + count of one row, as a batch of their own.
  InputBatch part(std::int64_t row, std::int64_t first, std::int64_t count) const {
    InputBatch part = *this;
    part.embeddings = embeddings.narrow(0, row, 1).narrow(1, first, count);
    part.ids = ids.narrow(0, row, 1).narrow(1, first, count);
    return part;
  }
};

}  // namespace tupelo

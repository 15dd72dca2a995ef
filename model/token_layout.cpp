#include "model/token_layout.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tupelo {
namespace {

using torch::Tensor;

struct Document {
  std::int64_t first;  // in the flattened batch
  std::int64_t tokens;
};

// Runs of equal numbers >= 0 within each row.
std::vector<Document> documents_of(const Tensor& numbers) {
  const std::int64_t rows = numbers.size(0), tokens = numbers.size(1);
  const auto at = numbers.accessor<std::int64_t, 2>();
  std::vector<Document> documents;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < tokens; ++column) {
      const std::int64_t number = at[row][column];
      if (number < 0) {
        continue;
      }
      if (column == 0 || at[row][column - 1] != number) {
        documents.push_back({row * tokens + column, 0});
      }
      ++documents.back().tokens;
    }
  }
  return documents;
}

// Documents by the power of two that their length rounds up to: no batch is padded to more than
// twice its tokens.
std::vector<std::vector<Document>> by_length(const std::vector<Document>& documents) {
  std::map<std::int64_t, std::vector<Document>> classes;
  for (const Document& document : documents) {
    std::int64_t power = 1;
    while (power < document.tokens) {
      power *= 2;
    }
    classes[power].push_back(document);
  }
  std::vector<std::vector<Document>> result;
  for (auto& [power, members] : classes) {
    result.push_back(std::move(members));
  }
  return result;
}

// In page-locked memory first, from which a device copies while the host goes on.
Tensor moved(const Tensor& tensor, torch::Device device) {
  return device.is_cuda() ? tensor.pin_memory().to(device, /*non_blocking=*/true) : tensor;
}

// On the host.
SequenceBatch sequence_batch(const std::vector<Document>& documents) {
  SequenceBatch batch;
  bool padding = false;
  for (const Document& document : documents) {
    batch.longest = std::max(batch.longest, document.tokens);
  }
  const auto count = static_cast<std::int64_t>(documents.size());
  Tensor tokens = at::empty({count, batch.longest}, at::kLong);
  Tensor admissible = at::empty({count, batch.longest}, at::kBool);
  auto token = tokens.accessor<std::int64_t, 2>();
  auto real = admissible.accessor<bool, 2>();
  for (std::int64_t i = 0; i < count; ++i) {
    const Document& document = documents[static_cast<std::size_t>(i)];
    for (std::int64_t t = 0; t < batch.longest; ++t) {
      real[i][t] = t < document.tokens;
      token[i][t] = document.first + std::min(t, document.tokens - 1);
      padding = padding || !real[i][t];
    }
  }
  batch.tokens = tokens;
  batch.admissible = padding ? admissible : Tensor();
  return batch;
}

// [C*B,T,...] -> [C*S,t,...]
Tensor cut(const Tensor& input, const SequenceBatch& batch, std::int64_t batch_tokens) {
  const std::int64_t parts = input.size(0) * input.size(1) / batch_tokens;
  std::vector<std::int64_t> rest(input.sizes().begin() + 2, input.sizes().end());
  std::vector<std::int64_t> flat = {parts, batch_tokens};
  std::vector<std::int64_t> shaped = {parts * batch.tokens.size(0), batch.longest};
  flat.insert(flat.end(), rest.begin(), rest.end());
  shaped.insert(shaped.end(), rest.begin(), rest.end());
  return input.reshape(flat).index_select(1, batch.tokens.flatten()).view(shaped);
}

}  // namespace

TokenLayout TokenLayout::rows(const Tensor& input_ids, const Tensor& attention_mask) {
  TokenLayout layout(input_ids.size(1));
  layout.real_ = attention_mask.defined() ? attention_mask.to(torch::kBool) : attention_mask;
  SequenceBatch batch;
  batch.admissible = layout.real_;
  batch.longest = layout.longest_;
  layout.batches_.push_back(batch);
  return layout;
}

TokenLayout TokenLayout::packed(const Tensor& documents, torch::Device device) {
  TORCH_CHECK(documents.dim() == 2, "documents must be [B,T]");
  TokenLayout layout(0);
  const Tensor numbers = documents.to(at::kCPU, at::kLong).contiguous();
  layout.real_ = moved(numbers.ge(0), device);
  std::int64_t first_kept = 0;
  Tensor positions = at::zeros(numbers.sizes(), at::kLong);
  std::vector<Tensor> kept, place;
  for (const auto& members : by_length(documents_of(numbers))) {
    SequenceBatch batch = sequence_batch(members);
    layout.longest_ = std::max(layout.longest_, batch.longest);
    const std::int64_t slots = batch.tokens.numel();
    Tensor inside = at::arange(slots, at::kLong);
    Tensor target = batch.tokens.flatten();
    if (batch.admissible.defined()) {
      const Tensor real = batch.admissible.flatten();
      inside = inside.masked_select(real);
      target = target.masked_select(real);
    }
    kept.push_back(inside + first_kept);
    place.push_back(target);
    positions.view(-1).index_put_({target}, inside.remainder(batch.longest));
    first_kept += slots;
    batch.tokens = moved(batch.tokens, device);
    if (batch.admissible.defined()) batch.admissible = moved(batch.admissible, device);
    layout.batches_.push_back(batch);
  }
  TORCH_CHECK(!kept.empty(), "a packed batch without any document");
  layout.kept_ = moved(at::cat(kept), device);
  layout.place_ = moved(at::cat(place), device);
  layout.positions_ = moved(positions, device);
  return layout;
}

Tensor TokenLayout::over_sequences(const std::vector<Tensor>& inputs, const Map& map) const {
  if (!place_.defined()) {
    return map(inputs, batches_.front());
  }
  const std::int64_t batch_tokens = real_.numel();
  const Tensor& like = inputs.front();
  const std::int64_t parts = like.size(0) * like.size(1) / batch_tokens;
  std::vector<Tensor> results;
  for (const SequenceBatch& batch : batches_) {
    std::vector<Tensor> sequences;
    for (const Tensor& input : inputs) {
      sequences.push_back(cut(input, batch, batch_tokens));
    }
    results.push_back(map(sequences, batch).flatten(0, 1).unflatten(0, {parts, -1}));
  }
  const Tensor together = at::cat(results, 1).index_select(1, kept_);  // [C,K,...]
  std::vector<std::int64_t> shape = together.sizes().vec();
  shape[1] = batch_tokens;
  const Tensor flat = at::zeros(shape, together.options()).index_copy(1, place_, together);
  std::vector<std::int64_t> result_shape = {parts * real_.size(0), real_.size(1)};
  result_shape.insert(result_shape.end(), shape.begin() + 2, shape.end());
  return flat.view(result_shape);
}

}  // namespace tupelo

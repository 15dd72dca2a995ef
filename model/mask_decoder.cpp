#include "model/mask_decoder.h"

#include <stdexcept>
#include <vector>

#include "model/position/encoding_call.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/spelling.h"

namespace tupelo {

MaskDecoder::MaskDecoder(std::int64_t steps, std::int64_t max_positions, std::int64_t hidden_size,
                         const LengthExtension& extension)
    : steps_(steps),
      extension_(extension),
      positions_(register_module("position_embeddings",
                                 std::make_shared<Embedding>(max_positions, hidden_size))) {}

std::shared_ptr<MaskDecoder> MaskDecoder::make(const std::string& text, std::int64_t max_positions,
                                               std::int64_t hidden_size,
                                               const LengthExtension& extension) {
  const auto reject = [&](const std::string& what) {
    throw std::invalid_argument("model: mask-decoder=" + text + " " + what);
  };
  const EncodingCall call = parse_encoding_call(text, reject);
  if (call.name == "none") {
    return nullptr;
  }
  if (call.name != "emd") {
    reject("is not valid" + spelling_hint(call.name, {"none", "emd"}) +
           "; valid: none, emd, emd(steps=2)");
  }
  const std::vector<PositionOptionKind> kinds = {
      {"steps", "2", {}, "how often the last layer is applied", 1, false, /*maximum=*/64}};
  const OptionReader options("emd", kinds, call.options);
  return std::make_shared<MaskDecoder>(options.integer("steps"), max_positions, hidden_size,
                                       extension);
}

void MaskDecoder::initialize(double standard_deviation, const at::Generator& generator) {
  positions_->initialize(standard_deviation, generator);
}

std::int64_t MaskDecoder::longest() const {
  return extended_length(positions_->weight.size(0), extension_);
}

torch::Tensor MaskDecoder::queries(const torch::Tensor& hidden, const TokenLayout& layout) const {
  check_covered("emd", layout.longest(), longest());
  const torch::Tensor table = extended_table(positions_->weight, 0, layout.longest(), extension_);
  return hidden + (layout.positions().defined() ? at::embedding(table, layout.positions()) : table);
}

}  // namespace tupelo

#include "model/position/content_rotation.h"

namespace tupelo {

PositionOptionKind ContentRotation::option() {
  return {"content",
          "plain",
          {"plain", "rope"},
          "whether queries and keys of contents are rotated as in rope"};
}

ContentRotation::ContentRotation(torch::nn::Module& owner, const PositionContext& context,
                                 const OptionReader& options) {
  if (options.text("content") == "rope") {
    // As a module it follows its owner from device to device.
    rope_ = owner.register_module("rope", make_position_encoding("rope", context, {}));
  }
}

void ContentRotation::add_to(AttentionTerms& terms, std::int64_t tokens) const {
  if (!rope_) {
    return;
  }
  const AttentionTerms rotated = rope_->terms(tokens);
  terms.rotation_cos = rotated.rotation_cos;
  terms.rotation_sin = rotated.rotation_sin;
  terms.rotation_layout = rotated.rotation_layout;
}

}  // namespace tupelo

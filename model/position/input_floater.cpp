// FLOATER at the input: the path of a flow, a vector per position. Paper: floater_flow.h.
#include "model/position/floater_flow.h"
#include "model/position/input_table.h"
#include "model/position/kinds.h"
#include "model/token_layout.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> input_floater_options() {
  std::vector<PositionOptionKind> options = FlowSettings::options();
  options.push_back(InputTable::merge_option());
  return options;
}

// Parameters: start [H], where the path begins, and flow.*.
class FloaterInput : public InputTable {
 public:
  FloaterInput(const InputContext& context, const OptionReader& reader)
      : InputTable(merge_of(reader)),
        max_positions_(context.max_positions),
        flow_(register_module(
            "flow", std::make_shared<FloaterFlow>(context.hidden_size, FlowSettings(reader)))),
        start_(register_parameter("start", torch::zeros({context.hidden_size}))) {}

  void initialize(double, const at::Generator& generator) override {
    flow_->initialize(generator);
    fill_normal(start_, 1.0, generator);
  }

  std::vector<std::string> undecayed_parameters() const override {
    std::vector<std::string> names = {"start"};
    for (const std::string& name : FloaterFlow::bias_names()) {
      names.push_back("flow." + name);
    }
    return names;
  }

 protected:
  Tensor vectors(const InputTokens& tokens, const Tensor&) override {
    return rows_of_tokens(flow_->refreshed_path(start_, tokens.layout.longest(), max_positions_),
                          tokens);
  }

 private:
  std::int64_t max_positions_;
  std::shared_ptr<FloaterFlow> flow_;
  Tensor start_;
};

}  // namespace

InputEncodingKind floater_input_kind() {
  return {"floater",
          "FLOATER: the path of a learned flow",
          input_floater_options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            return std::make_shared<FloaterInput>(
                context, OptionReader(input_owner("floater"), input_floater_options(), given));
          }};
}

}  // namespace tupelo

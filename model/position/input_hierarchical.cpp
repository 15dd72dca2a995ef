// A few trained vectors that tell the square of their number of positions apart (Su, hierarchical
// decomposition of position encodings, 2020).
#include <stdexcept>

#include "model/position/input_learned.h"
#include "model/position/kinds.h"

namespace tupelo {
namespace {

std::vector<PositionOptionKind> input_hierarchical_options() {
  return {{"base", "smallest", {}, "trained vectors; their square is the longest sequence", 1},
          {"alpha",
           "0.4",
           {},
           "weight of the coarse position",
           0,
           true,
           1,
           "a number > 0 and < 1 other than 0.5"},
          InputTable::merge_option()};
}

std::int64_t smallest_base(std::int64_t positions) {
  std::int64_t base = 1;
  while (base * base < positions) {
    ++base;
  }
  return base;
}

// Another number of trained vectors would divide positions otherwise.
class HierarchicalInput : public LearnedInput {
 public:
  HierarchicalInput(const InputContext& context, std::int64_t base,
                    const LengthExtension& extension, InputMerge merge)
      : LearnedInput("learned-hier", context, base, extension, merge), base_(base) {}

  std::vector<ResizableTable> resizable_tables() const override { return {}; }
  PositionOptions pinned_options() const override { return {{"base", std::to_string(base_)}}; }

 private:
  std::int64_t base_;
};

std::shared_ptr<InputEncoding> make(const InputContext& context, const PositionOptions& given) {
  const std::string owner = input_owner("learned-hier");
  const OptionReader reader(owner, input_hierarchical_options(), given);
  const std::int64_t base = reader.integer("base", smallest_base(context.max_positions));
  if (base < smallest_base(context.max_positions)) {
    throw std::invalid_argument("position encoding " + owner + ": base=" + std::to_string(base) +
                                " reaches " + std::to_string(base * base) + " of the " +
                                std::to_string(context.max_positions) +
                                " positions that the model covers");
  }
  LengthExtension extension;
  extension.tables = TableExtension::kHierarchical;
  extension.hierarchical_alpha = reader.number("alpha");
  check_hierarchical_alpha("position encoding " + owner, extension.hierarchical_alpha);
  return std::make_shared<HierarchicalInput>(context, base, extension,
                                             InputTable::merge_of(reader));
}

}  // namespace

InputEncodingKind hierarchical_input_kind() {
  return {"learned-hier",
          "trained vectors, combined in pairs to reach the square of their number",
          input_hierarchical_options(),
          {},
          make};
}

}  // namespace tupelo

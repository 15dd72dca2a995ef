// TUPE-R: TUPE-A plus T5's relative bias (same paper; order of reset and bias as `theta` says).
#include <utility>

#include "model/position/kinds.h"
#include "model/position/relative_line.h"
#include "model/position/t5_buckets.h"
#include "model/position/toeplitz.h"
#include "model/position/tupe.h"

namespace tupelo {
namespace {

std::vector<PositionOptionKind> tupe_relative_options() {
  std::vector<PositionOptionKind> options = {
      Tupe::theta_option(),
      {"rel_bins", "32", {}, "buckets of the relative bias", 4, false, 1 << 20, kBucketCounts},
      {"max_distance", "128", {}, "distances from here on share a bucket", 2}};
  for (PositionOptionKind& option : Tupe::last_options()) {
    options.push_back(std::move(option));
  }
  return options;
}

class TupeRelative : public Tupe {
 public:
  TupeRelative(const PositionContext& context, const OptionReader& reader)
      : Tupe("tupe-r", context, reader),
        buckets_(reader.integer("rel_bins")),
        line_(buckets_, reader.integer("max_distance")) {
    const bool own_buckets_for_cls = theta() == TupeTheta::kOfficial;
    relative_bias_ =
        register_module("relative_attention_bias",
                        std::make_shared<Embedding>(buckets_ + own_buckets_for_cls, context.heads));
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    Tupe::initialize(standard_deviation, generator);
    relative_bias_->initialize(standard_deviation, generator);
  }

  std::vector<std::string> undecayed_parameters() const override {
    std::vector<std::string> names = Tupe::undecayed_parameters();
    names.emplace_back("relative_attention_bias.weight");
    return names;
  }

  AttentionTerms terms(std::int64_t tokens) override {
    const torch::Tensor table = gated_table();
    const Projections positions = with_cls_buckets(project(tokens), table);
    AttentionTerms terms = terms_without_positions(tokens);
    terms.bias = untied(correlation(positions, toeplitz(line_(table, tokens))), positions);
    return terms;
  }

  // What the scores have in [CLS]'s row and column is in the correlation.
  PositionPicture picture(std::int64_t tokens) override {
    const torch::Tensor table = gated_table();
    const Projections positions = with_cls_buckets(project(tokens), table);
    return {untied(correlation(positions, {}), positions), line_(table, tokens)};
  }

 private:
  torch::Tensor gated_table() const {
    const torch::Tensor table = at_least_float32(relative_bias_->weight), factors = gate();
    return factors.defined() ? table * factors : table;
  }

  // The released code adds the relative bias after the reset, with buckets of their own for [CLS]:
  // from it the otherwise unused middle one, to it the last. That is resetting to sums.
  Projections with_cls_buckets(Projections positions, const torch::Tensor& table) const {
    if (theta() == TupeTheta::kOfficial) {
      positions.from_cls = positions.from_cls + table[buckets_ / 2];
      positions.to_cls = positions.to_cls + table[buckets_];
    }
    return positions;
  }

  std::int64_t buckets_;
  T5RelativeLine line_;
  std::shared_ptr<Embedding> relative_bias_;
};

}  // namespace

PositionEncodingKind tupe_relative_kind() {
  return {"tupe-r",
          "TUPE-R: TUPE-A and a relative bias in T5's logarithmic buckets",
          tupe_relative_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<TupeRelative>(
                context, OptionReader("tupe-r", tupe_relative_options(), given));
          }};
}

}  // namespace tupelo

// What recompute policies save and cost: bytes that a training step keeps for backward, predicted
// and counted, its peak, and its time relative to the same model under the first policy.
#include <torch/types.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/model_arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "model/activation_probe.h"
#include "model/allocation_meter.h"
#include "model/position/encoding_call.h"
#include "model/roberta.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Variant {
  std::string name;
  RecomputePolicy policy;  // chosen, when the name is a budget
  ActivationForecast predicted;
  std::int64_t kept_bytes = 0, peak_bytes = 0;
  Samples step_seconds = {};
};

class Step {
 public:
  explicit Step(const Arguments& arguments) {
    ModelOptions options = model_size(arguments);
    options.input_position = arguments.text("--input");
    options.position = arguments.text("--position");
    model_ = std::make_shared<RobertaForMaskedLm>(options);
    model_->initialize(1);
    model_->to(arguments.text("--type") == "bfloat16" ? torch::kBFloat16 : torch::kFloat32);
    torch::manual_seed(1);
    const std::int64_t rows = arguments.number("--rows"), tokens = options.max_positions;
    ids_ = torch::randint(5, options.vocab_size, {rows, tokens}, torch::kInt64);
    masked_ = torch::arange(0, rows * tokens, 7, torch::kInt64);
    labels_ = ids_.flatten().index_select(0, masked_);
    shape_.rows = rows;
    shape_.tokens = tokens;
    shape_.masked = labels_.size(0);
  }

  ActivationProfile profile() { return profile_activations(*model_, shape_); }
  std::int64_t layers() const { return model_->options().layers; }

  void run(const RecomputePolicy& policy) {
    model_->recompute(policy);
    forward().backward();
  }

  // Gradients are there already, as in every step but the first.
  void count(Variant& variant) {
    run(variant.policy);
    AllocationMeter meter;
    torch::Tensor loss = forward();
    variant.kept_bytes = meter.live_bytes();
    loss.backward();
    variant.peak_bytes = meter.peak_bytes();
  }

 private:
  torch::Tensor forward() {
    return model_->masked_lm_loss(ids_, torch::Tensor(), masked_, labels_).loss_sum;
  }

  std::shared_ptr<RobertaForMaskedLm> model_;
  torch::Tensor ids_, masked_, labels_;
  ActivationShape shape_;
};

std::vector<Variant> variants_of(const std::string& texts, Step& step) {
  const ActivationProfile profile = step.profile();
  std::vector<Variant> variants;
  for (const std::string& text : split_outside_parentheses(texts, ';')) {
    Variant variant{text, parse_recompute(text, step.layers(), "--policies"), {}};
    if (variant.policy.budget_bytes) {
      variant.policy.layers = choose_recompute(profile, *variant.policy.budget_bytes);
      variant.policy.budget_bytes.reset();
      variant.name += " = " + variant.policy.to_string();
    }
    variant.predicted = forecast(profile, variant.policy.layers);
    variants.push_back(std::move(variant));
  }
  return variants;
}

void measure(const Arguments& arguments, Step& step, std::vector<Variant>& variants) {
  for (Variant& variant : variants) step.count(variant);
  const auto rounds = static_cast<std::size_t>(arguments.number("--rounds"));
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Variant& variant = variants[(round + i) % variants.size()];
      const auto start = Clock::now();
      step.run(variant.policy);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) variant.step_seconds.values.push_back(seconds);
    }
  }
}

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void print(const Arguments& arguments, const std::vector<Variant>& variants) {
  constexpr double kMegabyte = 1e6;
  const Variant& base = variants.front();
  if (!arguments.json()) {
    std::printf("%s\n%-34s %12s %12s %7s %7s %12s %12s %7s %9s %7s %7s\n", arguments.list().c_str(),
                "", "kept MB", "predicted", "ratio", "of all", "peak MB", "predicted", "ratio",
                "min s", "min", "median");
  }
  for (const Variant& variant : variants) {
    const ActivationForecast& predicted = variant.predicted;
    std::printf(
        arguments.json()
            ? "{\"bench\": \"memory\", \"policy\": \"%s\", \"kept_megabytes\": %.3f, "
              "\"predicted_kept_megabytes\": %.3f, \"kept_ratio\": %.5f, \"kept_share\": %.4f, "
              "\"peak_megabytes\": %.3f, \"predicted_peak_megabytes\": %.3f, \"peak_ratio\": %.5f, "
              "\"min_seconds\": %.6f, \"min_ratio\": %.4f, \"median_ratio\": %.4f}\n"
            : "%-34s %12.3f %12.3f %7.4f %7.3f %12.3f %12.3f %7.4f %9.4f %7.3f %7.3f\n",
        variant.name.c_str(), static_cast<double>(variant.kept_bytes) / kMegabyte,
        static_cast<double>(predicted.kept_bytes) / kMegabyte,
        ratio(predicted.kept_bytes, variant.kept_bytes), ratio(variant.kept_bytes, base.kept_bytes),
        static_cast<double>(variant.peak_bytes) / kMegabyte,
        static_cast<double>(predicted.peak_bytes) / kMegabyte,
        ratio(predicted.peak_bytes, variant.peak_bytes), variant.step_seconds.min(),
        variant.step_seconds.min() / base.step_seconds.min(),
        variant.step_seconds.median() / base.step_seconds.median());
  }
}

void run(const Arguments& arguments) {
  if (arguments.text("--type") != "float32" && arguments.text("--type") != "bfloat16") {
    throw std::invalid_argument("--type is float32 or bfloat16");
  }
  Step step(arguments);
  std::vector<Variant> variants = variants_of(arguments.text("--policies"), step);
  measure(arguments, step, variants);
  print(arguments, variants);
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("memory", argc, argv,
                                  {{"--layers", "6"},
                                   {"--hidden", "256"},
                                   {"--heads", "4"},
                                   {"--vocab", "4096"},
                                   {"--tokens", "256"},
                                   {"--rows", "4"},
                                   {"--dropout", "0.1"},
                                   {"--input", "learned"},
                                   {"--position", "all:none"},
                                   {"--type", "float32"},
                                   {"--rounds", "9"},
                                   {"--policies", "none;ffn;attention;every-2;full"}},
                                  tupelo::bench::run);
}

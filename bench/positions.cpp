// What position encodings cost: time of a training step (forward and backward) and its peak memory,
// relative to the same model with learned positions at the input.
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/model_arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "model/position/encoding_call.h"
#include "model/position/input_encoding.h"
#include "model/roberta.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Variant {
  std::string name;
  std::string input_position;
  std::string position;
  Samples step_seconds = {};
  double megabytes = 0;  // peak of a step beyond what was there before
  std::int64_t parameters = 0;
};

// "learned", "sinusoidal", ... at the input; everything else in all layers, or a plan as it is.
Variant variant_of(const std::string& text) {
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    if (text == kind.name + "@input" || text.rfind(kind.name + "@input(", 0) == 0) {
      const std::string options = text.substr(kind.name.size() + 6);
      return {text, kind.name + options, "all:none"};
    }
  }
  const bool is_plan = text.find(':') != std::string::npos;
  return {text, "none", is_plan ? text : "all:" + text};
}

class Step {
 public:
  Step(const Arguments& arguments, const Variant& variant)
      : rows_(arguments.number("--rows")), tokens_(arguments.number("--tokens")) {
    ModelOptions options = model_size(arguments);
    options.input_position = variant.input_position;
    options.position = variant.position;
    options.allow_no_position = true;
    options.recompute = arguments.text("--recompute");
    model_ = std::make_shared<RobertaForMaskedLm>(options);
    model_->initialize(1);
    torch::manual_seed(1);
    ids_ = torch::randint(5, options.vocab_size, {rows_, tokens_}, torch::kInt64);
    masked_ = torch::arange(0, rows_ * tokens_, 7, torch::kInt64);
    labels_ = ids_.flatten().index_select(0, masked_);
  }

  void run() {
    for (auto& parameter : model_->parameters()) parameter.mutable_grad() = torch::Tensor();
    model_->masked_lm_loss(ids_, torch::Tensor(), masked_, labels_).loss_sum.backward();
  }

  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const auto& parameter : model_->parameters()) count += parameter.numel();
    return count;
  }

 private:
  std::int64_t rows_, tokens_;
  std::shared_ptr<RobertaForMaskedLm> model_;
  torch::Tensor ids_, masked_, labels_;
};

// "VmHWM" or "VmRSS" of this process, in megabytes.
double memory_megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024.0;
  }
  return 0;
}

// In a process of its own, so that what an earlier variant freed is not counted as free.
double peak_megabytes(const Arguments& arguments, const Variant& variant) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    Step step(arguments, variant);
    const double before = memory_megabytes("VmRSS");
    step.run();
    const double peak = memory_megabytes("VmHWM") - before;
    const bool written = write(ends[1], &peak, sizeof peak) == sizeof peak;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  double peak = 0;
  const bool complete = read(ends[0], &peak, sizeof peak) == sizeof peak;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!complete) throw std::runtime_error("measuring the memory of " + variant.name + " failed");
  return peak;
}

void measure(const Arguments& arguments, std::vector<Variant>& variants) {
  for (Variant& variant : variants) variant.megabytes = peak_megabytes(arguments, variant);
  std::vector<std::unique_ptr<Step>> steps;
  for (Variant& variant : variants) {
    steps.push_back(std::make_unique<Step>(arguments, variant));
    variant.parameters = steps.back()->parameters();
  }
  const auto rounds = static_cast<std::size_t>(arguments.number("--rounds"));
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::size_t which = (round + i) % variants.size();
      const auto start = Clock::now();
      steps[which]->run();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) variants[which].step_seconds.values.push_back(seconds);
    }
  }
}

void print(const Arguments& arguments, const std::vector<Variant>& variants) {
  const Variant& base = variants.front();
  if (!arguments.json()) {
    std::printf("%s\n%-44s %9s %9s %7s %7s %9s %11s\n", arguments.list().c_str(), "", "min s",
                "median s", "min", "median", "peak MB", "parameters");
  }
  for (const Variant& variant : variants) {
    const double least = variant.step_seconds.min() / base.step_seconds.min();
    const double median = variant.step_seconds.median() / base.step_seconds.median();
    std::printf(
        arguments.json() ? "{\"bench\": \"positions\", \"variant\": \"%s\", \"min_seconds\": %.6f, "
                           "\"median_seconds\": %.6f, \"min_ratio\": %.4f, \"median_ratio\": %.4f, "
                           "\"peak_megabytes\": %.1f, \"parameters\": %lld}\n"
                         : "%-44s %9.4f %9.4f %7.3f %7.3f %9.1f %+11lld\n",
        variant.name.c_str(), variant.step_seconds.min(), variant.step_seconds.median(), least,
        median, variant.megabytes, static_cast<long long>(variant.parameters - base.parameters));
  }
}

void run(const Arguments& arguments) {
  std::vector<Variant> variants;
  for (const std::string& text : split_outside_parentheses(arguments.text("--variants"), ';')) {
    variants.push_back(variant_of(text));
  }
  measure(arguments, variants);
  print(arguments, variants);
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench(
      "positions", argc, argv,
      {{"--layers", "4"},
       {"--hidden", "256"},
       {"--heads", "4"},
       {"--vocab", "4096"},
       {"--tokens", "256"},
       {"--rows", "4"},
       {"--dropout", "0"},
       {"--recompute", "none"},
       {"--rounds", "9"},
       {"--variants",
        "learned@input;none;sinusoidal@input;recursive@input;floater@input;conv@input;"
        "complex-order@input;complex-order@input(form=hermitian);"
        "complex-order@input(form=modulus);t5;alibi;rope;shaw;shaw(values=false);nezha;"
        "nezha(clip=256);xlnet;xlnet(r_dim=64);deberta;deberta-v2;floater;conv;tupe-a;"
        "tupe-a(fold=concat);tupe-r;tupe-r(content=rope);tupe-full;tupe-full(fold=concat);"
        "tupe-full(share=layer);0-1:none,2-3:tupe-r"}},
      tupelo::bench::run);
}

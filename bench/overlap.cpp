// What data parallelism costs a step, with and without overlap of communication and backward: the
// same work per rank, done by one rank alone, by all ranks each for itself, and by all ranks
// together.
#include <cstdio>
#include <stdexcept>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "distributed/backends.h"
#include "distributed/gradient_reducer.h"
#include "distributed/runtime.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

torch::ScalarType type_of(const std::string& name) {
  if (name != "float32" && name != "bfloat16") {
    throw std::invalid_argument("--type is float32 or bfloat16");
  }
  return name == "float32" ? torch::kFloat32 : torch::kBFloat16;
}

// A stack of square linear layers with gelu between, and a batch for it.
struct Stack {
  std::vector<torch::Tensor> parameters;
  torch::Tensor input;

  explicit Stack(const Arguments& arguments) {
    const auto width = arguments.number("--width");
    const auto type = type_of(arguments.text("--type"));
    torch::manual_seed(1);
    for (std::int64_t i = 0; i < arguments.number("--layers"); ++i) {
      const auto weight = torch::randn({width, width}) / std::sqrt(static_cast<double>(width));
      parameters.push_back(weight.to(type).requires_grad_(true));
      parameters.push_back(torch::zeros({width}, type).requires_grad_(true));
    }
    input = torch::randn({arguments.number("--rows"), width}).to(type);
  }

  torch::Tensor loss() const {
    auto hidden = input;
    for (std::size_t i = 0; i < parameters.size(); i += 2) {
      hidden = torch::gelu(torch::addmm(parameters[i + 1], hidden, parameters[i].t()));
    }
    return hidden.sum();
  }

  double megabytes() const {
    double bytes = 0;
    for (const auto& parameter : parameters) {
      bytes += 4 * static_cast<double>(parameter.numel());  // float32 whatever the parameters are
    }
    return bytes / 1e6;
  }
};

void step(const Stack& stack, GradientReducer& reducer, std::int64_t micro_batches, bool overlap) {
  reducer.zero();
  for (std::int64_t i = 1; i <= micro_batches; ++i) {
    reducer.overlap(overlap && i == micro_batches);
    stack.loss().backward();
  }
  reducer.finish();
}

enum class Who { kOneAlone, kAllForThemselves, kAllTogether };

struct Variant {
  const char* name;
  Who who;
  bool overlap;
  Samples step_seconds;     // of the slowest rank
  Samples exposed_seconds;  // mean over ranks
};

class Benchmark {
 public:
  Benchmark(const Runtime& runtime, const Arguments& arguments)
      : arguments_(arguments),
        stack_(arguments),
        stack_alone_(arguments),
        alone_(std::move(make_local_world(1).front())),
        ranks_(make_mpi_communicator(runtime)) {}

  void run() {
    const auto bucket_bytes = static_cast<std::size_t>(arguments_.number("--bucket-bytes"));
    // A parameter's gradient belongs to one reducer.
    GradientReducer solo(stack_alone_.parameters, *alone_, {bucket_bytes});
    GradientReducer joint(stack_.parameters, *ranks_, {bucket_bytes});
    const auto rounds = static_cast<std::size_t>(arguments_.number("--rounds"));
    for (std::size_t round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        auto& variant = variants_[(round + i) % variants_.size()];
        auto& reducer = variant.who == Who::kAllTogether ? joint : solo;
        measure(variant, reducer, round > 0);
      }
    }
    if (ranks_->rank() == 0) arguments_.json() ? print_json() : print_table();
  }

 private:
  void measure(Variant& variant, GradientReducer& reducer, bool record) {
    const auto steps = arguments_.number("--steps");
    double seconds = 0;
    double exposed = 0;
    ranks_->barrier();
    if (variant.who != Who::kOneAlone || ranks_->rank() == 0) {
      const auto start = Clock::now();
      for (std::int64_t i = 0; i < steps; ++i) {
        step(variant.who == Who::kAllTogether ? stack_ : stack_alone_, reducer,
             arguments_.number("--micro-batches"), variant.overlap);
        exposed += reducer.exposed_seconds();
      }
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    seconds = ranks_->max(seconds) / static_cast<double>(steps);
    exposed = ranks_->sum(exposed) / static_cast<double>(steps) / ranks_->world_size();
    if (!record) return;
    variant.step_seconds.values.push_back(seconds);
    variant.exposed_seconds.values.push_back(exposed);
  }

  void print_table() const {
    std::printf("%d ranks, %.1f MB of gradients, %s\n%-40s %9s %9s %8s %8s %11s\n",
                ranks_->world_size(), stack_.megabytes(), arguments_.list().c_str(),
                "same work per rank, one step", "min s", "median s", "min", "median", "exposed s");
    for (const auto& variant : variants_) {
      std::printf("%-40s %9.4f %9.4f %8.3f %8.3f %11.4f\n", variant.name,
                  variant.step_seconds.min(), variant.step_seconds.median(), min_ratio(variant),
                  median_ratio(variant), variant.exposed_seconds.median());
    }
  }

  void print_json() const {
    for (const auto& variant : variants_) {
      std::printf(
          "{\"bench\": \"overlap\", \"variant\": \"%s\", \"ranks\": %d, \"gradient_megabytes\": "
          "%.3f, "
          "\"min_seconds\": %.6f, \"median_seconds\": %.6f, \"min_ratio\": %.4f, "
          "\"median_ratio\": %.4f, \"exposed_seconds\": %.6f, \"options\": \"%s\"}\n",
          variant.name, ranks_->world_size(), stack_.megabytes(), variant.step_seconds.min(),
          variant.step_seconds.median(), min_ratio(variant), median_ratio(variant),
          variant.exposed_seconds.median(), arguments_.list().c_str());
    }
  }

  double min_ratio(const Variant& variant) const {
    return variant.step_seconds.min() / variants_.front().step_seconds.min();
  }
  double median_ratio(const Variant& variant) const {
    return variant.step_seconds.median() / variants_.front().step_seconds.median();
  }

  const Arguments& arguments_;
  const Stack stack_, stack_alone_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<Communicator> ranks_;
  std::vector<Variant> variants_ = {
      {"one rank alone", Who::kOneAlone, false, {}, {}},
      {"all ranks, no communication", Who::kAllForThemselves, false, {}, {}},
      {"all ranks, communication after backward", Who::kAllTogether, false, {}, {}},
      {"all ranks, communication during backward", Who::kAllTogether, true, {}, {}}};
};

void run(const Arguments& arguments) {
  const Runtime runtime;
  Benchmark(runtime, arguments).run();
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("overlap", argc, argv,
                                  {{"--layers", "8"},
                                   {"--width", "1024"},
                                   {"--rows", "512"},
                                   {"--type", "float32"},
                                   {"--micro-batches", "1"},
                                   {"--bucket-bytes", "4194304"},
                                   {"--steps", "2"},
                                   {"--rounds", "9"}},
                                  tupelo::bench::run);
}

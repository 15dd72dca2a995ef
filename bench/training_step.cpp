// How fast a model trains on one device: whole steps, with clipping and the update, by position
// encoding.
#include <torch/cuda.h>
#include <torch/types.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/model_arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "distributed/backends.h"
#include "launcher/cuda_graphs.h"
#include "launcher/model_parameters.h"
#include "launcher/trained_parameters.h"
#include "model/allocation_meter.h"
#include "model/plan_report.h"
#include "model/position/encoding_call.h"
#include "model/roberta.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

// What a forward pass does for each token, heads over masked tokens included; backward is twice it.
double forward_flops_per_token(const RobertaForMaskedLm& model, std::int64_t tokens,
                               double masked_share) {
  const PlanReport report = plan_report(model, tokens, /*padding=*/false);
  double flops = 0;
  for (const PlanLayer& layer : report.layers) flops += report.layer_flops + layer.extra_flops;
  const auto hidden = static_cast<double>(model.options().hidden_size);
  const auto vocabulary = static_cast<double>(model.options().vocab_size);
  return flops + masked_share * 2 * hidden * (hidden + vocabulary);
}

class Training {
 public:
  Training(const Arguments& arguments, const std::string& variant, torch::Device device)
      : world_(std::move(make_local_world(1).front())), device_(device) {
    ModelOptions options = model_size(arguments);
    options.recompute = arguments.text("--recompute");
    const std::size_t at = variant.find('@');
    options.input_position = at == std::string::npos ? "none" : variant.substr(0, at);
    options.position = at == std::string::npos ? variant : variant.substr(at + 1);
    options.allow_no_position = true;
    model_ = std::make_shared<RobertaForMaskedLm>(options);
    model_->initialize(1);
    model_->to(device);
    const std::string& graphs = arguments.text("--cuda-graphs");
    if (graphs != "on" && graphs != "off") {
      throw std::invalid_argument("--cuda-graphs is on or off");
    }
    if (graphs == "on") {
      model_->record_layers(cuda_graph_recorder(device));
    }
    TrainOptions train;
    train.precision = arguments.text("--precision");
    trained_ = std::make_unique<TrainedParameters>(*model_, train, ShardGroups{*world_});
    optimizer_ = make_optimizer({}, trained_->masters(parameter_groups(*model_, {}, 0)));
    for (const NamedParameter& master : trained_->masters()) masters_.push_back(master.tensor);
    make_batch(arguments.number("--rows"), options);
  }

  void step() {
    trained_->reducer().zero();
    const MaskedLmOutput output = model_->masked_lm_loss(ids_, torch::Tensor(), masked_, labels_);
    (output.loss_sum / static_cast<double>(labels_.numel())).backward();
    trained_->reducer().finish();
    clip_global_norm(masters_, 1.0);
    optimizer_->step(1e-4, ++steps_);
    trained_->publish();
    trained_->wait();
  }

  void finish() const {
    if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  }
  double tokens() const { return static_cast<double>(ids_.numel()); }
  double flops_per_token() const {
    const double share = static_cast<double>(labels_.numel()) / tokens();
    return 3 * forward_flops_per_token(*model_, ids_.size(1), share);
  }

 private:
  void make_batch(std::int64_t rows, const ModelOptions& options) {
    constexpr std::int64_t kMaskedEvery = 7;  // about 15 %
    torch::manual_seed(1);
    const auto integers = torch::TensorOptions(torch::kInt64);
    ids_ = torch::randint(5, options.vocab_size, {rows, options.max_positions}, integers);
    masked_ = torch::arange(0, ids_.numel(), kMaskedEvery, integers);
    labels_ = ids_.flatten().index_select(0, masked_).to(device_);
    ids_ = ids_.to(device_);
    masked_ = masked_.to(device_);
  }

  std::unique_ptr<Communicator> world_;
  torch::Device device_;
  std::shared_ptr<RobertaForMaskedLm> model_;
  std::unique_ptr<TrainedParameters> trained_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<torch::Tensor> masters_;
  torch::Tensor ids_, masked_, labels_;
  std::int64_t steps_ = 0;
};

struct Result {
  std::string variant;
  double tokens_per_second = 0, teraflops = 0, peak_megabytes = 0;
  std::int64_t steps = 0;
};

Result measure(const Arguments& arguments, const std::string& variant, torch::Device device) {
  constexpr int kWarmUp = 3;
  Training training(arguments, variant, device);
  Result result;
  result.variant = variant;
  {
    training.step();
    AllocationMeter meter;
    training.step();
    result.peak_megabytes = static_cast<double>(meter.peak_bytes()) / 1e6;
  }
  for (int i = 0; i < kWarmUp; ++i) training.step();
  training.finish();
  const double limit = std::stod(arguments.text("--seconds"));
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  do {
    training.step();
    ++result.steps;
    training.finish();
  } while (elapsed() < limit);
  result.tokens_per_second = training.tokens() * static_cast<double>(result.steps) / elapsed();
  result.teraflops = result.tokens_per_second * training.flops_per_token() / 1e12;
  return result;
}

void print(const Arguments& arguments, const Result& result, double base) {
  const double peak = std::stod(arguments.text("--peak-teraflops"));
  const double utilization = peak > 0 ? result.teraflops / peak : 0;
  std::printf(arguments.json()
                  ? "{\"bench\": \"training_step\", \"variant\": \"%s\", \"tokens_per_second\": "
                    "%.1f, \"ratio\": %.4f, \"teraflops\": %.4f, \"mfu\": %.4f, "
                    "\"step_peak_megabytes\": %.1f, \"steps\": %lld}\n"
                  : "%-32s %14.1f %8.3f %10.4f %8.4f %12.1f %8lld\n",
              result.variant.c_str(), result.tokens_per_second, result.tokens_per_second / base,
              result.teraflops, utilization, result.peak_megabytes,
              static_cast<long long>(result.steps));
  std::fflush(stdout);
}

torch::Device device_of(const std::string& name) {
  if (name == "cuda" || (name == "auto" && torch::cuda::is_available())) {
    return torch::Device(torch::kCUDA, 0);
  }
  if (name == "cpu" || name == "auto") return torch::kCPU;
  throw std::invalid_argument("--device is auto, cpu or cuda");
}

void run(const Arguments& arguments) {
  const torch::Device device = device_of(arguments.text("--device"));
  if (!arguments.json()) {
    std::printf("%s\n%-32s %14s %8s %10s %8s %12s %8s\n", arguments.list().c_str(), "", "tokens/s",
                "ratio", "TFLOP/s", "MFU", "step MB", "steps");
  }
  double base = 0;
  for (const std::string& variant : split_outside_parentheses(arguments.text("--variants"), ';')) {
    const Result result = measure(arguments, variant, device);
    if (base == 0) base = result.tokens_per_second;
    print(arguments, result, base);
  }
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench(
      "training_step", argc, argv,
      {{"--device", "auto"},
       {"--precision", "fp32"},
       {"--layers", "12"},
       {"--hidden", "768"},
       {"--heads", "12"},
       {"--vocab", "50304"},
       {"--tokens", "512"},
       {"--rows", "8"},
       {"--dropout", "0.1"},
       {"--recompute", "none"},
       {"--cuda-graphs", "off"},
       {"--seconds", "5"},
       {"--peak-teraflops", "0"},
       {"--variants", "learned@all:none;all:rope;all:t5;all:tupe-a;all:tupe-r"}},
      tupelo::bench::run);
}

// What a training step takes on many GPUs, by the model of docs/scaling.md; and, with --check, by
// the same model for runs that were measured.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/arguments.h"
#include "bench/doctor_file.h"
#include "bench/encoder_work.h"
#include "bench/run_bench.h"
#include "bench/scale_check.h"

namespace tupelo::bench {
namespace {

using Json = nlohmann::json;

struct Device {
  double operations_per_second = 0;  // that training attains
  double memory_bytes_per_second = 0;
  double least_layer_seconds = 0;
};

struct Case {
  EncoderShape shape;
  int gpus = 1;
  Shard shard = Shard::kNone;
  double rows = 0;  // of a rank in a step
  int micro_batches = 1;
};

struct Prediction {
  Case of;
  StepTime time;
  double tokens_per_second = 0;
  double efficiency = 0;  // tokens/s of a GPU, over those of one that is alone
  double state_bytes = 0;
  double activation_bytes = 0;
};

template <typename Value>
Value one_of(const std::vector<std::pair<std::string, Value>>& choices, const std::string& option,
             const std::string& word) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument(option + " is '" + word + "'; valid are " + names);
}

int whole_number(const std::string& text, const std::string& option) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number > 0) return number;
  throw std::invalid_argument(option + " holds '" + text + "'; valid are whole numbers above 0");
}

class Predictor {
 public:
  explicit Predictor(const Arguments& arguments)
      : arguments_(arguments),
        precision_{one_of<bool>({{"bf16", true}, {"fp16", true}, {"fp32", false}}, "--precision",
                                arguments.text("--precision"))},
        fabric_(named_fabric(arguments.text("--fabric"))),
        sequence_length_(arguments.decimal("--sequence-length", 1)),
        most_rows_(arguments.decimal("--micro-batch", 1)),
        global_batch_(arguments.decimal("--global-batch", 0)) {
    for (const std::string& path : arguments.words("--doctor")) {
      const DoctorFile doctor = doctor_report(read_json(path), path);
      fabric_ = calibrated(fabric_, doctor.group, doctor.all_reduce);
      fabric_.name += " and " + path;
      worst_fit_ = std::max(worst_fit_, doctor.all_reduce.worst_relative_error);
    }
    // Of an H100 SXM, without sparsity; float32 is no TF32 unless the program asks for it.
    // https://glennklockwood.com/garden/processors/h100
    const double default_peak = precision_.half ? 989.4 : 66.9;
    const double given_peak = arguments.decimal("--peak-tflops", 0);
    device_.operations_per_second =
        arguments.decimal("--mfu", 0.001) * 1e12 * (given_peak > 0 ? given_peak : default_peak);
    device_.memory_bytes_per_second = 1e9 * arguments.decimal("--memory-gigabytes-per-second", 1);
    device_.least_layer_seconds = 1e-6 * arguments.decimal("--least-layer-us", 0);
    settings_.bucket_bytes = arguments.decimal("--bucket-bytes", 1);
    settings_.overlap =
        one_of<bool>({{"on", true}, {"off", false}}, "--overlap", arguments.text("--overlap"));
    settings_.backward_factor =
        one_of<double>({{"none", 2}, {"full", 3}}, "--recompute", arguments.text("--recompute"));
    settings_.wire_bytes = one_of<double>({{"fp32", 4}, {"bf16", 2}}, "--reduce-precision",
                                          arguments.text("--reduce-precision"));
    settings_.parameter_bytes = precision_.parameter_bytes();
    settings_.algorithm = one_of<Algorithm>(
        {{"best", Algorithm::kBest}, {"ring", Algorithm::kRing}, {"tree", Algorithm::kTree}},
        "--algorithm", arguments.text("--algorithm"));
  }

  std::vector<Prediction> predictions() const {
    std::vector<Prediction> all;
    for (const std::string& model : arguments_.words("--model")) {
      EncoderShape shape = named_shape(model);
      shape.vocab = static_cast<std::int64_t>(arguments_.decimal("--vocab", 1));
      for (const std::string& gpus : arguments_.words("--gpus")) {
        for (const std::string& shard : arguments_.words("--shard")) {
          all.push_back(predict(case_of(shape, gpus, one_of(shard_names(), "--shard", shard))));
        }
      }
    }
    return all;
  }

  const Fabric& fabric() const { return fabric_; }
  double worst_fit() const { return worst_fit_; }

 private:
  Case case_of(const EncoderShape& shape, const std::string& gpus, Shard shard) const {
    Case of;
    of.shape = shape;
    of.gpus = whole_number(gpus, "--gpus");
    of.shard = shard;
    world_group(of.gpus, fabric_);  // throws where they do not fill hosts
    split(of, global_batch_ > 0 ? global_batch_ / of.gpus : most_rows_);
    if (of.rows < 1) {
      throw std::invalid_argument("--global-batch " + arguments_.text("--global-batch") +
                                  " leaves less than a row for each of " + gpus + " GPUs");
    }
    return of;
  }

  void split(Case& of, double rows) const {
    of.rows = rows;
    of.micro_batches = static_cast<int>(std::ceil(rows / most_rows_));
  }

  MicroBatch micro_batch(const Case& of) const {
    return {of.rows / of.micro_batches, sequence_length_, arguments_.decimal("--mask-fraction", 0)};
  }

  int shard_count(const Case& of) const {
    if (of.shard == Shard::kNone) return 1;
    return of.shard == Shard::kWorld ? of.gpus : host_group(of.gpus, fabric_).ranks();
  }

  StepTime step_time(const Case& of) const {
    StepSettings settings = settings_;
    settings.ranks = of.gpus;
    settings.micro_batches = of.micro_batches;
    settings.shard = of.shard;
    settings.update_seconds = update_bytes(parameter_count(of.shape), precision_, shard_count(of)) /
                              device_.memory_bytes_per_second;
    // The sum of losses, whether all is finite, what the next step holds; and the norm of slices.
    settings.agreements = of.shard == Shard::kNone ? 3 : 4;
    return predict_step(layers_of(of.shape, micro_batch(of), device_.operations_per_second,
                                  device_.least_layer_seconds),
                        fabric_, settings);
  }

  // One GPU that takes the whole global batch; or, where each has one micro-batch, that one.
  double tokens_per_second_alone(const Case& of) const {
    Case alone = of;
    alone.gpus = 1;
    alone.shard = Shard::kNone;
    split(alone, global_batch_ > 0 ? global_batch_ : most_rows_);
    return alone.rows * sequence_length_ / step_time(alone).seconds();
  }

  Prediction predict(const Case& of) const {
    Prediction prediction;
    prediction.of = of;
    prediction.time = step_time(of);
    prediction.tokens_per_second = of.gpus * of.rows * sequence_length_ / prediction.time.seconds();
    prediction.efficiency = prediction.tokens_per_second / of.gpus / tokens_per_second_alone(of);
    prediction.state_bytes = state_bytes(parameter_count(of.shape), precision_, shard_count(of));
    prediction.activation_bytes =
        settings_.backward_factor > 2 ? 0 : activation_bytes(of.shape, micro_batch(of), precision_);
    return prediction;
  }

  const Arguments& arguments_;
  Precision precision_;
  Fabric fabric_;
  double worst_fit_ = 0;
  Device device_;
  double sequence_length_, most_rows_, global_batch_;
  StepSettings settings_;
};

void print_fabric(const Fabric& fabric, double worst_fit) {
  std::printf(
      "%s: %d ranks a host, %.1f us a collective; ring hops %.1f us inside, %.1f between; "
      "%.4g GB/s inside, %.4g between\n",
      fabric.name.c_str(), fabric.ranks_per_host, fabric.launch_seconds * 1e6,
      fabric.inside.ring_hop_seconds * 1e6, fabric.between.ring_hop_seconds * 1e6,
      fabric.inside.bytes_per_second / 1e9, fabric.between.bytes_per_second / 1e9);
  if (worst_fit > 0) {
    std::printf("alpha and beta miss what doctor measured by %.0f %% at most\n", 100 * worst_fit);
  }
}

void print_table(const Arguments& arguments, const Predictor& predictor) {
  const auto predictions = predictor.predictions();
  print_fabric(predictor.fabric(), predictor.worst_fit());
  std::printf("%s\n\n%-6s %6s %-6s %10s %8s %9s %9s %9s %9s %10s %6s %8s\n",
              arguments.list().c_str(), "model", "GPUs", "shard", "rows/GPU", "buckets", "step ms",
              "reduce ms", "gather ms", "update ms", "tokens/s", "eff.", "state GB");
  for (const Prediction& each : predictions) {
    const StepTime& time = each.time;
    const std::string rows = std::to_string(each.of.micro_batches) + " x " +
                             std::to_string(std::lround(each.of.rows / each.of.micro_batches));
    std::printf("%-6s %6d %-6s %10s %8zu %9.2f %9.2f %9.2f %9.2f %9.2fM %5.1f%% %8.2f\n",
                each.of.shape.name.c_str(), each.of.gpus, name_of(each.of.shard).c_str(),
                rows.c_str(), time.buckets, time.seconds() * 1e3,
                (time.exposed_reduce_seconds + time.agreement_seconds) * 1e3,
                time.exposed_gather_seconds * 1e3, time.update_seconds * 1e3,
                each.tokens_per_second / 1e6, 100 * each.efficiency, each.state_bytes / 1e9);
  }
}

void print_json(const Arguments& arguments, const Predictor& predictor) {
  for (const Prediction& each : predictor.predictions()) {
    const StepTime& time = each.time;
    std::cout << Json{{"bench", "scale"},
                      {"model", each.of.shape.name},
                      {"gpus", each.of.gpus},
                      {"shard", name_of(each.of.shard)},
                      {"rows_per_gpu", each.of.rows},
                      {"micro_batches", each.of.micro_batches},
                      {"buckets", time.buckets},
                      {"step_seconds", time.seconds()},
                      {"compute_seconds", time.compute_seconds},
                      {"exposed_reduce_seconds", time.exposed_reduce_seconds},
                      {"exposed_gather_seconds", time.exposed_gather_seconds},
                      {"agreement_seconds", time.agreement_seconds},
                      {"communication_seconds", time.communication_seconds},
                      {"update_seconds", time.update_seconds},
                      {"tokens_per_second", each.tokens_per_second},
                      {"efficiency", each.efficiency},
                      {"state_bytes", each.state_bytes},
                      {"activation_bytes", each.activation_bytes},
                      {"fabric", predictor.fabric().name},
                      {"options", arguments.list()}}
              << "\n";
  }
}

void print_calibration(const Check& check) {
  std::printf(
      "a step of one rank takes %.2f ms, and %.2f ms and %.3f ms a row for each micro-batch\n",
      check.work.update_seconds * 1e3, check.work.pass_seconds * 1e3,
      check.work.seconds_by_row * 1e3);
  for (const auto& [ranks, sums] : check.sums) {
    std::printf(
        "sums over %d ranks take %.3f ms and %.3f ms a MB, within %.0f %% of measurements\n", ranks,
        sums.alpha_seconds * 1e3, sums.beta_seconds_per_byte * 1e9,
        100 * sums.worst_relative_error);
  }
}

void print_check(const Arguments& arguments) {
  const std::string& path = arguments.text("--check");
  const Check check = check_model(read_json(path), path);
  if (!arguments.json()) {
    print_calibration(check);
    std::printf("\n%5s %6s %9s %11s %13s %12s %7s\n", "ranks", "shard", "rows", "exposed ms",
                "predicted ms", "measured ms", "error");
  }
  for (const CheckedRun& run : check.runs) {
    if (arguments.json()) {
      std::cout << Json{{"bench", "scale-check"},
                        {"ranks", run.ranks},
                        {"shard", name_of(run.shard)},
                        {"micro_batches", run.micro_batches},
                        {"rows_per_micro_batch", run.rows},
                        {"calibrates", run.calibrates},
                        {"exposed_seconds", run.predicted.exposed_seconds()},
                        {"predicted_seconds", run.predicted.seconds()},
                        {"measured_seconds", run.measured_seconds},
                        {"error", run.error()}}
                << "\n";
      continue;
    }
    std::printf("%5d %6s %5d x %1.0f %11.2f %13.2f %12.2f %+6.1f%%%s\n", run.ranks,
                name_of(run.shard).c_str(), run.micro_batches, run.rows,
                run.predicted.exposed_seconds() * 1e3, run.predicted.seconds() * 1e3,
                run.measured_seconds * 1e3, 100 * run.error(),
                run.calibrates ? "  (the prediction is made from it)" : "");
  }
}

void run(const Arguments& arguments) {
  if (!arguments.text("--check").empty()) return print_check(arguments);
  const Predictor predictor(arguments);
  arguments.json() ? print_json(arguments, predictor) : print_table(arguments, predictor);
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("scale", argc, argv,
                                  {{"--algorithm", "best"},
                                   {"--bucket-bytes", "4194304"},
                                   {"--check", ""},
                                   {"--doctor", ""},
                                   {"--fabric", "nvlink-400g"},
                                   {"--global-batch", "0"},
                                   {"--gpus", "8,64,512,4096"},
                                   {"--least-layer-us", "200"},
                                   {"--mask-fraction", "0.15"},
                                   {"--memory-gigabytes-per-second", "2680"},
                                   {"--mfu", "0.4"},
                                   {"--micro-batch", "32"},
                                   {"--model", "base,large,1b"},
                                   {"--overlap", "on"},
                                   {"--peak-tflops", "0"},
                                   {"--precision", "bf16"},
                                   {"--recompute", "none"},
                                   {"--reduce-precision", "fp32"},
                                   {"--sequence-length", "512"},
                                   {"--shard", "none"},
                                   {"--vocab", "50265"}},
                                  tupelo::bench::run);
}

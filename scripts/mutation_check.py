#!/usr/bin/env python3
"""Plants one mistake at a time in the position encodings and in what recomputes or records layers (a flipped sign, a dropped
scale, left and right swapped, ...) and reports whether the tests of model/ notice; with --only devices, in what drives devices
(a missing wait, another thread's device, ...), for tests of the cuda preset on emulated devices. Works on a copy of the last
commit in a folder of its own; exit code 0 when every mistake was noticed.

    python3 scripts/mutation_check.py --work /tmp/mutations [--only rope,t5]
"""

import argparse
import os
import pathlib
import subprocess
import sys

POSITION = "model/position/"

# encoding: [(file, text, text with a mistake)]
MUTATIONS = {
    "learned": [
        (POSITION + "input_learned.cpp", "mul_(real).add_(padding_row_)", "mul_(real).add_(padding_row_ - 1)"),
        (POSITION + "input_table.cpp", "return embeddings + positions;", "return embeddings - positions;"),
    ],
    "mul and mul1p": [
        (POSITION + "input_table.cpp", "return embeddings * positions;", "return embeddings / positions;"),
        (POSITION + "input_table.cpp", "at::addcmul(embeddings, embeddings, positions)",
         "at::addcmul(embeddings, embeddings, positions, -1)"),
    ],
    "sinusoidal": [
        (POSITION + "sinusoidal.cpp", "frequencies.mul_(-std::log(10000.0) / octaves)",
         "frequencies.mul_(std::log(10000.0) / octaves)"),
        (POSITION + "sinusoidal.cpp", "torch::stack({angles.sin(), angles.cos()}, -1)",
         "torch::stack({angles.cos(), angles.sin()}, -1)"),
        (POSITION + "sinusoidal.cpp", "static_cast<double>(half - 1)", "static_cast<double>(half)"),
    ],
    "recursive": [
        (POSITION + "input_recursive.cpp", "at::addmv(bias, weight, rows.back())",
         "at::addmv(bias, weight.t(), rows.back())"),
        (POSITION + "input_recursive.cpp", "at::addmv(bias, weight, rows.back())",
         "at::addmv(bias, weight, rows.back(), -1)"),
    ],
    "floater": [
        (POSITION + "floater_flow.cpp", "return at::add(points, middle, step);", "return at::add(points, middle, -step);"),
        (POSITION + "floater_flow.cpp", "at::add(points, slope, step / 2)", "at::add(points, slope, step)"),
        (POSITION + "floater_flow.cpp", "* (step / 6)", "* (step / 5)"),
        (POSITION + "floater.cpp", "terms.back().query_offset = layer[0];", "terms.back().query_offset = layer[1];"),
        (POSITION + "floater.cpp", "terms.back().value_offset = layer[2];", "terms.back().value_offset = layer[1];"),
    ],
    "learned-hier and extensions": [
        (POSITION + "length_extension.cpp", "/ (1.0 - alpha)", "/ (1.0 + alpha)"),
        (POSITION + "length_extension.cpp", "row / base;", "row % base;"),
        (POSITION + "length_extension.cpp", "return sampled(table, count, table.size(0) - 1, count - 1);",
         "return sampled(table, count, table.size(0), count);"),
    ],
    "complex-order": [
        (POSITION + "input_complex_order.cpp", "const Tensor imaginary = turned(angles.sin());",
         "const Tensor imaginary = turned(angles.sin().neg());"),
        (POSITION + "input_complex_order.cpp", "mul_(-2.0 / static_cast<double>(hidden))",
         "mul_(-1.0 / static_cast<double>(hidden))"),
        ("model/complex_attention.cpp", "real.square() + imaginary.square()", "real.square() - imaginary.square()"),
        ("model/complex_attention.cpp", "at::cat({halves[0], halves[1].neg()}, -1)", "at::cat({halves[0], halves[1]}, -1)"),
    ],
    "conv": [
        ("model/border_convolution.cpp", "return hidden + at::gelu(", "return hidden - at::gelu("),
        ("model/border_convolution.cpp", "rows.transpose(1, 2), weight,", "rows.transpose(1, 2), weight.flip(2),"),
    ],
    "t5": [
        (POSITION + "t5_buckets.cpp", "distance > 0 ? half_ : 0", "distance < 0 ? half_ : 0"),
        (POSITION + "t5.cpp", "terms.bias = toeplitz(line(tokens));", "terms.bias = -toeplitz(line(tokens));"),
        (POSITION + "t5.cpp", "terms.scale = 1.0;", "terms.scale = 0.5;"),
        (POSITION + "toeplitz.cpp", ".flip(1);\n  }", ".flip(2);\n  }"),
        (POSITION + "toeplitz.cpp", "{sheared.sum(1).narrow(1, 0, width)}",
         "{sheared.sum(1).narrow(1, 0, width).flip(1)}"),
    ],
    "alibi": [
        (POSITION + "alibi.cpp", "distance.abs().div_(interpolation_).neg_()", "distance.abs().div_(interpolation_)"),
        (POSITION + "alibi.cpp", "std::exp2(-8.0 *", "std::exp2(-4.0 *"),
        (POSITION + "alibi.cpp", "masked_fill_(distance.gt(0), kBlocked)", "masked_fill_(distance.lt(0), kBlocked)"),
        (POSITION + "alibi.cpp", "left.sigmoid().unsqueeze(1) * distance.clamp_max(0.0)",
         "left.sigmoid().unsqueeze(1) * distance.clamp_min(0.0)"),
    ],
    "rope": [
        ("model/rotation.cpp", "first * c - second * s", "first * c + second * s"),
        ("model/rotation.cpp", "saved[1].neg(), interleaved)", "saved[1], interleaved)"),
        ("model/rotation.cpp", "const std::int64_t pair = interleaved ? -1 : -2;",
         "const std::int64_t pair = interleaved ? -1 : -1;"),
        (POSITION + "rotation_frequencies.cpp", "width / (width - 2.0)", "width / (width - 1.0)"),
        (POSITION + "rotation_frequencies.cpp", "frequencies.magnitude = 0.1 *", "frequencies.magnitude = 0.2 *"),
        (POSITION + "rotation_frequencies.cpp", "std::exp(-strength", "std::exp(strength"),
    ],
    "shaw": [
        (POSITION + "shaw.cpp", "terms.relative_key = key_table_.unsqueeze(0);",
         "terms.relative_key = key_table_.flip(0).unsqueeze(0);"),
        (POSITION + "shaw.cpp", "terms.relative_value = value_table_.unsqueeze(0);",
         "terms.relative_value = value_table_.unsqueeze(0).neg();"),
        ("model/relative_scores.cpp", "end(0), lines, end(width - 1)", "end(width - 1), lines, end(0)"),
        ("model/relative_scores.cpp", "narrow.select(3, 0).add_", "narrow.select(3, 0).sub_"),
    ],
    "nezha": [
        (POSITION + "nezha.cpp", "sinusoids(clip_, tokens)", "sinusoids(0, tokens)"),
        (POSITION + "nezha.cpp", "sinusoids(0, rows).unsqueeze(0)", "sinusoids(0, rows).flip(0).unsqueeze(0)"),
        ("model/attention_operands.cpp", "rotate(content, terms.phase_cos, terms.phase_sin.neg()",
         "rotate(content, terms.phase_cos, terms.phase_sin"),
        ("model/attention.cpp", "return halves[0] + rotate(", "return halves[0] - rotate("),
    ],
    "xlnet": [
        (POSITION + "xlnet.cpp", "sinusoids(farthest, rows, -1)", "sinusoids(-farthest, rows, 1)"),
        (POSITION + "xlnet.cpp", "terms.query_offset = content_offset_", "terms.query_offset = position_offset_"),
        (POSITION + "xlnet.cpp", "return sinusoidal_table(torch::arange(rows, torch::kInt64) * step + first, width_,\n"
         "                            SinusoidLayout::kConcat);",
         "return sinusoidal_table(torch::arange(rows, torch::kInt64) * step + first, width_,\n"
         "                            SinusoidLayout::kTensor2Tensor);"),
    ],
    "deberta": [
        (POSITION + "deberta.cpp", "vectors(key_projection_->forward(rows), tokens).flip(1)",
         "vectors(key_projection_->forward(rows), tokens)"),
        (POSITION + "deberta.cpp", "mirrored_ ? by_query_minus_key : by_query_minus_key.flip(1)",
         "by_query_minus_key"),
        (POSITION + "deberta.cpp", "(1.0 + projections())", "(projections())"),
        ("model/biased_attention.cpp", "Tensor seen_from_key(const Tensor& table) { return table.flip(1); }",
         "Tensor seen_from_key(const Tensor& table) { return table; }"),
    ],
    "deberta-v2": [
        (POSITION + "log_buckets.cpp", "return distance < 0 ? -bucket : bucket;", "return distance < 0 ? bucket : -bucket;"),
        (POSITION + "deberta_v2.cpp", "const double products = 1.0 + keys_ + queries_;",
         "const double products = keys_ + queries_;"),
        ("model/self_attention.cpp", "terms.relative_key = split_heads(key_map(rows))[0];",
         "terms.relative_key = split_heads(query_map(rows))[0];"),
        ("model/encoder.cpp", "hidden = apply(plain_layers, hidden, memory,", "hidden = apply(plain_layers, hidden, hidden,"),
        ("model/mask_decoder.cpp", "return hidden + (", "return hidden - ("),
    ],
    "tupe-a": [
        (POSITION + "tupe.cpp", "1.0 / std::sqrt(2.0 *", "1.0 / std::sqrt(1.0 *"),
        (POSITION + "tupe.cpp", "positions.to_cls = with_itself(1);", "positions.to_cls = with_itself(0);"),
        (POSITION + "tupe.cpp", "const torch::Tensor rows = norm_->forward(rows_of(tokens));",
         "const torch::Tensor rows = rows_of(tokens);"),
        (POSITION + "tupe_absolute.cpp", "(positions.to_cls / scale())", "(positions.to_cls * scale())"),
        (POSITION + "tupe_absolute.cpp", "terms.key_extra = at::cat({without_first_row(positions.key)",
         "terms.key_extra = at::cat({positions.key"),
        (POSITION + "cls_reset.cpp", "first_column(result).copy_(to_cls.unsqueeze(1));",
         "first_column(result).copy_(-to_cls.unsqueeze(1));"),
    ],
    "tupe-r": [
        (POSITION + "tupe_relative.cpp", "positions.to_cls = positions.to_cls + table[buckets_];",
         "positions.to_cls = positions.to_cls - table[buckets_];"),
        (POSITION + "tupe_relative.cpp", "correlation(positions, toeplitz(line_(table, tokens)))",
         "correlation(positions, toeplitz(line_(table, tokens).flip(1)))"),
        (POSITION + "tupe.cpp", ".sigmoid() * 2.0", ".sigmoid() * 1.0"),
    ],
    "tupe-full": [
        (POSITION + "tupe_full.cpp", "(surplus * -scale())", "(surplus * scale())"),
        (POSITION + "tupe_full.cpp", "flags_.joint_scale ? (flags_.dot ? 4.0 : 3.0) : 1.0",
         "flags_.joint_scale ? (flags_.dot ? 4.0 : 4.0) : 1.0"),
        (POSITION + "tupe_full.cpp", "terms.key_offset = times(key, key_factor);", "terms.key_offset = key;"),
        (POSITION + "tupe_full.cpp", "bias = toeplitz(distance_line(tokens, temperatures));",
         "bias = toeplitz(distance_line(tokens, temperatures).flip(1));"),
        (POSITION + "relative_line.cpp", "return at::cat({first, middle, last}, 0).t();",
         "return at::cat({last, middle, first}, 0).t();"),
    ],
    "logn": [
        ("model/attention_operands.cpp", "clamp_min(at_least_16 ? 16.0 : 2.0).log() /", "clamp_min(at_least_16 ? 16.0 : 2.0).log() *"),
        ("model/attention_operands.cpp", "factor = factor.clamp_min(1.0);", "factor = factor.clamp_max(1.0);"),
        ("model/attention_operands.cpp", "at_least_16 ? 16.0 : 2.0", "at_least_16 ? 2.0 : 2.0"),
    ],
    "packed documents": [
        ("model/token_layout.cpp", "inside.remainder(batch.longest)", "inside"),
        ("model/token_layout.cpp", "column == 0 || at[row][column - 1] != number", "column == 0"),
    ],
    "recorded layers": [
        ("model/layer_recordings.cpp", "    into.detach().copy_(from.detach());", "    static_cast<void>(into);"),
        ("model/layer_recordings.cpp", "return own.data_ptr() == twins.data_ptr();", "return true;"),
        ("model/layer_recordings.cpp", "context->saved_data[\"version\"].toInt() == recording.version", "true"),
        ("model/layer_recordings.cpp", "!layout.has_full_rows() ||", "false ||"),
        ("model/layer_recordings.cpp", "> kWarmUps && place_is_free", "> kWarmUps"),
        ("model/layer_recordings.cpp", "placed_gradients()[inputs.size() - 1]", "gradients[inputs.size() - 1]"),
        ("model/layer_recordings.cpp", "    ++recording.version;\n", ""),
        ("model/layer_recordings.cpp", "      ++recording->version;\n", ""),
        ("model/layer_recordings.cpp", "put(shared.distinct[i], terms_[i]);", "if (i > 0) put(shared.distinct[i], terms_[i]);"),
        ("model/encoder.cpp", "recorded && keeps_all(i) ?", "recorded ?"),
        ("model/encoder.cpp", "!torch::GradMode::is_enabled() || !is_training()", "!torch::GradMode::is_enabled()"),
    ],
    "recompute": [
        ("model/recompute.cpp", "set_generator_state(generator_, former_state);", "static_cast<void>(former_state);"),
        ("model/recompute.cpp", "~ReplayedGenerator() { set_generator_state(generator_, present_state_); }",
         "~ReplayedGenerator() {}"),
        ("model/encoder.cpp", "tensor = tensor.alias();", "static_cast<void>(tensor);"),
        ("model/self_attention.cpp", "used_twice ? linear.weight.alias() : linear.weight", "linear.weight"),
        ("model/encoder.cpp", "whole ? layer->feed_forward_half(attended) : attended",
         "whole ? attended : layer->feed_forward_half(attended)"),
        ("model/activation_profile.cpp", "partial.bytes < best.back().bytes", "partial.bytes > best.back().bytes"),
        ("model/activation_probe.cpp", "return Measured{two.kept - one.kept, one.working};",
         "return Measured{one.kept, one.working};"),
    ],
}


DEVICE_MUTATIONS = {
    "devices": [
        ("distributed/nccl_communicator.cpp", "    tensors_ready.hold_back(stream_);\n", ""),
        ("distributed/nccl_communicator.cpp",
         "    operation_->finished.hold_back(c10::cuda::getCurrentCUDAStream(device_.index()));\n", ""),
        ("distributed/nccl_communicator.cpp",
         "      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream_);\n",
         "      static_cast<void>(tensor);\n"),
        ("distributed/nccl_communicator.cpp", "bool is_asynchronous() const override { return true; }",
         "bool is_asynchronous() const override { return false; }"),
        ("distributed/nccl_handle.cpp", "failure_text(result));\n    }\n  }\n  wait_until_in_stream(name, deadline);",
         "failure_text(result));\n    }\n  }"),
        ("distributed/nccl_watchdog.cpp", "const auto chosen = cudaSetDevice(device_index_);",
         "const auto chosen = cudaSuccess;"),
        ("distributed/nccl_watchdog.cpp", "Clock::now() - *oldest->seen_started < timeout_", "true"),
        ("distributed/nccl_watchdog.cpp", "  changed_.notify_all();\n  handle_->abort();", "  changed_.notify_all();"),
        ("distributed/communicator.cpp", "tensor.pin_memory().to(device, /*non_blocking=*/true)", "tensor.to(device)"),
        ("distributed/attempt.cpp", "if (come(all_thanks, kPatience)) return attempt;", "return attempt;"),
        ("distributed/attempt.cpp", "return \"tupelo/welcome/\" + word;", "return \"tupelo/welcome/word\";"),
        ("launcher/cuda_graphs.cpp", "graph_.capture_begin(*memory_, cudaStreamCaptureModeThreadLocal);",
         "graph_.capture_begin(*memory_);\n    c10::cuda::device_synchronize();"),
        ("launcher/cuda_graphs.cpp", "graph_.capture_begin(*memory_, cudaStreamCaptureModeThreadLocal);",
         "graph_.capture_begin(*memory_);"),
        ("model/token_layout.cpp", "tensor.pin_memory().to(device, /*non_blocking=*/true)", "tensor"),
        ("model/layer_recordings.cpp", "put(gradients[0], recording.gradient);", ""),
        ("model/token_layout.cpp", "tensor.pin_memory().to(device, /*non_blocking=*/true)", "tensor.to(device)"),
    ],
}


def call(command, folder, log):
    with open(log, "a") as output:
        return subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT).returncode == 0


class Suite:
    """What is built, and the names of tests that run, the quick ones first."""

    def __init__(self, preset, target, stages):
        self.preset = preset
        self.target = target
        self.stages = stages

    def passes(self, build, log):
        """Stops soon after the first test that fails."""
        return all(call(["ctest", "--tests-regex", tests, "--label-exclude", "^gpu$", "--no-tests=error", "--stop-on-failure",
                         "--parallel", str(os.cpu_count())], build, log) for tests in self.stages)


# The tests against reference vectors are few, and notice most mistakes.
MODEL = Suite("dev", "test_model", [r"^model\.refvec_", r"^model\."])
DEVICES = Suite("cuda", "emulated_tests", [r"distributed\.rendezvous|conformance_nccl\.2emulated", r"cuda_graphs_gpu\.emulated",
                                         r"launcher\.(emulated_gpu|cluster)\.emulated"])


class Copy:
    """A checkout of the last commit with a build folder."""

    def __init__(self, work, suite):
        self.suite = suite
        self.root = work / "source"
        self.build = work / "build"
        self.log = work / "log.txt"
        self.repository = pathlib.Path(__file__).resolve().parent.parent

    def prepare(self, options):
        if not self.root.exists():
            self.must(["git", "worktree", "add", "--detach", str(self.root), "HEAD"], self.repository)
        else:
            self.must(["git", "checkout", "--detach", "--force",
                       subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=self.repository, text=True).strip()],
                      self.root)
        self.must(["cmake", "--preset", self.suite.preset, "-B", str(self.build), "-DTUPELO_WERROR=OFF", *options], self.root)
        if not self.compile():
            sys.exit(f"the unchanged commit does not build; see {self.log}")
        if not self.suite.passes(self.build, self.log):
            sys.exit(f"tests of the unchanged commit fail; see {self.log}")

    def must(self, command, folder):
        if not call(command, folder, self.log):
            sys.exit(f"{' '.join(command)} failed; see {self.log}")

    def compile(self):
        return call(["cmake", "--build", str(self.build), "--target", self.suite.target], self.root, self.log)

    def tests_notice(self):
        if not self.compile():
            return "it does not compile"
        return not self.suite.passes(self.build, self.log)

    def notices(self, file, text, mistake):
        """True or False; a string that says what is wrong with the mutation itself."""
        path = self.root / file
        original = path.read_text()
        if original.count(text) == 0:
            return "the text is not there any more"
        path.write_text(original.replace(text, mistake, 1))
        try:
            return self.tests_notice()
        finally:
            path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder for the copy and its build")
    parser.add_argument("--only", help="names of MUTATIONS, separated by commas")
    parser.add_argument("cmake", nargs="*", help="further arguments for cmake, behind --")
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    wanted = [name.strip() for name in arguments.only.split(",")] if arguments.only else list(MUTATIONS)
    of_devices = set(wanted) <= set(DEVICE_MUTATIONS)
    mutations = DEVICE_MUTATIONS if of_devices else MUTATIONS
    unknown = sorted(set(wanted) - set(mutations))
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(MUTATIONS)}; or by itself: {', '.join(DEVICE_MUTATIONS)}")
    arguments.work.mkdir(parents=True, exist_ok=True)
    copy = Copy(arguments.work, DEVICES if of_devices else MODEL)
    copy.prepare(arguments.cmake)
    unnoticed = 0
    for name in wanted:
        for file, text, mistake in mutations[name]:
            noticed = copy.notices(file, text, mistake)
            verdict = {True: "noticed", False: "NOT NOTICED"}.get(noticed, f"INVALID: {noticed}")
            unnoticed += noticed is not True
            planted = (mistake.strip() or "nothing").splitlines()[0]
            print(f"{verdict:12} {name:28} {file}: {planted}", flush=True)
    print("every mistake was noticed" if unnoticed == 0 else f"{unnoticed} were not noticed")
    sys.exit(unnoticed != 0)


if __name__ == "__main__":
    main()

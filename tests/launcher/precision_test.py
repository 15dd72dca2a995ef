"""16-bit training, loss scales and sharded optimizer state, through the program."""

import itertools
import json
import math
import re
import shutil
import struct

import tupelo_runs

USAGE, NUMERICS = 2, 4
# Without clipping: a norm over slices is summed in another order than one over whole parameters.
STEADY = {"optim__schedule": "constant", "optim__warmup": 0, "train__validate_every": 0,
          "optim__clip_norm": 0, "train__steps": 8, "train__collectives": "messages"}


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (entry["dtype"], tuple(entry["shape"]), data[8 + size:][slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


class Precision(tupelo_runs.RunTest):

    def saved(self, run):
        checkpoint = sorted((self.folder / run / "checkpoints").glob("step-*"))[-1]
        return {file.name: tensors(file) for file in sorted(checkpoint.glob("*.safetensors"))}

    def losses(self, run):
        return tupelo_runs.losses(self.folder / run)

    def memory(self, output):
        """Bytes of "1.5 MB" behind each word of the line about memory."""
        line = next(line for line in output.splitlines() if line.startswith("memory "))
        units = {"bytes": 1, "B": 1, "kB": 1e3, "MB": 1e6, "KiB": 2**10, "MiB": 2**20}
        return {name.strip(): float(number.replace(",", "")) * units[unit] for name, number, unit in re.findall(
            r"(parameters|gradients|float32 copies|optimizer) ([\d.,]+) (\w+)", line)}

    def test_sharded_state_changes_no_bit_of_elementwise_optimizers(self):
        for optimizer, precision in (("adamw", "fp32"), ("lion", "fp32"), ("adamw", "bf16")):
            options = {**STEADY, "optim__optimizer": optimizer, "train__precision": precision,
                       "train__ema_decay": 0.9}
            for ranks in (2, 3):
                with self.subTest(optimizer=optimizer, precision=precision, ranks=ranks):
                    whole, parts = f"whole-{optimizer}-{precision}-{ranks}", f"parts-{optimizer}-{precision}-{ranks}"
                    self.train(whole, ranks=ranks, **options)
                    self.train(parts, ranks=ranks, **options, train__shard_optimizer="world")
                    self.assertEqual(self.losses(whole), self.losses(parts))
                    self.assertEqual(self.saved(whole), self.saved(parts))

    def test_sharded_state_of_optimizers_that_look_at_whole_tensors(self):
        for optimizer, rate in (("lamb", "1e-2"), ("stable-adamw", "1e-3"), ("muon", "1e-2")):
            with self.subTest(optimizer=optimizer):
                options = {**STEADY, "optim__optimizer": optimizer, "optim__learning_rate": rate,
                           "optim__clip_norm": 0.5}
                self.train(f"whole-{optimizer}", ranks=3, **options)
                self.train(f"parts-{optimizer}", ranks=3, **options, train__shard_optimizer="world")
                self.assert_close(self.losses(f"whole-{optimizer}"), self.losses(f"parts-{optimizer}"), 1e-6)

    def test_any_number_of_ranks_goes_on_from_any_other(self):
        options = {**STEADY, "train__ema_decay": 0.9}
        worlds = ((1, "none"), (2, "world"), (3, "none"), (4, "world"))
        for ranks, shards in worlds:
            self.train(f"of-{ranks}", ranks=ranks, **{**options, "train__steps": 3}, train__shard_optimizer=shards)
        for before, (after, shards) in itertools.product((1, 2, 3, 4), worlds):
            with self.subTest(before=before, after=after):
                run = f"of-{before}-on-{after}"
                shutil.copytree(self.folder / f"of-{before}", self.folder / run)
                self.train(run, ranks=after, **{**options, "train__steps": 6}, train__shard_optimizer=shards)
                self.assert_close(self.losses(run), self.losses(f"of-{before}-on-1"), 1e-6)

    def test_a_run_goes_on_in_another_precision(self):
        self.train("changes", ranks=2, **{**STEADY, "train__steps": 3}, train__precision="bf16",
                   train__shard_optimizer="world")
        result = self.train("changes", ranks=2, **{**STEADY, "train__steps": 6})
        self.assertIn("train.precision was bf16 and is fp32", result.stdout + result.stderr)
        self.assertEqual(sorted(self.losses("changes")), [1, 2, 3, 4, 5, 6])
        losses = self.losses("changes")
        self.assertLess(losses[6], losses[1])

    def test_bf16_learns_as_fp32_does_and_resumes_bit_for_bit(self):
        options = {**STEADY, "train__steps": 30, "optim__learning_rate": "3e-3"}
        self.train("fp32", **options)
        self.train("bf16", **options, train__precision="bf16")
        self.train("cut", **{**options, "train__steps": 11}, train__precision="bf16")
        self.train("cut", **options, train__precision="bf16")
        self.assertEqual(self.losses("bf16"), self.losses("cut"))
        self.assertEqual(self.saved("bf16"), self.saved("cut"))
        for step, loss in self.losses("fp32").items():
            self.assertAlmostEqual(loss, self.losses("bf16")[step], delta=0.05 * loss)
        self.assertEqual({kind for kind, _, _ in self.saved("bf16")["model.safetensors"].values()}, {"F32"})

    def test_gradients_may_travel_in_bf16(self):
        self.train("wide", ranks=2, **STEADY)
        self.train("narrow", ranks=2, **STEADY, train__reduce_precision="bf16")
        self.assertNotEqual(self.losses("wide"), self.losses("narrow"))
        self.assert_close(self.losses("wide"), self.losses("narrow"), 2e-3)

    def test_fp16_finds_its_loss_scale(self):
        result = self.train("fp16", ranks=2, **{**STEADY, "train__steps": 40}, train__precision="fp16",
                            train__loss_scale=2**40, train__most_loss_scale=2**40)
        scales = [float(value) for value in re.findall(r"losses are multiplied by ([\d.e+]+)", result.stdout + result.stderr)]
        self.assertGreater(len(scales), 3)
        self.assertEqual(scales, [2.0 ** (39 - i) for i in range(len(scales))])
        records = tupelo_runs.records(self.folder / "fp16")
        skipped = [record["step"] for record in records if record.get("skipped")]
        self.assertEqual(len(skipped), len(scales))
        self.assertEqual(skipped[:10], list(range(1, 11)))
        self.assertLess(len(skipped), 30)
        self.assertTrue(all(math.isfinite(record["loss"]) for record in records))
        self.assertLess(records[-1]["loss"], records[0]["loss"])
        # The scale is part of what a run goes on from.
        again = self.train("fp16", ranks=2, **{**STEADY, "train__steps": 44}, train__precision="fp16",
                           train__loss_scale=2**40, train__most_loss_scale=2**40)
        self.assertLessEqual(len(re.findall("overflow", again.stdout + again.stderr)), 1)

    def test_fp16_gives_up_at_the_least_scale(self):
        result = self.train("stuck", expect=NUMERICS, **STEADY, train__precision="fp16", train__loss_scale=2**40,
                            train__least_loss_scale=2**40, train__most_loss_scale=2**40)
        self.assertIn("5 steps in a row", result.stderr)
        self.assertIn("train.least-loss-scale", result.stderr)
        self.assertFalse(list((self.folder / "stuck").glob("checkpoints/step-*")))

    def test_fp16_that_never_trains_saves_nothing(self):
        result = self.train("vain", expect=NUMERICS, **{**STEADY, "train__steps": 6, "train__save_every": 2},
                            train__precision="fp16", train__loss_scale=1e30, train__most_loss_scale=1e30)
        self.assertIn("train.loss-scale", result.stderr)
        self.assertFalse(list((self.folder / "vain").glob("checkpoints/step-*")))

    def test_a_loss_scale_outlives_other_precisions(self):
        options = {**STEADY, "train__save_every": 0}
        for steps, more in ((3, {"train__precision": "fp16", "train__loss_scale": 64}), (4, {}),
                            (5, {"train__precision": "bf16"}),
                            (6, {"train__precision": "fp16", "train__loss_scale": 1024})):
            result = self.train("outlives", **{**options, **more, "train__steps": steps})
            last = max((self.folder / "outlives" / "checkpoints").glob("step-*"))
            self.assertEqual(json.loads((last / "state.json").read_text())["loss_scale"], 64, steps)
        self.assertIn("goes on at 64", result.stdout + result.stderr)

    def test_memory_per_rank(self):
        plain = self.memory(self.train("plain", ranks=2, **STEADY).stdout)
        sharded = self.memory(self.train("sharded", ranks=2, **STEADY, train__shard_optimizer="world",
                                         train__precision="bf16").stdout)
        self.assertEqual(plain["parameters"], plain["gradients"])
        self.assertAlmostEqual(plain["optimizer"], 2 * plain["parameters"], delta=0.02 * plain["optimizer"])
        self.assertNotIn("float32 copies", plain)
        self.assertAlmostEqual(sharded["parameters"], plain["parameters"] / 2, delta=0.02 * plain["parameters"])
        # Slices are filled up to whole vectors.
        self.assertAlmostEqual(sharded["float32 copies"], plain["parameters"] / 2, delta=0.05 * plain["parameters"])
        self.assertAlmostEqual(sharded["optimizer"], plain["optimizer"] / 2, delta=0.05 * plain["optimizer"])

    def test_settings(self):
        for options, words in (({"train__precision": "bf32"}, ("train.precision", "bf16")),
                               ({"train__shard_optimizer": "all"}, ("train.shard-optimizer", "world")),
                               ({"train__loss_scale": 1024}, ("train.loss-scale", "fp16")),
                               ({"train__precision": "fp16", "train__loss_scale": 2**30},
                                ("train.loss-scale is 1073741824", "train.most-loss-scale 16777216")),
                               ({"train__loss_scale_window": 5}, ("train.loss-scale-window", "fp16"))):
            with self.subTest(**options):
                result = self.train("refused", expect=USAGE, **{**STEADY, **options})
                for word in words:
                    self.assertIn(word, result.stderr)
                self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    tupelo_runs.main()

"""Optimizers, cool-downs, time limits and averages of weights, through the program."""

import json
import shutil
import struct

import tupelo_runs

USAGE = 2
STEADY = {"optim__schedule": "constant", "optim__warmup": 0, "train__validate_every": 0}
CHOICES = (
    {"optim__optimizer": "adamw"},
    {"optim__optimizer": "lamb", "optim__layer_decay": 0.8},
    {"optim__optimizer": "lion", "optim__learning_rate": "1e-4"},
    {"optim__optimizer": "stable-adamw", "optim__position_lr_multiplier": 0.5},
    {"optim__optimizer": "muon", "optim__flavour": "keller", "optim__learning_rate": "0.02",
     "optim__adamw_learning_rate": "1e-3"},
    {"optim__optimizer": "muon", "optim__flavour": "moonshot", "optim__layer_decay": 0.9},
)


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size:][slice(*entry["data_offsets"])]
            for name, entry in header.items() if name != "__metadata__"}


class Optimizers(tupelo_runs.RunTest):

    def checkpoints(self, run):
        return sorted((self.folder / run / "checkpoints").glob("step-*"))

    def saved(self, run, file="model", checkpoint=-1):
        return tensors(self.checkpoints(run)[checkpoint] / f"{file}.safetensors")

    def rates(self, run):
        return {record["step"]: record["learning_rate"]
                for record in tupelo_runs.records(self.folder / run)}

    def evaluate(self, run, expect=0, **more):
        result = tupelo_runs.run(tupelo_runs.command(
            "eval", dict(run=self.folder / run, **more), ["json"]))
        self.assertEqual(result.returncode, expect, result.stderr)
        return json.loads(result.stdout) if expect == 0 else result

    def test_each_learns_and_resumes_bit_for_bit(self):
        for number, choice in enumerate(CHOICES):
            with self.subTest(**choice):
                options = {**STEADY, **choice}
                self.train(f"straight{number}", train__steps=24, **options)
                self.train(f"parts{number}", train__steps=10, **options)
                self.train(f"parts{number}", train__steps=24, **options)
                losses = tupelo_runs.losses(self.folder / f"straight{number}")
                self.assertEqual(losses, tupelo_runs.losses(self.folder / f"parts{number}"))
                self.assertLess(losses[24], losses[1])
                for file in ("model", "optimizer"):
                    self.assertEqual(self.saved(f"straight{number}", file),
                                     self.saved(f"parts{number}", file))

    def test_ranks_agree(self):
        options = {**STEADY, **CHOICES[4], "train__steps": 8, "train__ema_decay": 0.9}
        self.train("alone", **options)
        self.train("three", ranks=3, **options)
        self.assert_close(tupelo_runs.losses(self.folder / "alone"),
                          tupelo_runs.losses(self.folder / "three"), 1e-4)

    def test_an_average_is_kept_resumed_evaluated_and_begun_from(self):
        options = {**STEADY, "train__ema_decay": 0.8, "optim__learning_rate": "3e-3"}
        self.train("whole", **{**options, "train__steps": 20, "train__validate_every": 10})
        self.train("cut", train__steps=9, **options)
        self.train("cut", train__steps=20, **options)
        self.assertEqual(self.saved("whole", "ema"), self.saved("cut", "ema"))
        self.assertNotEqual(self.saved("whole", "ema"), self.saved("whole"))
        # Validation puts the average in place of the weights and takes it out again.
        self.assertEqual(tupelo_runs.losses(self.folder / "whole"),
                         tupelo_runs.losses(self.folder / "cut"))
        record = tupelo_runs.records(self.folder / "whole", "validation")[-1]
        for weights, name in (("last", "validation_loss"), ("ema", "validation_ema_loss")):
            loss = self.evaluate("whole", weights=weights)["loss"]
            self.assertAlmostEqual(loss, record[name], delta=1e-6 * loss)
        self.assertNotEqual(record["validation_loss"], record["validation_ema_loss"])
        # The weights are those of a run without average.
        self.train("none", train__steps=20, **{**options, "train__ema_decay": 0})
        self.assertEqual(self.saved("none"), self.saved("whole"))
        self.assert_error(self.evaluate("none", expect=USAGE, weights="ema"), USAGE,
                          "no average", "train.ema-decay", "last")
        still = {"train__steps": 1, "optim.learning-rate": 0, "init-from": self.folder / "whole"}
        self.train("from-ema", **{"init-weights": "ema", **still})
        self.train("from-last", **still)
        self.assertEqual(self.saved("from-ema"), self.saved("whole", "ema"))
        self.assertEqual(self.saved("from-last"), self.saved("whole"))

    def test_an_average_may_begin_and_end_on_the_way(self):
        self.train("late", train__steps=4, **STEADY)
        result = self.train("late", train__steps=8, train__ema_decay=0.5, **STEADY)
        self.assertIn("no average", result.stderr)
        self.assertIn("ema.safetensors", [path.name for path in self.checkpoints("late")[-1].iterdir()])
        result = self.train("late", train__steps=12, **STEADY)
        self.assertIn("given up", result.stderr)
        self.assertNotIn("ema.safetensors",
                         [path.name for path in self.checkpoints("late")[-1].iterdir()])

    def test_a_constant_run_gets_a_cooldown(self):
        self.train("cooled", train__steps=10, **STEADY)
        self.train("cooled", **{**STEADY, "train__steps": 18, "optim__cooldown": 8})
        rates = self.rates("cooled")
        for step in range(1, 19):
            # The rate of update s + 1 is that after s; 8 steps from 10.
            left = 1 - (max(step - 1 - 10, 0) / 8) ** 0.5
            self.assertAlmostEqual(rates[step], 1e-3 * left, delta=1e-12)
        self.train("planned", **{**STEADY, "train__steps": 18, "optim__cooldown": 8})
        self.assertEqual(tupelo_runs.losses(self.folder / "planned"),
                         tupelo_runs.losses(self.folder / "cooled"))
        self.train("late-cooled", train__steps=12, **STEADY)
        result = self.train("late-cooled", expect=USAGE,
                            **{**STEADY, "train__steps": 18, "optim__cooldown": 8})
        self.assert_error(result, USAGE, "optim.cooldown 8", "begins at step 10", "at step 12")

    def test_time_is_up(self):
        options = {**STEADY, "train__steps": 1000000}
        result = self.train("timed", train__max_time="1s", **options)
        self.assertIn("train.max-time 1s is used up", result.stdout)
        steps = len(tupelo_runs.losses(self.folder / "timed"))
        self.assertEqual(int(self.checkpoints("timed")[-1].name.split("-")[1]), steps)
        self.train("timed", train__max_time="1s", **options)
        self.assertEqual(len(tupelo_runs.losses(self.folder / "timed")), steps)
        self.train("timed", ranks=2, train__max_time="2s", **options)
        self.assertGreater(len(tupelo_runs.losses(self.folder / "timed")), steps)

    def test_a_cooldown_ends_when_time_is_up_and_can_be_repeated(self):
        options = {**STEADY, "optim__cooldown": 12, "train__ema_decay": 0.9}
        for ranks in (0, 2):
            run = f"budget{ranks}"
            result = self.train(run, ranks=ranks, train__steps=1000000, train__max_time="1s", **options)
            self.assertIn("leaves a cool-down of 12 steps", result.stdout)
            last = max(tupelo_runs.losses(self.folder / run))
            saved = [int(folder.name.split("-")[1]) for folder in self.checkpoints(run)]
            self.assertEqual(saved, [last - 12, last])
            # The same without a clock.
            self.train(f"{run}-steps", ranks=ranks, train__steps=last, **options)
            self.assertEqual(tupelo_runs.losses(self.folder / run),
                             tupelo_runs.losses(self.folder / f"{run}-steps"))
            self.assertEqual(self.rates(run), self.rates(f"{run}-steps"))
            # The same after a death in the cool-down: the checkpoint knows that it has begun.
            before = self.saved(run)
            shutil.rmtree(self.checkpoints(run)[-1])
            self.train(run, ranks=ranks, train__steps=1000000, train__max_time="1s", **options)
            self.assertEqual(max(tupelo_runs.losses(self.folder / run)), last)
            self.assertEqual(before, self.saved(run))
            state = json.loads((self.checkpoints(run)[0] / "state.json").read_text())
            self.assertEqual(state["cooldown"], {"begin": last - 12, "steps": 12})

    def test_rates_follow_the_batch(self):
        for scaling, factor in (("linear", 4), ("sqrt", 2)):
            self.train(scaling, train__steps=2, optim__lr_scaling=scaling, optim__lr_reference_batch=4,
                       **STEADY)
            self.assertAlmostEqual(self.rates(scaling)[1], factor * 1e-3, delta=1e-15)

    def test_settings_without_effect_are_refused(self):
        for options, words in (
                ({"optim.optimizer": "lion", "optim.epsilon": "1e-8"},
                 ("optim.epsilon is 1e-08", "no effect", "lion")),
                ({"optim.momentum": 0.9}, ("optim.momentum", "adamw")),
                ({"optim.adamw-learning-rate": "1e-4"}, ("optim.adamw-learning-rate", "adamw")),
                ({"optim.optimizer": "muon", "optim.learning-rate": 0, "optim.adamw-learning-rate": 1},
                 ("optim.adamw-learning-rate", "auto")),
                ({"optim.lr-reference-batch": 8}, ("optim.lr-reference-batch", "none")),
                ({"optim.lr-scaling": "sqrt"}, ("optim.lr-reference-batch", "optim.learning-rate")),
                ({"optim.decay-steps": 3}, ("optim.decay-steps", "linear")),
                ({"optim.decay-shape": "linear"}, ("optim.decay-shape", "optim.cooldown is 0")),
                ({"optim.schedule": "wsd", "optim.cooldown": 2}, ("optim.cooldown", "optim.decay-steps")),
                ({"optim.warmup": "75%", "optim.cooldown": "50%"},
                 ("optim.warmup 75%", "optim.cooldown 50%", "4 steps")),
                ({"optim.cooldown": "soon"}, ("optim.cooldown 'soon'",)),
                ({"train.max-time": "6 hours"}, ("train.max-time", "6h30m")),
                ({"init-weights": "ema"}, ("init-weights", "init-from"))):
            result = self.train("refused", expect=USAGE, train__steps=4, **options)
            self.assert_error(result, USAGE, *words)
            self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    tupelo_runs.main()

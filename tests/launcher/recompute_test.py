"""Recomputing activations changes no bit of the trained parameters, and a budget chooses what to recompute."""

import hashlib
import json
import re

import tupelo_runs

USAGE = 2
DROPOUT = {"model__dropout": "0.1", "model__attention_dropout": "0.1"}


class Recompute(tupelo_runs.RunTest):

    def parameters(self, run_name, **options):
        self.train(run_name, train__steps=20, **DROPOUT, **options)
        files = list((self.folder / run_name / "checkpoints").glob("step-*/model.safetensors"))
        self.assertEqual(len(files), 1)
        return hashlib.sha256(files[0].read_bytes()).hexdigest()

    def memory(self, **options):
        settings = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
        rows = ("model.", "data.", "train.micro-batch")
        layout = {name: value for name, value in tupelo_runs.TINY.items() if name.startswith(rows)}
        result = tupelo_runs.run(tupelo_runs.command(
            "inspect", {**layout, **settings, "vocab-size": 160}, ("plan", "json")))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["memory"]

    def test_bitwise_equal_parameters(self):
        kept = self.parameters("kept")
        self.assertEqual(kept, self.parameters("kept-again"))
        for number, policy in enumerate(("full", "attention", "ffn", "every-2", "1", "0:ffn,1:attention")):
            self.assertEqual(kept, self.parameters(f"recompute-{number}", model__recompute=policy), policy)
        self.assertNotEqual(kept, self.parameters("other-seed", train__seed=2))

    def test_the_policy_is_said_and_may_change_when_a_run_goes_on(self):
        first = self.train("resumed", train__steps=4, model__recompute="all", **DROPOUT)
        self.assertIn("\nrecompute full\n", first.stdout)
        second = self.train("resumed", train__steps=8, model__recompute="0:attention", **DROPOUT)
        self.assertIn("\nrecompute 0:attention\n", second.stdout)
        self.assertIn("\nrecompute none\n", self.train("resumed", train__steps=12, **DROPOUT).stdout)

    def test_a_budget_chooses_alike_for_run_and_plan_and_all_ranks(self):
        none, full = self.memory(model__recompute="none"), self.memory(model__recompute="full")
        self.assertLess(full["activation_peak_bytes"], none["activation_peak_bytes"])
        self.assertEqual(self.memory(model__recompute=f"auto:{none['activation_peak_bytes']}")["recompute"], "none")
        budget = (none["activation_peak_bytes"] + full["activation_peak_bytes"]) // 2
        planned = self.memory(model__recompute=f"auto:{budget}")
        self.assertLessEqual(planned["activation_peak_bytes"], budget)
        self.assertGreater(planned["recomputed_flops"], 0)
        self.assertLess(planned["recomputed_flops"], full["recomputed_flops"])
        kept = self.parameters("plain")
        for ranks in (0, 2):
            result = self.train(f"budget-{ranks}", ranks=ranks, train__steps=20,
                                model__recompute=f"auto:{budget}", **DROPOUT)
            said = re.search(r"^recompute (\S+) \(auto:", result.stdout, re.MULTILINE)
            self.assertIsNotNone(said, result.stdout)
            self.assertNotEqual(said[1], "none")
        self.assertEqual(kept, self.parameters("budget-again", model__recompute=f"auto:{budget}"))

    def test_too_small_a_budget_says_what_full_needs(self):
        for ranks in (0, 2):
            result = self.train("small", ranks=ranks, expect=USAGE, model__recompute="auto:1000")
            self.assert_error(result, USAGE, "model.recompute", "even when every layer is recomputed (full)",
                              "KiB", "1000 bytes of auto")
        self.assertFalse((self.folder / "small").exists())

    def test_unknown_policies_are_refused(self):
        for wrong, words in (("atention", "did you mean 'attention'"), ("auto:lots", "auto:6GiB"),
                             ("0:fnn", "did you mean 'ffn'"), ("7", "layer 7 does not exist")):
            result = self.train("wrong", expect=USAGE, model__recompute=wrong)
            self.assert_error(result, USAGE, "recompute", words)

    def test_plan_adds_up(self):
        memory = self.memory(model__recompute="0:attention")
        parts = sum(layer["attention_bytes"] + layer["ffn_bytes"] for layer in memory["layers"])
        parts += sum(memory[name + "_bytes"] for name in ("embeddings", "positions", "mask_decoder", "head"))
        self.assertEqual(parts, memory["kept_bytes"])
        self.assertEqual([layer["recompute"] for layer in memory["layers"]][:2], ["attention", "none"])
        self.assertEqual(memory["gradient_bytes"], memory["parameter_bytes"])
        self.assertEqual(memory["optimizer_bytes"], 2 * memory["parameter_bytes"])
        self.assertEqual(memory["peak_bytes"], 4 * memory["parameter_bytes"] + memory["activation_peak_bytes"])
        longer = self.memory(model__recompute="0:attention", tokens=16)
        self.assertEqual(longer["tokens"], 16)


if __name__ == "__main__":
    tupelo_runs.main()

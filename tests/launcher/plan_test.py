"""`tupelo inspect --plan`: costs of a plan from settings or from a run, and every mistake in asking."""

import json

import tupelo_runs

USAGE = 2
BASE = {"model.input-position": "none", "model.position": "0-5:none,6-11:tupe-a"}


class Plan(tupelo_runs.RunTest):

    def inspect(self, options, flags=("plan",)):
        return tupelo_runs.run(tupelo_runs.command("inspect", options, flags))

    def plan(self, options):
        result = self.inspect(options, ("plan", "json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_settings(self):
        plan = self.plan(dict(BASE, **{"vocab-size": 100}))
        self.assertEqual(plan["position_parameters"], 1_576_704)
        self.assertEqual(plan["parameters"], 87_302_500)
        self.assertAlmostEqual(plan["position_share"], 1_576_704 / 87_302_500)
        self.assertEqual(plan["tokens"], 512)
        self.assertEqual(plan["plain_layer_flops_per_token"], 15_728_640)
        self.assertEqual([layer["encoding"] for layer in plan["layers"]],
                         ["none"] * 6 + ["tupe-a"] * 6)
        self.assertEqual([layer["group"] for layer in plan["layers"]], [-1] * 6 + [0] * 6)
        self.assertEqual([layer["parameters"] for layer in plan["layers"]],
                         [0] * 6 + [1_576_704] + [0] * 5)
        self.assertEqual([layer["extra_flops_per_token"] for layer in plan["layers"]],
                         [0] * 6 + [12 * 512] * 6)
        self.assertEqual(plan["layers"][6]["cpu"], {"path": "own", "kept_bytes_per_sequence": 0})
        self.assertEqual(plan["layers"][6]["cuda"]["path"], "fused-bias")

    def test_length_and_padding(self):
        short = self.plan(dict(BASE, tokens=64))
        self.assertEqual(short["layers"][6]["extra_flops_per_token"], 12 * 64)
        self.assertEqual(self.plan(dict(BASE, **{"model.max-positions": 128}))["tokens"], 128)
        self.assertEqual(self.plan(dict(BASE, **{"data.sequence-length": 96}))["tokens"], 96)
        padded = self.plan(dict(BASE, **{"data.packing": "doc"}))
        self.assertEqual(padded["layers"][6]["cuda"],
                         {"path": "own", "kept_bytes_per_sequence": 4 * 12 * 512 * 512})

    def test_config_file(self):
        config = self.folder / "plan.ini"
        config.write_text("[model]\nlayers = 2\nposition = all:t5\nhidden-size = 64\nheads = 4\n")
        plan = self.plan({"config": config})
        self.assertEqual([layer["encoding"] for layer in plan["layers"]], ["t5", "t5"])
        self.assertEqual(plan["layers"][0]["parameters"], 32 * 4)

    def test_table(self):
        text = self.inspect(dict(BASE, **{"model.position": "0-10:none,11:rope(layout=half)"})).stdout
        lines = text.splitlines()
        self.assertIn("extra FLOP/token", lines[0])
        self.assertEqual(lines[12].split()[:3], ["11", "rope(layout=half)", "0"])
        self.assertIn("4,608", lines[12])
        self.assertIn("position parameters", text)
        self.assertIn("15,728,640 FLOP per token", text)

    def test_run_and_checkpoint(self):
        self.train("planned", train__steps=3, train__save_every=2)
        run = self.folder / "planned"
        plan = self.plan({"run": run})
        held = json.loads(self.inspect({"path": run}, ("json",)).stdout)
        self.assertEqual(plan["parameters"], held["parameters"])
        self.assertEqual(plan["position"], held["position_plan"])
        self.assertEqual(plan["tokens"], 40)
        self.assertEqual(plan, self.plan({"run": run / "checkpoints" / "step-000000002"}))
        self.assertEqual(plan, self.plan({"path": run}))

    def test_errors(self):
        for options, words in (({"model.position": "all:tupe-q"}, ("tupe-q", "tupe-")),
                               ({"model.position": "0-10:none"}, ("layer 11", "missing")),
                               ({"model.position": "all:rope(base=2,base=3)"}, ("base", "twice")),
                               ({"model.input-position": "lerned"}, ("lerned", "learned")),
                               ({"model.mask-decoder": "edm"}, ("edm", "emd")),
                               ({"model.logn": "plane"}, ("model.logn", "plain")),
                               ({"model.input-position": "none"}, ("no position information",)),
                               ({"model.heads": "7"}, ("heads",)),
                               ({"tokens": "600", **BASE}, ("600", "512")),
                               ({"tokens": "600"}, ("600", "512", "--tokens")),
                               ({"tokens": "0"}, ("--tokens", "'0'")),
                               ({"vocab-size": "many"}, ("--vocab-size", "many"))):
            with self.subTest(options):
                self.assert_error(self.inspect(options), USAGE, *words)
        self.assertEqual(
            self.inspect({"model.input-position": "none", "model.allow-no-position": "true"}).returncode, 0)
        for options in ({"tokens": 5}, {"config": "x.ini"}, {"model.layers": 3}, {"run": "x"}):
            self.assert_error(self.inspect(dict(options, path=self.corpus), ()), USAGE, "--plan")
        self.assert_error(self.inspect({"run": self.folder, "model.layers": 3}), USAGE, "--run")
        self.assert_error(self.inspect({"run": self.folder / "nowhere"}), USAGE, "nowhere")
        self.assert_error(self.inspect({}, ("plan", "verify")), USAGE, "--verify")
        result = tupelo_runs.run([tupelo_runs.TUPELO, "inspect", str(self.corpus), "second"])
        self.assert_error(result, USAGE, "one PATH at a time", "second")


if __name__ == "__main__":
    tupelo_runs.main()

"""Rows that get longer and batches that get larger while a run goes on."""

import json

import tupelo_runs

USAGE = 2
RAMPS = {"data__length_ramp": "10:8,20:12", "train__batch_ramp": "4:3,8:10", "optim__schedule": "constant",
         "optim__warmup": 0, "train__validate_every": 0}


class Ramps(tupelo_runs.RunTest):
    documents = 60

    def figures(self, run, key):
        return {record["step"]: record[key] for record in tupelo_runs.records(self.folder / run)}

    def test_ranks_and_a_restart_change_nothing(self):
        self.train("one", train__steps=30, train__save_every=10, train__keep_checkpoints=9, **RAMPS)
        expected = tupelo_runs.losses(self.folder / "one")
        for name, more in (("two", {"ranks": 2}), ("small", {"train__micro_batch": 1})):
            self.train(name, train__steps=30, **more, **RAMPS)
            self.assert_close(expected, tupelo_runs.losses(self.folder / name), 1e-5)
            self.assertEqual(self.figures("one", "masks_hash"), self.figures(name, "masks_hash"))
        for steps in (5, 10, 30):  # before, between and behind the ramps
            self.train("parts", train__steps=steps, **RAMPS)
        self.assertEqual(expected, tupelo_runs.losses(self.folder / "parts"))
        # Tokens of a step: rows of at most the length of its phase.
        tokens = self.figures("one", "tokens")
        self.assertEqual(tokens[1], 4 * 10)
        self.assertEqual(tokens[4] - tokens[3], 8 * 10)
        self.assertEqual(tokens[9] - tokens[8], 8 * 20)
        self.assertLessEqual(tokens[13] - tokens[12], 16 * 40)
        self.assertGreater(tokens[13] - tokens[12], 16 * 20)

    def test_an_epoch_that_is_cut_is_accounted_for(self):
        self.train("cut", train__steps=60, **RAMPS)
        epochs = tupelo_runs.records(self.folder / "cut", "epoch")
        self.assertEqual([epoch["finished_epoch"] for epoch in epochs], list(range(len(epochs))))
        self.assertEqual([epoch["step"] for epoch in epochs if epoch["cut"]], [8, 12])
        self.assertEqual([epoch["rows"] for epoch in epochs if epoch["cut"]], [3 * 4 + 5 * 8, 2 * 8 + 2 * 16])
        self.assertTrue(all(epoch["complete"] for epoch in epochs))
        self.assertGreater(len(epochs), 3)

    def test_errors(self):
        self.train("ramped", train__steps=2, **RAMPS)
        result = self.train("ramped", train__steps=4, expect=USAGE, **{**RAMPS, "data__length_ramp": "none"})
        self.assert_error(result, USAGE, "data.length-ramp", "10:8,20:12")
        for options, words in (({"train__batch_ramp": "64"}, ("train.batch-ramp", "VALUE:STEP")),
                               ({"data__length_ramp": "49:5"}, ("49", "model.max-positions")),
                               ({"train__batch_ramp": "1:5", "ranks": 2}, ("1", "ranks"))):
            result = self.train("wrong", train__steps=2, expect=USAGE, **options)
            self.assert_error(result, USAGE, *words)

    def test_config_is_reproducible(self):
        self.train("first", train__steps=2, **RAMPS)
        config = self.folder / "first" / "config.ini"
        self.assertIn("length-ramp = 10:8,20:12", config.read_text())
        line = tupelo_runs.command("train", {"corpus": self.corpus, "run": self.folder / "second",
                                             "config": config})
        self.assertEqual(tupelo_runs.run(line).returncode, 0)
        self.assertEqual(tupelo_runs.losses(self.folder / "first"), tupelo_runs.losses(self.folder / "second"))
        self.assertEqual(json.loads((self.folder / "second" / "run.json").read_text())
                         ["config"]["data.length-ramp"]["value"], "10:8,20:12")


if __name__ == "__main__":
    tupelo_runs.main()

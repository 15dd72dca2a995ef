"""Training on several corpora at once."""

import json

import tupelo_runs

USAGE, CORRUPT = 2, 3
STILL = {"train__validate_every": 5, "optim__schedule": "constant", "optim__warmup": 0}


class Mixture(tupelo_runs.RunTest):
    documents = 120

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.second = cls.folder / "second"
        text = cls.folder / "second.txt"
        tupelo_runs.write_text(text, 200, seed=9)
        vocabulary = cls.folder / "corpus" / "tokenizer" / "vocab.txt"
        result = tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": text, "output": cls.second, "vocab": vocabulary, "held-out": "10%"}))
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def mixed(self, name, steps, **more):
        options = {"corpus": [self.corpus, self.second], "data__mixture": "0.75,0.25", "train__steps": steps,
                   **STILL, **more}
        return self.train(name, **options)

    def figures(self, run, key):
        return {record["step"]: record[key] for record in tupelo_runs.records(self.folder / run)}

    def test_ranks_and_a_restart_change_nothing(self):
        self.mixed("one", 12)
        expected = tupelo_runs.losses(self.folder / "one")
        self.mixed("three", 12, ranks=3)
        self.assert_close(expected, tupelo_runs.losses(self.folder / "three"), 1e-5)
        self.assertEqual(self.figures("one", "masks_hash"), self.figures("three", "masks_hash"))
        for steps in (5, 12):
            self.mixed("parts", steps)
        self.assertEqual(expected, tupelo_runs.losses(self.folder / "parts"))

    def test_every_epoch_of_every_corpus_is_complete(self):
        self.mixed("long", 120, train__validate_every=0)
        epochs = tupelo_runs.records(self.folder / "long", "epoch")
        self.assertTrue(all(epoch["complete"] for epoch in epochs))
        finished = [[epoch["finished_epoch"] for epoch in epochs if epoch["corpus"] == corpus]
                    for corpus in (0, 1)]
        for numbers in finished:
            self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreater(len(finished[0]), 3 * len(finished[1]))
        self.assertGreaterEqual(len(finished[1]), 1)

    def test_each_corpus_is_evaluated(self):
        self.mixed("measured", 10)
        validation = tupelo_runs.records(self.folder / "measured", "validation")[-1]
        self.assertEqual(len(validation["corpora"]), 2)
        masked = [part["validation_masked_tokens"] for part in validation["corpora"]]
        self.assertAlmostEqual(validation["validation_loss"], sum(
            part["validation_loss"] * n for part, n in zip(validation["corpora"], masked)) / sum(masked))
        line = tupelo_runs.command("eval", {"run": self.folder / "measured"}, ["json"])
        both = json.loads(tupelo_runs.run(line).stdout)
        self.assertEqual([part["corpus"] for part in both["corpora"]], [str(self.corpus), str(self.second)])
        self.assertEqual(both["masked_tokens"], sum(part["masked_tokens"] for part in both["corpora"]))
        alone = json.loads(tupelo_runs.run(line + ["--corpus", str(self.second)]).stdout)
        self.assertEqual(alone["loss"], both["corpora"][1]["loss"])
        result = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / "measured", "lengths": "20"}))
        self.assert_error(result, USAGE, "--corpus")
        self.assertEqual(json.loads((self.folder / "measured" / "run.json").read_text())["corpora"],
                         [str(self.corpus), str(self.second)])

    def test_errors(self):
        for mixture, words in (("0.5", ("1 weights for 2 corpora",)), ("tokens^2", ("data.mixture", "tokens^2")),
                               ("1,0.0001", ("1/2048",))):
            result = self.mixed("wrong", 2, data__mixture=mixture, expect=USAGE, ranks=2)
            self.assert_error(result, USAGE, *words)
            self.assertFalse((self.folder / "wrong").exists())
        other = self.folder / "other"
        text = self.folder / "other.txt"
        tupelo_runs.write_text(text, 50, seed=3, alphabet=70)
        self.prepare(text, other)
        result = self.mixed("wrong", 2, corpus=[self.corpus, other], expect=CORRUPT)
        self.assert_error(result, CORRUPT, "vocabular")
        self.mixed("settled", 2)
        result = self.mixed("settled", 3, data__mixture="tokens", expect=USAGE)
        self.assert_error(result, USAGE, "data.mixture")


if __name__ == "__main__":
    tupelo_runs.main()

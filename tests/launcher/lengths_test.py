"""`tupelo eval --lengths`: rows shorter and longer than those of training."""

import json
import math

import tupelo_runs

USAGE = 2
POLICIES = ("error", "align", "scale", "hier", "copy")
LONGEST = 48  # model.max-positions


class Lengths(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = {}
        for name, position, positions in (
                ("tables", "learned", "0:tupe-full(pos_dim=8),1:tupe-r,2:tupe-a"),
                ("turned", "none", "all:rope")):
            settings = dict(tupelo_runs.TINY, corpus=cls.corpus, run=cls.folder / name)
            settings.update({"train.steps": 40, "optim.learning-rate": "5e-3",
                             "train.validate-every": 0, "model.input-position": position,
                             "model.position": positions})
            cls.trained[name] = tupelo_runs.run(tupelo_runs.command("train", settings))

    def setUp(self):
        for result in self.trained.values():
            self.assertEqual(result.returncode, 0, result.stderr)

    def evaluate(self, run, flags=("json",), ranks=0, **options):
        options = {name.replace("_", "-"): value for name, value in options.items()}
        return tupelo_runs.run(tupelo_runs.command(
            "eval", dict(options, run=self.folder / run), flags, ranks))

    def figures(self, run, **options):
        result = self.evaluate(run, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def by_length(self, run, lengths, **options):
        figures = self.figures(run, lengths=lengths, **options)
        self.assertEqual([row["length"] for row in figures["lengths"]],
                         [int(length) for length in lengths.split(",")])
        for row in figures["lengths"]:
            self.assertEqual(row["extended"], row["length"] > LONGEST)
        return {row["length"]: row for row in figures["lengths"]}

    def test_lengths_that_the_model_covers_do_not_depend_on_the_policy(self):
        for run in self.trained:
            plain = self.by_length(run, "16,40,48")
            self.assertEqual(plain[40]["loss"], self.figures(run)["loss"])
            for policy in POLICIES[1:]:
                longer = self.by_length(run, "16,40,48,64", extend_policy=policy)
                for length, row in plain.items():
                    self.assertEqual(longer[length], row)
        turned = self.by_length("turned", "16,40,48")
        other = self.by_length("turned", "16,40,48,64", rope_scaling="ntk", rope_factor="1.5",
                               logn="plain")
        for length, row in turned.items():
            self.assertEqual(other[length], row)

    def test_every_length_has_the_same_masked_tokens(self):
        rows = self.by_length("tables", "16,40,72,200", extend_policy="align")
        self.assertEqual(len({row["masked_tokens"] for row in rows.values()}), 1)
        for length, row in rows.items():
            self.assertAlmostEqual(row["perplexity"], math.exp(row["loss"]), places=6)
            self.assertLess(row["tokens"], row["rows"] * length + 1)
            self.assertGreater(row["attention_entropy"], 0)
            self.assertLess(row["attention_entropy"], math.log(length))
            self.assertGreater(row["relative_attention_entropy"], 0)
            self.assertLess(row["relative_attention_entropy"], 1)
        self.assertEqual(rows[16]["rows"], math.ceil((rows[16]["tokens"] - 2 * rows[16]["rows"]) / 14))

    def test_policies_say_what_stands_for_missing_positions(self):
        losses = {policy: self.by_length("tables", "72", extend_policy=policy)[72]["loss"]
                  for policy in POLICIES[1:]}
        self.assertEqual(len(set(losses.values())), len(losses))
        other_alpha = self.by_length("tables", "72", extend_policy="hier", extend_alpha="0.3")
        self.assertNotEqual(other_alpha[72]["loss"], losses["hier"])

    def test_rotations_and_temperature_beyond_the_trained_length(self):
        plain = self.by_length("turned", "96")[96]
        for options in ({"rope_scaling": "pi"}, {"rope_scaling": "yarn"},
                        {"rope_scaling": "pi", "rope_factor": 3}, {"logn": "plain"}):
            other = self.by_length("turned", "96", **options)[96]
            self.assertNotEqual(other["loss"], plain["loss"], options)
        same = self.by_length("turned", "96", rope_scaling="pi", rope_factor=2)[96]
        self.assertEqual(same, self.by_length("turned", "96", rope_scaling="pi")[96])
        sharper = self.by_length("turned", "96", logn="plain")[96]  # ln 96 / ln 48 > 1
        self.assertLess(sharper["attention_entropy"], plain["attention_entropy"])

    def test_rows_are_counted_in_tokens(self):
        rows = self.by_length("tables", "20,40", rows=12)
        self.assertEqual([rows[20]["rows"], rows[40]["rows"]], [12, 6])

    def test_ranks_share_the_rows(self):
        alone = self.by_length("tables", "40,64", extend_policy="copy")
        shared = json.loads(self.evaluate("tables", ranks=2, lengths="40,64",
                                          extend_policy="copy").stdout)["lengths"]
        for row in shared:
            for name, value in alone[row["length"]].items():
                self.assertAlmostEqual(row[name], value, delta=1e-6 * abs(value), msg=name)

    def test_table(self):
        text = self.evaluate("tables", flags=(), lengths="40,64", extend_policy="align").stdout
        self.assertIn("attention entropy", text)
        self.assertIn("as trained", text)
        self.assertIn("extended", text)

    def test_errors(self):
        for options, words in (({"lengths": "40,49"}, ("49", "48", "align", "scale", "hier", "copy")),
                               ({"lengths": "49", "extend_policy": "error"}, ("49", "hier")),
                               ({"lengths": "4000", "extend_policy": "hier"}, ("4000", "align")),
                               ({"lengths": "40,x"}, ("--lengths", "'x'")),
                               ({"lengths": "40,40"}, ("--lengths", "twice")),
                               ({"lengths": ""}, ("--lengths",)),
                               ({"lengths": "3"}, ("--lengths", "from 4")),
                               ({"lengths": "64", "extend_policy": "aline"}, ("aline", "align")),
                               ({"lengths": "64", "extend_policy": "hier", "extend_alpha": "0.5"},
                                ("--extend-alpha", "0.5")),
                               ({"lengths": "64", "extend_policy": "copy", "extend_alpha": "0.3"},
                                ("--extend-alpha", "hier")),
                               ({"lengths": "64", "rope_scaling": "none", "rope_factor": "2"},
                                ("--rope-factor", "none")),
                               ({"lengths": "64", "rope_scaling": "nkt"}, ("--rope-scaling", "ntk")),
                               ({"lengths": "64", "rope_factor": "2"}, ("--rope-factor", "--rope-scaling")),
                               ({"lengths": "64", "logn": "plane"}, ("--logn", "plain")),
                               ({"lengths": "64", "rope_scaling": "pi"}, ("--rope-scaling", "rotates")),
                               ({"lengths": "40,48", "rope_scaling": "pi"},
                                ("--rope-scaling", "no effect", "48")),
                               ({"lengths": "40", "extend_policy": "copy"}, ("--extend-policy", "no effect")),
                               ({"lengths": "40", "logn": "plain"}, ("--logn", "no effect")),
                               ({"lengths": "40,"}, ("--lengths", "''")),
                               ({"lengths": "64", "rope_scaling": "pi", "rope_factor": "1"},
                                ("--rope-factor", "stretches nothing")),
                               ({"extend_policy": "copy"}, ("--extend-policy", "--lengths")),
                               ({"logn": "plain"}, ("--logn", "--lengths"))):
            with self.subTest(options):
                self.assert_error(self.evaluate("tables", **options), USAGE, *words)
        result = self.evaluate("turned", lengths="64", rope_scaling="pi", rope_factor="0.5")
        self.assert_error(result, USAGE, "factor")


if __name__ == "__main__":
    tupelo_runs.main()

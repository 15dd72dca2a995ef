"""New runs from the weights of another: as they are, with more or fewer positions, with frozen positions."""

import json
import math
import struct

import tupelo_runs

USAGE, CORRUPT = 2, 3
POSITIONS = "0:tupe-full(pos_dim=8),1:tupe-r,2:deberta"
TABLES = {"roberta.embeddings.position_embeddings.weight": (1 + 48, 1 + 72),
          "roberta.position.0.pos.weight": (48, 72),
          "roberta.position.0.rel_pos_bias.weight": (95, 143),
          "roberta.position.1.pos.weight": (49, 73),
          "roberta.position.2.rel_embeddings.weight": (96, 144)}
STILL = {"optim.learning-rate": 0, "train.steps": 1}  # one step that moves nothing


def tensors(run, step=None):
    """Name -> (shape, bytes) of a checkpoint's model."""
    folders = sorted((run / "checkpoints").glob("step-*"))
    folder = folders[-1] if step is None else run / "checkpoints" / f"step-{step:09d}"
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (tuple(entry["shape"]), data[8 + size:][slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def position_names(names):
    return {name for name in names if "position" in name}


class InitialWeights(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = cls.folder / "source"
        cls.turned = cls.folder / "turned"
        model = dict(tupelo_runs.TINY, corpus=cls.corpus, run=cls.source)
        model.update({"model.position": POSITIONS, "train.steps": 20, "train.save-every": 10,
                      "optim.learning-rate": "5e-3", "train.validate-every": 0})
        cls.trained = [tupelo_runs.run(tupelo_runs.command("train", model))]
        model.update({"run": cls.turned, "model.position": "0:rope,1:deberta-v2,2:none",
                      "model.input-position": "none", "model.logn": "plain", "train.steps": 4})
        cls.trained.append(tupelo_runs.run(tupelo_runs.command("train", model)))

    def setUp(self):
        for result in self.trained:
            self.assertEqual(result.returncode, 0, result.stderr)

    def start(self, name, options=None, ranks=0, flags=(), source=None):
        """Trains with everything but the model's settings, which come from the source."""
        settings = {key: value for key, value in tupelo_runs.TINY.items() if "model." not in key}
        settings.update({"corpus": self.corpus, "run": self.folder / name,
                         "init-from": source or self.source, "train.validate-every": 0})
        settings.update(options or {})
        return tupelo_runs.run(tupelo_runs.command("train", settings, flags, ranks))

    def started(self, name, options=None, **more):
        result = self.start(name, options, **more)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return self.folder / name

    def losses_by_length(self, run, lengths, **options):
        options = {name.replace("_", "-"): value for name, value in options.items()}
        result = tupelo_runs.run(tupelo_runs.command(
            "eval", dict(options, run=run, lengths=lengths), ["json"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        return {row["length"]: row["loss"] for row in json.loads(result.stdout)["lengths"]}

    def origin(self, run):
        return json.loads((run / "run.json").read_text()).get("initialized_from")

    def settings(self, run):
        text = (run / "config.ini").read_text()
        return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)

    def test_weights_are_taken_over_and_nothing_else(self):
        run = self.started("same", STILL)
        self.assertEqual(tensors(run), tensors(self.source))
        self.assertEqual(self.losses_by_length(run, "40"), self.losses_by_length(self.source, "40"))
        self.assertEqual([record["step"] for record in tupelo_runs.records(run)], [1])
        self.assertEqual(self.settings(run)["position"], POSITIONS)
        origin = self.origin(run)
        self.assertEqual(origin["step"], 20)
        self.assertIn("step-000000020", origin["checkpoint"])
        self.assertEqual(origin["resized_tables"], [])
        self.assertIsNone(self.origin(self.source))

    def test_an_older_checkpoint(self):
        older = self.source / "checkpoints" / "step-000000010"
        run = self.started("older", STILL, source=older)
        self.assertEqual(tensors(run), tensors(self.source, 10))
        self.assertNotEqual(tensors(run), tensors(self.source, 20))
        self.assertEqual(self.origin(run)["step"], 10)

    def test_more_positions_without_a_change_at_old_lengths(self):
        before = self.losses_by_length(self.source, "16,40,48")
        for policy in ("copy", "hier"):
            run = self.started(f"more-{policy}", {**STILL, "extend": 72, "extend-policy": policy})
            self.assertEqual(self.losses_by_length(run, "16,40,48"), before)
            old, new = tensors(self.source), tensors(run)
            self.assertEqual({name: (old[name][0][0], new[name][0][0]) for name in old
                              if old[name][0] != new[name][0]}, TABLES)
            for name in set(old) - set(TABLES):
                self.assertEqual(old[name], new[name], name)
            for name in TABLES:
                if "rel" not in name:
                    self.assertTrue(new[name][1].startswith(old[name][1]), name)
            self.assertEqual(self.settings(run)["max-positions"], "72")
            self.assertEqual(self.origin(run)["extended_to"], 72)
            self.assertEqual(self.origin(run)["max_positions"], 48)
            self.assertEqual(self.origin(run)["extend_policy"], policy)
            self.assertEqual(set(self.origin(run)["resized_tables"]), set(TABLES))

    def test_rewritten_tables_say_what_the_policy_says(self):
        for policy in ("align", "scale", "hier", "copy"):
            run = self.started(f"longer-{policy}", {**STILL, "extend": 72, "extend-policy": policy})
            direct = self.losses_by_length(self.source, "72", extend_policy=policy)[72]
            self.assertAlmostEqual(self.losses_by_length(run, "72")[72], direct,
                                   delta=2e-6 * direct)

    def test_longer_rows_can_be_trained(self):
        run = self.started("trained-longer", {
            "extend": 72, "extend-policy": "hier", "extend-alpha": "0.3",
            "data.sequence-length": 72, "train.steps": 3})
        self.assertEqual(len(tupelo_runs.losses(run)), 3)
        self.assertEqual(self.origin(run)["extend_alpha"], 0.3)

    def test_what_follows_the_length_stays(self):
        run = self.started("pinned", {**STILL, "extend": 96}, source=self.turned)
        self.assertEqual(self.losses_by_length(run, "16,40"), self.losses_by_length(self.turned, "16,40"))
        settings = self.settings(run)
        self.assertEqual(settings["position"], "0:rope(orig=48),1:deberta-v2(max_distance=48),2:none")
        self.assertEqual(settings["logn-length"], "48")
        longer = self.losses_by_length(run, "90")
        self.assertEqual(longer, self.losses_by_length(self.turned, "90"))

    def test_fewer_positions(self):
        run = self.started("fewer", {**STILL, "extend": 24, "positions": "truncate",
                                     "data.sequence-length": 24})
        # Batches of other numbers of rows: equal up to rounding.
        self.assert_close(self.losses_by_length(self.source, "16,24"),
                          self.losses_by_length(run, "16,24"), 1e-6)
        shapes = {name: shape[0] for name, (shape, _) in tensors(run).items() if name in TABLES}
        self.assertEqual(list(shapes[name] for name in TABLES), [25, 24, 47, 25, 48])

    def test_frozen_positions(self):
        run = self.started("frozen", {"positions": "freeze", "train.steps": 4})
        old, new = tensors(self.source), tensors(run)
        self.assertEqual({name for name in old if old[name] == new[name]}, position_names(old))
        self.assertEqual(len(position_names(old)), 19)
        update = self.started("updated", {"positions": "update", "train.steps": 4})
        self.assertFalse({name for name in TABLES if old[name] == tensors(update)[name]})

    def test_frozen_for_some_epochs(self):
        epoch = tupelo_runs.records(self.source)[0]["epoch"]  # of one step
        frozen = math.ceil(0.1 / epoch)
        self.assertGreater(frozen, 1)
        run = self.started("thawed", {
            "optim.position-frozen-steps": "0.1 epochs", "train.steps": frozen + 1,
            "train.save-every": 1, "train.keep-checkpoints": 100})
        old = tensors(self.source)
        for name in TABLES:
            self.assertEqual(old[name], tensors(run, frozen)[name])
            self.assertNotEqual(old[name], tensors(run, frozen + 1)[name])

    def test_going_on_needs_the_source_no_more(self):
        model = dict(tupelo_runs.TINY, corpus=self.corpus, run=self.folder / "gone")
        model.update({"model.position": POSITIONS, "train.steps": 2, "train.validate-every": 0})
        self.assertEqual(tupelo_runs.run(tupelo_runs.command("train", model)).returncode, 0)
        options = {"extend": 72, "extend-policy": "copy", "train.steps": 6, "train.save-every": 3,
                   "optim.schedule": "constant", "optim.warmup": 0}
        straight = self.started("straight", options, source=self.folder / "gone")
        first = self.started("interrupted", {**options, "train.steps": 3}, source=self.folder / "gone")
        origin = self.origin(first)
        (self.folder / "gone").rename(self.folder / "elsewhere")
        self.started("interrupted", options, source=self.folder / "gone")
        self.assertEqual(tupelo_runs.losses(first), tupelo_runs.losses(straight))
        self.assertEqual(self.origin(first), origin)
        self.assertEqual(self.settings(first)["max-positions"], "72")
        result = self.start("interrupted", {**options, "extend": 96}, source=self.folder / "gone")
        self.assert_error(result, USAGE, "--extend", "96", "72")

    def test_ranks_start_alike(self):
        options = {"extend": 72, "extend-policy": "align", "train.steps": 3}
        alone = self.started("alone", options)
        shared = self.started("shared", options, ranks=2)
        self.assert_close(tupelo_runs.losses(alone), tupelo_runs.losses(shared), 1e-5)

    def test_settings_of_the_source_come_after_the_defaults(self):
        result = self.start("printed", {"model.dropout": "0.25"}, flags=["print-config"])
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        self.assertIn("dropout = 0.25 # --model.dropout", lines)
        self.assertTrue([line for line in lines if line.startswith("layers = 3 # ")
                         and "source/checkpoints/step-000000020" in line])
        self.assertIn("steps = 1000 # default", lines)

    def test_errors(self):
        for options, words in (
                ({"extend": 72}, ("--extend-policy", "align, scale, hier or copy", "72", "48")),
                ({"extend": 72, "extend-policy": "error"}, ("--extend-policy",)),
                ({"extend": 72, "extend-policy": "coppy"}, ("--extend-policy", "copy")),
                ({"extend": 3000, "extend-policy": "hier"},
                 ("--extend: 3000 positions", "that --extend-policy hier reaches")),
                ({"extend": 72, "extend-policy": "hier", "extend-alpha": 1}, ("--extend-alpha",)),
                ({"extend": "many"}, ("--extend", "'many'")),
                ({"extend": 48}, ("--extend", "48 positions already")),
                ({"extend": 24, "extend-policy": "align", "positions": "truncate"},
                 ("--extend-policy", "truncate")),
                ({"extend": 24}, ("--extend", "truncate")),
                ({"extend": 72, "extend-policy": "copy", "positions": "truncate"}, ("truncate", "72")),
                ({"positions": "truncate"}, ("truncate", "--extend")),
                ({"positions": "freze"}, ("optim.positions", "freeze")),
                ({"optim.position-frozen-steps": "1 week"}, ("position-frozen-steps", "epochs")),
                ({"model.max-positions": 72}, ("model.max-positions", "48", "--extend")),
                ({"model.max-positions": 64, "extend": 72, "extend-policy": "copy"}, ("64", "48")),
                ({"model.layers": 2, "model.position": "all:none"},
                 ("model.layers is 2 here and 3 there", "parameter")),
                ({"model.hidden-size": 64}, ("model.hidden-size is 64 here", "shape")),
                ({"extend": 72, "extend-policy": "align", "extend-alpha": 0.3},
                 ("--extend-alpha", "hier")),
                ({"extend-policy": "copy"}, ("--extend-policy", "--extend"))):
            with self.subTest(options):
                result = self.start("wrong", {"train.steps": 1, **options}, ranks=2)
                self.assert_error(result, USAGE, *words)
                self.assertFalse(list((self.folder / "wrong").glob("checkpoints/step-*")))
        result = self.train("wrong", extend=72, expect=USAGE)
        self.assert_error(result, USAGE, "--extend", "--init-from")
        result = self.start("wrong", source=self.folder / "nowhere")
        self.assert_error(result, USAGE, "nowhere")
        self.assertFalse((self.folder / "wrong").exists())

    def test_a_run_goes_on_from_where_it_began_only(self):
        run = self.started("begun", STILL)
        older = self.source / "checkpoints" / "step-000000010"
        for source in (self.turned, older):
            result = self.start("begun", {"train.steps": 3}, source=source)
            self.assert_error(result, USAGE, "--init-from", "step-000000020")
        self.started("begun", {"train.steps": 3}, source=f"{self.source}/")
        self.assertEqual([record["step"] for record in tupelo_runs.records(run)], [1, 2, 3])
        fresh = self.folder / "fresh"
        model = dict(tupelo_runs.TINY, corpus=self.corpus, run=fresh, **{"train.steps": 1})
        self.assertEqual(tupelo_runs.run(tupelo_runs.command("train", model)).returncode, 0)
        result = self.start("fresh", {"train.steps": 3})
        self.assert_error(result, USAGE, "--init-from", "no other one")

    def test_a_run_goes_on_under_the_extension_it_began_with_only(self):
        longer = {"extend": 72, "extend-policy": "hier", "extend-alpha": "0.3", "train.steps": 1}
        run = self.started("extended", longer)
        for change, words in (({"extend-policy": "copy", "extend-alpha": None}, ("copy", "hier with alpha 0.3")),
                              ({"extend-alpha": "0.4"}, ("alpha 0.4", "alpha 0.3")),
                              ({"extend": 96}, ("--extend is 96", "72 positions"))):
            options = {name: value for name, value in {**longer, **change, "train.steps": 2}.items() if value}
            self.assert_error(self.start("extended", options), USAGE, "--extend", *words)
        self.started("extended", {**longer, "train.steps": 2})
        self.assertEqual([record["step"] for record in tupelo_runs.records(run)], [1, 2])

    def test_another_vocabulary(self):
        text, corpus = self.folder / "other.txt", self.folder / "other"
        tupelo_runs.write_text(text, seed=11, alphabet=90)
        self.prepare(text, corpus)
        result = self.start("foreign", {"corpus": corpus}, ranks=2)
        self.assert_error(result, CORRUPT, "vocabulary", "--init-from")


if __name__ == "__main__":
    tupelo_runs.main()

"""What each verb prints and writes when all goes well."""

import json
import math
import os
import xml.etree.ElementTree

import tupelo_runs

EXPECTED_KEYS = ["step", "epoch", "loss", "masked_accuracy", "masked_tokens", "learning_rate",
                 "grad_norm", "tokens", "tokens_per_second", "loader_wait_ms", "loader_late_steps",
                 "peak_memory_bytes"]


class Commands(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_folder = cls.folder / "run"
        settings = dict(tupelo_runs.TINY, corpus=cls.corpus, run=cls.run_folder)
        settings.update({"train.steps": 150, "train.validate-every": 50, "optim.learning-rate": "5e-3"})
        cls.trained = tupelo_runs.run(tupelo_runs.command("train", settings))

    def tupelo(self, *arguments):
        return tupelo_runs.run([tupelo_runs.TUPELO, *map(str, arguments)])

    def test_training_learns_and_logs(self):
        self.assertEqual(self.trained.returncode, 0, self.trained.stderr)
        steps = tupelo_runs.records(self.run_folder)
        self.assertEqual([record["step"] for record in steps], list(range(1, 151)))
        for record in steps:
            for key in EXPECTED_KEYS:
                self.assertIn(key, record)
            self.assertEqual(record["loader_late_steps"] == 0, record["loader_wait_ms"] == 0)
            self.assertLessEqual(record["loader_late_steps"], 1)  # a record for each step
            self.assertGreater(record["peak_memory_bytes"], 10 << 20)
        peaks = [record["peak_memory_bytes"] for record in steps]
        self.assertEqual(peaks, sorted(peaks))
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] - 0.3)
        validations = tupelo_runs.records(self.run_folder, "validation")
        self.assertEqual([record["step"] for record in validations], [50, 100, 150])
        self.assertIn("ETA", self.trained.stdout)

    def test_resolved_config_reproduces_the_run(self):
        again = self.folder / "again"
        result = self.tupelo("train", "--config", self.run_folder / "config.ini", "--corpus",
                             self.corpus, "--run", again)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(tupelo_runs.losses(self.run_folder), tupelo_runs.losses(again))

    def test_eval(self):
        result = self.tupelo("eval", "--run", self.run_folder, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = json.loads(result.stdout)
        last = tupelo_runs.records(self.run_folder, "validation")[-1]
        self.assertAlmostEqual(figures["loss"], last["validation_loss"], places=6)
        self.assertAlmostEqual(figures["perplexity"], math.exp(figures["loss"]), places=6)
        self.assertLess(figures["loss"], figures["unigram_entropy"])
        ranks = tupelo_runs.run(tupelo_runs.command(
            "eval", {"run": self.run_folder, "corpus": self.corpus}, ["json"], ranks=2))
        self.assertAlmostEqual(json.loads(ranks.stdout)["loss"], figures["loss"], places=6)
        words = self.tupelo("eval", "--run", self.run_folder).stdout
        for word in ("held-out loss", "perplexity", "masked accuracy", "unigram entropy"):
            self.assertIn(word, words)

    def test_inspect(self):
        corpus = json.loads(self.tupelo("inspect", self.corpus, "--json", "--verify").stdout)
        self.assertEqual(corpus["kind"], "corpus")
        self.assertEqual(corpus["train"]["documents"] + corpus["held_out"]["documents"],
                         self.documents)
        run = json.loads(self.tupelo("inspect", self.run_folder, "--json").stdout)
        self.assertEqual(run["step"], 150)
        self.assertIn("tupe-r", run["position_plan"])
        self.assertEqual(run["parameters"],
                         sum(math.prod(tensor["shape"]) for tensor in run["tensors"]))
        for folder in (self.corpus, self.run_folder):
            self.assertIn("digest" if folder == self.corpus else "position plan",
                          self.tupelo("inspect", folder).stdout)

    def test_plot_replaces_ordinary_files_only(self):
        target, link = self.folder / "target.svg", self.folder / "link.svg"
        target.write_text("old")
        result = self.tupelo("plot", "--run", self.run_folder, "--output", target)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no picture of this kind", result.stderr)
        self.assertEqual(target.read_text(), "old")
        target.write_text("<svg></svg>")
        link.symlink_to(target)
        self.tupelo("plot", "--run", self.run_folder, "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertIn("polyline", target.read_text())
        pipe, folder = self.folder / "pipe.svg", self.folder / "folder.svg"
        os.mkfifo(pipe)
        folder.mkdir()
        result = self.tupelo("plot", "--run", self.run_folder, "--output", self.folder / "x.png")
        self.assertEqual(result.returncode, 2)
        self.assertIn(".svg", result.stderr)
        for output in (pipe, folder):
            result = self.tupelo("plot", "--run", self.run_folder, "--output", output)
            self.assertEqual(result.returncode, 2)
            self.assertIn("is not an ordinary file", result.stderr)
        self.assertTrue(pipe.is_fifo())

    def test_plot(self):
        picture = self.folder / "curve.svg"
        result = self.tupelo("plot", "--run", self.run_folder, "--output", picture)
        self.assertEqual(result.returncode, 0, result.stderr)
        root = xml.etree.ElementTree.parse(picture).getroot()
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.attrib["points"].split()) for line in lines], [150, 3])

    def test_prepare_reports_and_any_thread_count_gives_the_same_bytes(self):
        trees = []
        for threads in (1, 4):
            output = self.folder / f"threads{threads}"
            result = tupelo_runs.run(tupelo_runs.command("prepare", {
                "input": self.text, "output": output, "train-vocab": 160, "threads": threads},
                ["json"]))
            self.assertEqual(json.loads(result.stdout)["documents"], self.documents)
            trees.append({str(file.relative_to(output)): file.read_bytes()
                          for file in sorted(output.rglob("*")) if file.is_file()})
        self.assertEqual(trees[0], trees[1])

    def test_min_count_decides_about_rare_characters(self):
        text = self.folder / "rare.txt"
        text.write_text(self.text.read_text(encoding="utf-8") + "\n\n麤\n", encoding="utf-8")
        for min_count, known in ((1, True), (2, False)):
            output = self.folder / f"min-count{min_count}"
            result = tupelo_runs.run(tupelo_runs.command("prepare", {
                "input": text, "output": output, "train-vocab": 400, "held-out": 0,
                "min-count": min_count}))
            self.assertEqual(result.returncode, 0, result.stderr)
            vocabulary = (output / "tokenizer" / "vocab.txt").read_text(encoding="utf-8")
            self.assertEqual("麤" in vocabulary.splitlines(), known)

    def test_help_for_everything(self):
        overview = self.tupelo("--help")
        self.assertEqual(overview.returncode, 0)
        for verb in ("prepare", "train", "eval", "inspect", "plot"):
            self.assertIn(verb, overview.stdout)
            text = self.tupelo(verb, "--help")
            self.assertEqual(text.returncode, 0)
            self.assertIn("usage:", text.stdout)
        self.assertIn("--optim.position-lr-multiplier", self.tupelo("train", "--help").stdout)
        self.assertEqual(self.tupelo().returncode, 2)

    def test_precedence_and_origins(self):
        config = self.folder / "some.ini"
        config.write_text("[train]\nsteps = 11\nseed = 12\n\n[model]\nlayers = 13\n")
        environment = dict(os.environ, TUPELO_TRAIN_SEED="22", TUPELO_MODEL_LAYERS="23")
        result = tupelo_runs.run([tupelo_runs.TUPELO, "train", "--print-config", "--config",
                                  str(config), "--model.layers", "33"], env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        self.assertIn(f"steps = 11 # {config}:2", lines)
        self.assertIn("seed = 22 # $TUPELO_TRAIN_SEED", lines)
        self.assertIn("layers = 33 # --model.layers", lines)
        self.assertIn("packing = full # default", lines)


if __name__ == "__main__":
    tupelo_runs.main()

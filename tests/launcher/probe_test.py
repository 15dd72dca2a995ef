"""Looks at attention in training and offline: what they tell, and that training does not notice them."""

import json
import math
import re
import resource
import signal
import xml.etree.ElementTree

import tupelo_runs

USAGE, CORRUPT, STORAGE = 2, 3, 74
SVG = "{http://www.w3.org/2000/svg}"
PATHS = ["cc", "cp", "pc", "pp", "bias"]
ENCODINGS = ["tupe-full(pos_dim=8)", "tupe-r", "floater(solver=euler,substeps=1,refresh_every=2)"]
PLAN = ",".join(f"{layer}:{encoding}" for layer, encoding in enumerate(ENCODINGS))
SETTINGS = {"model__position": PLAN, "model__dropout": 0.1, "model__attention_dropout": 0.1,
            "train__steps": 12, "train__validate_every": 0}


class Probe(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        settings = dict(tupelo_runs.TINY, corpus=cls.corpus, run=cls.folder / "probed")
        settings.update({name.replace("__", ".").replace("_", "-"): value
                         for name, value in SETTINGS.items()})
        settings["train.probe-every"] = 5
        cls.trained = tupelo_runs.run(tupelo_runs.command("train", settings))

    def setUp(self):
        self.assertEqual(self.trained.returncode, 0, self.trained.stderr)

    def evaluate(self, flags=("json",), ranks=0, **options):
        return tupelo_runs.run(tupelo_runs.command(
            "eval", dict({"run": self.folder / "probed"}, **options), flags, ranks))

    def check_layers(self, probe, encodings):
        self.assertEqual([layer["encoding"] for layer in probe["layers"]], encodings)
        for layer in probe["layers"]:
            self.assertEqual(list(layer["paths"]), PATHS)
            for path in layer["paths"].values():
                self.assertEqual({len(path[name]) for name in ("mean", "variance", "max")}, {4})
                for head in range(4):
                    self.assertGreaterEqual(path["variance"][head], 0)
                    self.assertLessEqual(abs(path["mean"][head]), path["max"][head])
            for entropy, share in zip(layer["entropy"], layer["relative_entropy"]):
                self.assertTrue(0 < entropy <= math.log(40) + 1e-6)
                self.assertTrue(0 < share <= 1 + 1e-6)

    def present(self, layer):
        return [name for name in PATHS if max(layer["paths"][name]["max"]) > 0]

    def test_training_does_not_notice(self):
        self.train("unprobed", **SETTINGS)
        probed, unprobed = (tupelo_runs.records(self.folder / name) for name in ("probed", "unprobed"))
        for name in ("loss", "grad_norm", "position_grad_norm", "masks_hash"):
            self.assertEqual([record[name] for record in probed], [record[name] for record in unprobed])
        self.assertEqual(tupelo_runs.records(self.folder / "unprobed", "probe"), [])

    def test_records(self):
        records = tupelo_runs.records(self.folder / "probed", "probe")
        self.assertEqual([record["step"] for record in records], [5, 10])
        for record in records:
            self.assertEqual(record["rows"], 4)
            self.assertEqual(record["longest_sequence"], 40)
            self.check_layers(record, ENCODINGS)
            full, relative, flow = record["layers"]
            self.assertEqual(self.present(full), ["cc", "cp", "pc", "bias"])
            self.assertEqual(self.present(relative), ["cc", "pp", "bias"])
            self.assertEqual(self.present(flow), ["cc", "cp", "pc", "pp"])
            for group in record["groups"][:2]:
                for side in ("bias_to_left", "bias_to_right"):
                    self.assertLess(group[side]["min"], group[side]["max"])
                    self.assertTrue(group[side]["covered"])
                    self.assertEqual(group[side]["farthest_covered"], 39)
            self.assertIsNone(record["groups"][2]["bias_to_left"]["min"])

    def test_gradient_norm_of_positions(self):
        for record in tupelo_runs.records(self.folder / "probed"):
            self.assertGreater(record["position_grad_norm"], 0)
            self.assertLess(record["position_grad_norm"], record["grad_norm"])
        self.train("parameterless", **{**SETTINGS, "model__position": "all:rope",
                                       "model__input_position": "none", "train__steps": 2})
        for record in tupelo_runs.records(self.folder / "parameterless"):
            self.assertNotIn("position_grad_norm", record)

    def test_ranks(self):
        self.train("two", ranks=2, train__probe_every=6, **SETTINGS)
        records = tupelo_runs.records(self.folder / "two", "probe")
        self.assertEqual([record["step"] for record in records], [6, 12])

    def test_report(self):
        page = self.folder / "new" / "page"
        result = self.evaluate(probe=f"{page}/")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), json.loads(self.evaluate().stdout))
        self.assertEqual(sorted(file.name for file in page.iterdir()), ["index.html", "probe.json"])
        self.assertEqual([file.name for file in page.parent.iterdir()], ["page"])
        probe = json.loads((page / "probe.json").read_text())
        self.assertEqual(probe["step"], 12)
        self.check_layers(probe, ENCODINGS)
        self.assertEqual(sorted(probe["gradient_norms"]), ["0", "1", "2", "all", "input"])
        self.assertAlmostEqual(probe["gradient_norms"]["all"] ** 2, sum(
            norm ** 2 for owner, norm in probe["gradient_norms"].items() if owner != "all"))
        lines = [group.get("bias_by_distance") for group in probe["groups"]]
        self.assertEqual([len(line[0]) for line in lines[:2]], [79, 79])
        self.assertIsNone(lines[2])
        for group, heads in zip(probe["groups"], lines[:2]):
            left = [value for head in heads for value in head[:39]]
            right = [value for head in heads for value in head[40:]]
            for side, values in (("bias_to_left", left), ("bias_to_right", right)):
                self.assertAlmostEqual(group[side]["min"], min(values), places=6)
                self.assertAlmostEqual(group[side]["max"], max(values), places=6)
        self.check_page((page / "index.html").read_text(encoding="utf-8"))
        before = (page / "index.html").read_bytes()
        again = self.evaluate(probe=page, flags=())  # into the folder that is there
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("page/index.html", again.stdout)
        self.assertEqual(before, (page / "index.html").read_bytes())

    def check_page(self, text):
        self.assertNotIn("<script", text)
        pictures = [xml.etree.ElementTree.fromstring(svg)
                    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)]
        maps = [picture for picture in pictures if picture.get("class") == "map"]
        plots = [picture for picture in pictures if picture.get("class") == "plot"]
        self.assertEqual(len(maps), 2 * 4)  # tupe-r and floater, four heads each
        for picture in maps:
            self.assertEqual(picture.get("viewBox"), "0 0 40 40")
            self.assertGreater(len(picture.findall(SVG + "path")), 3)
        self.assertEqual(len(plots), 2)  # tupe-full and tupe-r
        for picture in plots:
            lines = [path for path in picture.findall(SVG + "path") if path.get("stroke-width")]
            self.assertEqual([path.get("d").count("L") for path in lines], [78] * 4)
        for words in ("Layer 2 by head", "tupe-full(pos_dim=8)", "Gradients of position parameters"):
            self.assertIn(words, text)

    def test_report_with_ranks_and_lengths(self):
        page = self.folder / "with-ranks"
        result = self.evaluate(flags=(), ranks=2, probe=page, lengths="24,40")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("index.html"), 1)
        self.assertTrue((page / "probe.json").exists())

    def test_nothing_half_written(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))
        page = self.folder / "limited" / "page"
        result = tupelo_runs.run(tupelo_runs.command(
            "eval", {"run": self.folder / "probed", "probe": page}), preexec_fn=limit)
        self.assert_error(result, STORAGE, "File too large")
        self.assertEqual(list(page.parent.iterdir()), [])

    def test_errors(self):
        self.assert_error(self.evaluate(probe=self.text / "page"), USAGE, "text.txt")
        self.assert_error(self.evaluate(probe=""), USAGE, "--probe")
        result = self.train("bad", train__probe_every=-1, expect=USAGE)
        self.assert_error(result, USAGE, "train.probe-every")
        corpus = self.folder / "all-training"
        self.prepare(self.text, corpus, **{"held-out": "0"})
        options = {"corpus": corpus, "train__steps": 2, "train__validate_every": 0}
        result = self.train("blind", train__probe_every=1, expect=CORRUPT, **options)
        self.assert_error(result, CORRUPT, "held-out", "train.probe-every")
        self.train("blind", **options)


if __name__ == "__main__":
    tupelo_runs.main()

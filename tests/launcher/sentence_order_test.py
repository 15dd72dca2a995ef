"""Sentence-order prediction beside masked language modelling."""

import json
import random
import struct

import tupelo_runs

USAGE, CORRUPT = 2, 3
PAIRS = {"data__packing": "doc", "objective__sop_weight": "0.5", "model__max_positions": 64,
         "data__sequence_length": 64, "train__validate_every": 0}
FIGURES = ("loss", "sop_loss", "grad_norm")
COUNTS = ("sop_pairs", "sop_unpaired_rows", "masked_tokens", "masks_hash")


def write_sentences(path, documents, seed, most=8):
    """Documents of 1 to `most` sentences; later sentences have later characters."""
    chance = random.Random(seed)
    texts = []
    for _ in range(documents):
        count = chance.randint(1, most)
        sentences = []
        for number in range(count):
            low = 30 * number // max(count - 1, 1)
            sentences.append("".join(chr(0x4E00 + 37 * chance.randrange(low, low + 8))
                                     for _ in range(chance.randint(3, 12))) + "。")
        texts.append("".join(sentences))
    path.write_text("\n\n".join(texts), encoding="utf-8")


def safetensors(path):
    """Of float32 tensors: name to numbers."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "F32":
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return tensors


class SentenceOrder(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()  # also makes a corpus without sentences
        cls.without = cls.corpus
        cls.text = cls.folder / "sentences.txt"
        write_sentences(cls.text, 500, seed=3)
        cls.corpus = cls.folder / "sentences"
        cls.prepare_sentences(cls.text, cls.corpus)

    @classmethod
    def prepare_sentences(cls, text, corpus, flags=("sentences",), **more):
        settings = {"input": text, "output": corpus, "train-vocab": 160, "vocab-multiple": 1, "held-out": "10%", **more}
        result = tupelo_runs.run(tupelo_runs.command("prepare", settings, flags))
        if result.returncode != 0:
            raise AssertionError(result.stdout + result.stderr)

    def figures(self, run, *keys):
        return [{key: record[key] for key in keys} for record in tupelo_runs.records(self.folder / run)]

    def same_figures(self, expected, actual):
        for key in FIGURES:
            self.assert_close(dict(enumerate(r[key] for r in self.figures(expected, key))),
                              dict(enumerate(r[key] for r in self.figures(actual, key))), 2e-5)
        self.assertEqual(self.figures(expected, *COUNTS), self.figures(actual, *COUNTS))

    def tensors(self, run, file):
        newest = sorted((self.folder / run / "checkpoints").iterdir())[-1]
        return safetensors(newest / f"{file}.safetensors")

    def evaluate(self, run, **more):
        result = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / run, **more}, ["json"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_ranks_micro_batches_and_a_restart_change_nothing(self):
        options = {**PAIRS, "train__steps": 12, "optim__schedule": "constant", "optim__warmup": 0}
        self.train("one", **options)
        records = self.figures("one", *COUNTS, "sop_accuracy")
        self.assertTrue(all(r["sop_pairs"] + r["sop_unpaired_rows"] == 16 for r in records))
        self.assertGreater(sum(r["sop_unpaired_rows"] for r in records), 0)
        self.assertGreater(sum(r["sop_pairs"] for r in records), 100)
        for name, more in (("two", {"ranks": 2}), ("three", {"ranks": 3}), ("small", {"train__micro_batch": 1}),
                           ("whole", {"train__micro_batch": 16}), ("both", {"ranks": 2, "train__micro_batch": 3})):
            self.train(name, **{**options, **more})
            self.same_figures("one", name)
        for steps in (5, 12):
            self.train("parts", **{**options, "train__steps": steps})
        keys = (*FIGURES, *COUNTS, "sop_accuracy")
        self.assertEqual(self.figures("one", *keys), self.figures("parts", *keys))
        self.train("recomputed", **{**options, "model__recompute": "all"})
        self.assertEqual(self.figures("one", *keys), self.figures("recomputed", *keys))

    def test_the_weight_scales_the_gradient_of_the_head_alone(self):
        for weight in (1, 2):
            self.train(f"weight{weight}", **{**PAIRS, "objective__sop_weight": weight, "train__steps": 1,
                                             "optim__clip_norm": 0, "optim__warmup": 0})
        first, second = (self.tensors(f"weight{weight}", "optimizer") for weight in (1, 2))
        moments = {name: tensor for name, tensor in first.items() if len(set(tensor)) > 1}
        head = [name for name in moments if "sop_classifier" in name or "pooler" in name]
        words = [name for name in moments if "lm_head.bias" in name]
        self.assertTrue(head and words)
        for names, squared in ((head, {1: 2, 2: 4}), (words, {1: 1, 2: 1})):
            for name in names:
                # First moments grow with the gradient, second ones with its square.
                power = 2 if "exp_avg_sq" in name or "second" in name else 1
                for a, b in zip(first[name], second[name]):
                    self.assertAlmostEqual(b, squared[power] * a, delta=1e-6 * max(map(abs, first[name])))

    def test_the_gradient_is_that_of_the_mean_over_pairs(self):
        # Scores of 0: the gradient of the second class's bias is 1/2 minus the share of swapped pairs.
        for ranks in (0, 2):
            self.train(f"bias{ranks}", ranks=ranks, **{
                **PAIRS, "objective__sop_weight": 3, "train__steps": 1, "optim__clip_norm": 0, "train__seed": 4,
                "model__initializer_range": "1e-9", "train__micro_batch": 3})
            moment = self.tensors(f"bias{ranks}", "optimizer")["exp_avg.sop_classifier.classifier.bias"]
            gradient = moment[1] / (1 - 0.9) / 3
            (step,) = self.figures(f"bias{ranks}", "sop_pairs", "sop_unpaired_rows")
            self.assertGreater(step["sop_unpaired_rows"], 0)
            swapped = (0.5 - gradient) * step["sop_pairs"]
            self.assertAlmostEqual(swapped, round(swapped), delta=1e-3)
            self.assertNotEqual(2 * round(swapped), step["sop_pairs"])

    def test_order_is_learnt(self):
        self.train("learnt", **{**PAIRS, "objective__sop_weight": 1, "train__steps": 300,
                                "train__global_batch": 32, "train__micro_batch": 32, "train__validate_every": 300,
                                "optim__learning_rate": "3e-3", "model__initializer_range": "0.1",
                                "model__layers": 2, "model__position": "all:none",
                                "train__probe_every": 300})
        figures = self.evaluate("learnt")
        self.assertGreater(figures["sop_accuracy"], 0.9)
        self.assertLess(figures["sop_loss"], 0.4)
        self.assertGreater(figures["sop_pairs"], 30)
        self.assertGreater(figures["sop_unpaired_rows"], 0)
        self.assertEqual(figures["sop_pairs"] + figures["sop_unpaired_rows"], figures["rows"])
        validation = tupelo_runs.records(self.folder / "learnt", "validation")[-1]
        for key in ("sop_loss", "sop_accuracy"):
            self.assertAlmostEqual(validation["validation_" + key], figures[key], delta=1e-5)
        log = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / "learnt"})).stdout
        self.assertIn("sentence order", log)
        two = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / "learnt"}, ["json"], ranks=2))
        self.assertAlmostEqual(json.loads(two.stdout)["sop_loss"], figures["sop_loss"], delta=1e-5)
        lengths = self.evaluate("learnt", lengths="32,64")["lengths"]
        self.assertAlmostEqual(lengths[1]["sop_loss"], figures["sop_loss"], delta=1e-5)
        self.assertGreater(lengths[0]["sop_accuracy"], 0.6)
        table = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / "learnt", "lengths": "64"})).stdout
        self.assertIn("order accuracy", table)
        self.assertEqual(len(tupelo_runs.records(self.folder / "learnt", "probe")), 1)

    def test_without_it_nothing_is_different(self):
        options = {"train__steps": 4, "train__validate_every": 4, "data__packing": "doc"}
        self.train("plain", **options)
        self.train("off", objective__sop_weight=0, **options)
        self.assertEqual(tupelo_runs.losses(self.folder / "plain"), tupelo_runs.losses(self.folder / "off"))
        self.assertEqual(self.tensors("plain", "model"), self.tensors("off", "model"))
        self.assertFalse([name for name in self.tensors("off", "model") if "sop" in name or "pooler" in name])
        for event in (None, "validation"):
            self.assertNotIn("sop", json.dumps(tupelo_runs.records(self.folder / "off", event)))
        self.assertNotIn("sop_loss", self.evaluate("off"))

    def test_static_pairs(self):
        # Batches of a whole epoch, with words as they are and no update: only the pairs can change.
        few = self.folder / "few"
        write_sentences(self.folder / "few.txt", 40, seed=9, most=4)
        self.prepare_sentences(self.folder / "few.txt", few)
        losses = {}
        for pairs in ("static", "dynamic"):
            name = f"pairs-{pairs}"
            self.train(name, corpus=few, **{**PAIRS, "objective__sop_pairs": pairs, "train__steps": 3,
                                            "data__mask_token_share": 0, "data__random_token_share": 0,
                                            "model__initializer_range": "0.3", "optim__learning_rate": 0,
                                            "train__global_batch": self.rows(few)})
            losses[pairs] = [record["sop_loss"] for record in self.figures(name, "sop_loss")]
        for loss in losses["static"]:
            self.assertAlmostEqual(loss, losses["static"][0], delta=1e-5)
        self.assertGreater(max(losses["dynamic"]) - min(losses["dynamic"]), 2e-3)

    def rows(self, corpus):
        """Of the training half: each of these documents is one row."""
        result = tupelo_runs.run([tupelo_runs.TUPELO, "inspect", str(corpus), "--json"])
        return json.loads(result.stdout)["train"]["documents"]

    def test_a_run_may_begin_from_one_with_another_objective(self):
        self.train("words", **{**PAIRS, "objective__sop_weight": 0, "train__steps": 2})
        self.train("order", **{**PAIRS, "train__steps": 2})
        for origin, name, weight, what in (("words", "words-order", 1, "new"), ("order", "order-words", 0, "left out"),
                                           ("order", "order-order", 1, "")):
            result = self.train(name, **{**PAIRS, "objective__sop_weight": weight, "train__steps": 1,
                                         "init-from": self.folder / origin, "optim__learning_rate": 0})
            self.assertIn("sentence-order head " + what if what else "starting from", result.stdout)
            before, after = self.tensors(origin, "model"), self.tensors(name, "model")
            for parameter in before.keys() & after.keys():
                self.assertEqual(before[parameter], after[parameter], parameter)
            self.assertEqual(any("pooler" in parameter for parameter in after), weight > 0)
            origin_record = json.loads((self.folder / name / "run.json").read_text())["initialized_from"]
            self.assertEqual(origin_record.get("sentence_order_head", ""), what)

    def test_errors(self):
        for options, code, words in (
                ({"corpus": self.without}, CORRUPT, (str(self.without), "sentences", "--sentences")),
                ({"data__packing": "full"}, USAGE, ("objective.sop-weight", "data.packing doc")),
                ({"data__packing": "packed"}, USAGE, ("objective.sop-weight", "data.packing doc")),
                ({"objective__sop_weight": "-1"}, USAGE, ("objective.sop-weight",)),
                ({"objective__sop_pairs": "fixed"}, USAGE, ("objective.sop-pairs", "dynamic, static")),
                ({"data__sequence_length": 4}, USAGE, ("sequence length 4", "at least 5"))):
            with self.subTest(options):
                result = self.train("wrong", expect=code, ranks=2, **{**PAIRS, "train__steps": 2, **options})
                self.assert_error(result, code, *words)
                self.assertFalse((self.folder / "wrong").exists())
        vocabulary = self.corpus / "tokenizer" / "vocab.txt"
        mute = self.folder / "mute"
        settings = {"input": self.text, "output": mute, "vocab": vocabulary, "held-out": "10%"}
        self.assertEqual(tupelo_runs.run(tupelo_runs.command("prepare", settings)).returncode, 0)
        result = self.train("wrong", expect=CORRUPT, corpus=[self.corpus, mute], **{**PAIRS, "train__steps": 2})
        self.assert_error(result, CORRUPT, str(mute), "--sentences")
        self.train("settled", **{**PAIRS, "train__steps": 2})
        for change in ({"objective__sop_weight": 1}, {"objective__sop_weight": 0}, {"objective__sop_pairs": "static"}):
            result = self.train("settled", expect=USAGE, **{**PAIRS, "train__steps": 4, **change})
            self.assert_error(result, USAGE, "objective.sop-")
        line = tupelo_runs.command("eval", {"run": self.folder / "settled", "corpus": mute})
        self.assert_error(tupelo_runs.run(line), CORRUPT, str(mute), "--sentences")


if __name__ == "__main__":
    tupelo_runs.main()

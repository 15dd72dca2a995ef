"""Preparing corpora in every way that the command offers, and what `tupelo corpus` makes of them."""

import gzip
import json
import pathlib
import shutil

import tupelo_runs

USAGE, CORRUPT, STORAGE = 2, 3, 74
DICTIONARY = "研究 100 v\n研究生 50 n\n生命 80 n\n起源 60 n\n的 1000 u\n"


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


class Corpora(tupelo_runs.RunTest):

    def tupelo(self, *words, expect=0):
        result = tupelo_runs.run([tupelo_runs.TUPELO, *map(str, words)])
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def prepared(self, name, **options):
        settings = {"input": self.text, "output": self.folder / name, "train-vocab": 160, "vocab-multiple": 1}
        flags = [key.replace("_", "-") for key, value in options.items() if value is True]
        settings.update({key.replace("_", "-"): value for key, value in options.items() if value is not True})
        if "vocab" in settings:
            del settings["train-vocab"]
        result = tupelo_runs.run(tupelo_runs.command("prepare", settings, ["json", *flags]))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def head(self, name, **options):
        words = [f"--{key}={value}" for key, value in options.items()]
        return [document["text"] for document in
                json.loads(self.tupelo("corpus", "head", self.folder / name, "--json", *words).stdout)]

    def test_forms_of_one_text_give_one_corpus(self):
        text = self.text.read_text()
        documents = text.strip().split("\n\n")
        forms = self.folder / "forms"
        forms.mkdir()
        (forms / "a.jsonl").write_text("".join(json.dumps({"body": d}) + "\n" for d in documents))
        (forms / "b.txt.gz").write_bytes(gzip.compress(text.encode()))
        (forms / "c.tsv").write_text("id\tbody\n" + "".join(f"{i}\t{d}\n" for i, d in enumerate(documents)))
        (forms / "d.txt").write_bytes(text.encode("gb18030"))
        self.prepared("plain")
        expected = files_of(self.folder / "plain" / "train")
        for name, options in (("a.jsonl", {"text_key": "body"}), ("b.txt.gz", {}),
                              ("c.tsv", {"text_column": "body"}), ("d.txt", {"encoding": "gb18030"})):
            self.prepared("form-" + name, input=forms / name, **options)
            self.assertEqual(files_of(self.folder / ("form-" + name) / "train"), expected, name)
        self.prepared("form-glob", input=str(forms / "b*"))
        self.assertEqual(files_of(self.folder / "form-glob" / "train"), expected)

    def test_words_of_a_dictionary_are_masked_whole(self):
        text, dictionary = self.folder / "words.txt", self.folder / "dict.txt"
        text.write_text("研究生命的起源\n\n" * 3 + "生命的研究\n\n" * 3)
        dictionary.write_text(DICTIONARY)
        self.prepared("words", input=text, segmenter=dictionary, held_out=0)
        index = json.loads((self.folder / "words" / "index.json").read_text())
        self.assertEqual(index["segmenter"]["kind"], "dictionary")
        for masking in ("whole-word", "span", "ngram"):
            self.train(f"masked-{masking}", corpus=self.folder / "words", data__masking=masking,
                       train__steps=3, train__validate_every=0)
        spaced = self.folder / "spaced.txt"
        spaced.write_text("研究 生命 的 起源\n\n" * 3 + "生命 的 研究\n\n" * 3)
        self.prepared("spaced", input=spaced, pre_segmented=True, held_out=0)
        self.assertEqual(self.head("spaced", documents=1), ["研究生命的起源"])

    def test_byte_level_bpe_from_text_to_training(self):
        report = self.prepared("bytes", train_kind="byte-bpe", train_vocab=400, vocab_multiple=64)
        self.assertEqual(report["vocab_size"], 448)
        self.assertEqual(report["unknown_tokens"], 0)
        self.assertIn("。", self.head("bytes")[0])
        self.train("bytes-run", corpus=self.folder / "bytes", train__steps=4)
        again = self.prepared("again", vocab=self.folder / "bytes" / "tokenizer" / "tokenizer.json")
        self.assertEqual(again["train_tokens"], report["train_tokens"])
        self.assertEqual(files_of(self.folder / "again" / "train"), files_of(self.folder / "bytes" / "train"))

    def test_cleaning(self):
        dirty = self.folder / "dirty.txt"
        documents = self.text.read_text().split("\n\n")[:40]
        dirty.write_text("\n\n".join(documents + documents[:5] + ["!!! ???", "<p>天地玄黄宇宙洪荒日月盈昃</p>"]))
        report = self.prepared("clean", input=dirty, clean=True)
        self.prepared("kept", input=dirty, clean=True, keep=["duplicate-documents", "near-duplicates",
                                                             "duplicate-lines"])
        rules = {rule["name"]: rule for rule in
                 json.loads((self.folder / "clean" / "report.json").read_text())["rules"]}
        self.assertGreaterEqual(rules["duplicate-documents"]["documents"] +
                                rules["near-duplicates"]["documents"] + rules["duplicate-lines"]["lines"], 1)
        kept = json.loads((self.folder / "kept" / "report.json").read_text())
        self.assertGreater(kept["after"]["documents"],
                           json.loads((self.folder / "clean" / "report.json").read_text())["after"]["documents"])
        self.assertIn("<html", (self.folder / "clean" / "report.html").read_text())
        self.assertGreater(report["documents"], 0)

    def test_corpus_verbs(self):
        self.prepared("one", shard_tokens=3000, held_out="10%")
        self.assertIn("every digest is right", self.tupelo("corpus", "verify", self.folder / "one").stdout)
        self.tupelo("corpus", "reshard", self.folder / "one", "--output", self.folder / "large",
                    "--shard-tokens", "1M")
        self.tupelo("corpus", "reshard", self.folder / "large", "--output", self.folder / "small",
                    "--shard-tokens", 3000)
        self.assertEqual(files_of(self.folder / "small"), files_of(self.folder / "one"))
        self.tupelo("corpus", "split", self.folder / "one", "--parts", 3, "--output", self.folder / "part")
        parts = [self.folder / f"part-0000{i}-of-00003" for i in range(3)]
        self.tupelo("corpus", "merge", *parts, "--output", self.folder / "joined", "--shard-tokens", 3000)
        self.assertEqual(files_of(self.folder / "joined" / "train").keys(),
                         files_of(self.folder / "one" / "train").keys())
        texts = []
        for name in ("one", "joined"):
            self.tupelo("corpus", "export-text", self.folder / name, "--output", self.folder / f"{name}.out")
            texts.append((self.folder / f"{name}.out").read_text())
        self.assertEqual(*texts)
        self.assertIn(self.head("one", documents=1)[0], texts[0])
        self.train("merged", corpus=self.folder / "joined", train__steps=2)

    def test_info(self):
        self.prepared("told", shard_tokens=3000, held_out="10%")
        told = json.loads(self.tupelo("corpus", "info", self.folder / "told", "--json").stdout)
        self.assertEqual(told, json.loads(self.tupelo("inspect", self.folder / "told", "--json").stdout))
        train = told["train"]
        self.assertEqual(sum(shard["tokens"] for shard in train["shards"]), train["tokens"])
        lengths = train["lengths"]
        self.assertAlmostEqual(lengths["mean"], train["tokens"] / train["documents"])
        self.assertTrue(lengths["shortest"] <= lengths["percentiles"]["50"] <= lengths["longest"])
        rows = {(row["sequence_length"], row["packing"]): row for row in train["rows"]}
        self.assertLess(rows[512, "packed"]["padding"], rows[512, "doc"]["padding"] / 4)
        self.assertEqual(rows[512, "doc"]["rows"], train["documents"])
        self.assertEqual(told["words"], {"kind": "tokenizer"})
        words = self.tupelo("corpus", "info", self.folder / "told", "--verify").stdout
        for part in ("percentiles", "longer than 128", "packed", "every digest verified"):
            self.assertIn(part, words)

    def test_archive_and_restore(self):
        self.prepared("stored", shard_tokens=3000, held_out="10%")
        kept, archive = self.folder / "stored", self.folder / "archive"
        report = json.loads(self.tupelo("corpus", "archive", kept, "--output", archive, "--json").stdout)
        self.assertEqual(report["bytes"], sum(map(len, files_of(kept).values())))
        self.tupelo("corpus", "restore", archive, "--output", self.folder / "back", "--threads", 1)
        self.assertEqual(files_of(self.folder / "back"), files_of(kept))
        self.assert_error(self.tupelo("corpus", "archive", kept, "--output", archive, expect=USAGE), USAGE, "force")
        self.tupelo("corpus", "archive", kept, "--output", archive, "--force", "--level", 3)
        packed = archive / "index.json.zst"
        packed.write_bytes(packed.read_bytes()[:-1])
        self.assert_error(self.tupelo("corpus", "restore", archive, "--output", self.folder / "worse",
                                      expect=CORRUPT), CORRUPT, "index.json.zst", "damaged")
        self.assertFalse((self.folder / "worse").exists())

    def all_documents(self, name):
        documents = set()
        for split in ("train", "held-out"):
            documents |= set(self.head(name, split=split, documents=100000))
        return documents

    def test_exchange_with_nvidia(self):
        self.prepared("ours", held_out="10%")
        report = json.loads(self.tupelo(
            "corpus", "export-nvidia", self.folder / "ours", "--output", self.folder / "theirs", "--seq-length", 128,
            "--duplicates", 3, "--masking", "whole-word", "--rows-per-file", 200, "--json").stdout)
        splits = json.loads((self.folder / "ours" / "index.json").read_text())["splits"]
        self.assertEqual(report["train_rows"], 3 * splits["train"]["documents"])
        self.assertEqual(report["held_out_rows"], 3 * splits["held-out"]["documents"])
        self.assertAlmostEqual(report["masked_tokens"] / report["tokens"], 0.15, delta=0.02)
        files = sorted(path.name for path in (self.folder / "theirs").iterdir())
        self.assertEqual(len(files), report["files"] + 1)
        self.assertIn("corpus_training_00000.hdf5", files)
        result = self.tupelo("corpus", "import-nvidia", self.folder / "theirs", "--tokenizer", self.folder / "ours",
                             "--output", self.folder / "from-nvidia", "--held-out", "10%")
        self.assertIn("documents left out that equal an earlier one", result.stdout)
        self.assertEqual(self.all_documents("from-nvidia"), self.all_documents("ours"))
        self.train("imported", corpus=self.folder / "from-nvidia", train__steps=2)
        dictionary = self.folder / "words.txt"
        dictionary.write_text(DICTIONARY)
        self.tupelo("corpus", "import-nvidia", self.folder / "theirs" / "corpus_test_00000.hdf5", "--tokenizer",
                    self.folder / "ours", "--output", self.folder / "words-again", "--segmenter", dictionary,
                    "--keep-duplicates", "--held-out", 0)
        index = json.loads((self.folder / "words-again" / "index.json").read_text())
        self.assertEqual(index["segmenter"]["kind"], "dictionary")
        self.assertEqual(index["splits"]["train"]["documents"], min(200, report["held_out_rows"]))

    def test_foreign_files_that_are_damaged(self):
        broken = self.folder / "broken.hdf5"
        for content in (b"", b"x" * 5000, b"\x89HDF\r\n\x1a\n" + b"\0" * 400):
            broken.write_bytes(content)
            result = self.tupelo("corpus", "import-nvidia", broken, "--tokenizer", self.corpus, "--output",
                                 self.folder / "none", expect=CORRUPT)
            self.assert_error(result, CORRUPT, "broken.hdf5")
            self.assertFalse((self.folder / "none").exists())

    def test_parts_of_a_split_appear_together_or_not_at_all(self):
        self.prepared("whole", shard_tokens=3000)
        occupied = self.folder / "piece-00002-of-00003"
        occupied.mkdir()
        (occupied / "mine").write_text("kept")
        words = ("corpus", "split", self.folder / "whole", "--parts", 3, "--output", self.folder / "piece")
        self.assert_error(self.tupelo(*words, expect=USAGE), USAGE, occupied.name, "force")
        self.assertEqual([path.name for path in self.folder.glob("*piece-0*")], [occupied.name])
        self.assertEqual((occupied / "mine").read_text(), "kept")

    def test_verify_names_every_bad_shard(self):
        self.prepared("rotten", shard_tokens=3000, held_out="10%")
        shards = sorted((self.folder / "rotten" / "train").glob("*.h5"))
        self.assertGreaterEqual(len(shards), 4)
        content = bytearray(shards[1].read_bytes())
        content[len(content) // 2] ^= 1
        shards[1].write_bytes(content)
        result = self.tupelo("corpus", "verify", self.folder / "rotten", expect=CORRUPT)
        self.assert_error(result, CORRUPT, shards[1].name, "damaged")
        shards[3].unlink()
        (held_out,) = (self.folder / "rotten").glob("held*/*.h5")
        held_out.write_bytes(b"")
        result = self.tupelo("corpus", "verify", self.folder / "rotten", expect=CORRUPT)
        self.assert_error(result, CORRUPT, "3 of ", shards[1].name, shards[3].name, held_out.name, "is missing")
        self.assertNotIn(shards[0].name, result.stderr)
        shutil.rmtree(self.folder / "rotten" / "tokenizer")  # would be told of last
        told = json.loads(self.tupelo("corpus", "verify", self.folder / "rotten", "--json", expect=CORRUPT).stdout)
        self.assertFalse(told["verified"])
        self.assertEqual([bad["file"].split("/")[1] for bad in told["bad_shards"]],
                         [shards[1].name, shards[3].name, held_out.name])

    def test_shards_that_the_system_refuses_are_no_damage(self):
        self.prepared("refused", shard_tokens=3000)
        for shard in sorted((self.folder / "refused" / "train").glob("*.h5"))[:2]:
            shard.unlink()
            shard.symlink_to(shard.name)
        result = self.tupelo("corpus", "verify", self.folder / "refused", expect=STORAGE)
        self.assert_error(result, STORAGE, "2 of ", "symbolic links")

    def test_corpus_errors(self):
        for words, parts in ((("corpus",), ("action",)), (("corpus", "merg", "x"), ("merge",)),
                             (("corpus", "verify"), ("folder",)),
                             (("corpus", "verify", self.corpus, self.corpus), ("one corpus",)),
                             (("corpus", "verify", self.corpus, "--parts", 3), ("--parts",)),
                             (("corpus", "merge", self.corpus), ("--output",)),
                             (("corpus", "merge", self.corpus, "--output", self.corpus), ("inputs",)),
                             (("corpus", "split", self.corpus, "--output", "p", "--parts", 0), ("--parts",)),
                             (("corpus", "import-nvidia", self.corpus, "--output", "p"), ("--tokenizer",)),
                             (("corpus", "export-nvidia", self.corpus, "--output", "p", "--packing", "packed"),
                              ("--packing", "doc")),
                             (("corpus", "export-nvidia", self.corpus, "--output", "p", "--seq-length", 3),
                              ("sequence length", "4")),
                             (("corpus", "archive", self.corpus, "--output", "p", "--level", 20), ("--level", "19")),
                             (("corpus", "restore", self.corpus, "--output", "p", "--level", 2), ("--level",)),
                             (("corpus", "head", self.corpus, "--split", "test"), ("--split", "held-out"))):
            with self.subTest(words):
                self.assert_error(self.tupelo(*words, expect=USAGE), USAGE, *parts)
        self.tupelo("corpus", "verify", self.folder / "nowhere", expect=CORRUPT)
        for options, parts in (({"format": "tvs"}, ("--format", "tsv")), ({"encoding": "latin"}, ("utf-8",)),
                               ({"keep": "html"}, ("--keep", "--clean")),
                               ({"train-kind": "bpe"}, ("byte-bpe",))):
            result = tupelo_runs.run(tupelo_runs.command("prepare", {
                "input": self.text, "output": self.folder / "wrong", "train-vocab": 160, **options}))
            self.assert_error(result, USAGE, *parts)
            self.assertFalse((self.folder / "wrong").exists())


if __name__ == "__main__":
    tupelo_runs.main()

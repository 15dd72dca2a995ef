"""Every mistake a user can make: one sentence, a fixed exit code, no hang, nothing half-written."""

import json
import os
import resource
import shutil
import signal
import subprocess

import tupelo_runs

USAGE, CORRUPT, MEMORY, STORAGE = 2, 3, 71, 74
FEW = {"train__steps": 4}


class UserErrors(tupelo_runs.RunTest):

    def damaged(self, name, change):
        """A copy of the corpus whose first training shard went through `change(bytes)`."""
        copy = self.folder / name
        shutil.copytree(self.corpus, copy)
        shard = sorted((copy / "train").glob("*.h5"))[0]
        shard.write_bytes(change(bytearray(shard.read_bytes())))
        return copy, shard

    def test_corrupt_shard(self):
        def flip(data):
            data[4096 + 10] ^= 1  # inside /tokens, which starts at an aligned offset
            return data
        copy, shard = self.damaged("flipped", flip)
        for ranks in (0, 2):
            result = self.train("r-flipped", ranks=ranks, corpus=copy, expect=CORRUPT, **FEW)
            self.assert_error(result, CORRUPT, shard.name)

    def test_truncated_shard(self):
        copy, shard = self.damaged("truncated", lambda data: data[:len(data) // 2])
        for ranks in (0, 2):
            result = self.train("r-truncated", ranks=ranks, corpus=copy, expect=CORRUPT, **FEW)
            self.assert_error(result, CORRUPT, shard.name)

    def test_missing_shard_and_no_corpus(self):
        copy, shard = self.damaged("missing", lambda data: data)
        shard.unlink()
        result = self.train("r-missing", ranks=2, corpus=copy, expect=None, **FEW)
        self.assertIn(result.returncode, (CORRUPT, STORAGE))
        self.assert_error(result, result.returncode, shard.name)
        result = self.train("r-none", corpus=self.folder / "nowhere", expect=None, **FEW)
        self.assertIn(result.returncode, (CORRUPT, STORAGE))
        self.assert_error(result, result.returncode, "nowhere")

    def test_foreign_vocabulary(self):
        copy = self.folder / "foreign"
        shutil.copytree(self.corpus, copy)
        vocabulary = next((copy / "tokenizer").glob("vocab.txt"))
        lines = vocabulary.read_text(encoding="utf-8").splitlines()
        lines[-1], lines[-2] = lines[-2], lines[-1]
        vocabulary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        result = self.train("r-foreign", ranks=2, corpus=copy, expect=CORRUPT, **FEW)
        self.assert_error(result, CORRUPT, "tokenizer", "fingerprint")

    def test_another_corpus_for_a_checkpoint(self):
        self.train("vocabulary", **FEW)
        other_text, other = self.folder / "other.txt", self.folder / "other"
        tupelo_runs.write_text(other_text, seed=11, alphabet=90)
        self.prepare(other_text, other)
        result = self.train("vocabulary", corpus=other, expect=USAGE, train__steps=8)
        self.assert_error(result, USAGE, "checkpoint")
        result = tupelo_runs.run(tupelo_runs.command(
            "eval", {"run": self.folder / "vocabulary", "corpus": other}))
        self.assert_error(result, CORRUPT, "vocabulary")

    def test_plan_that_does_not_match_the_checkpoint(self):
        self.train("plan", **FEW)
        before = (self.folder / "plan" / "config.ini").read_bytes()
        for ranks in (0, 2):
            result = self.train("plan", ranks=ranks, model__position="all:tupe-a", expect=USAGE,
                                train__steps=8)
            self.assert_error(result, USAGE, "position plan", "tupe-a", "tupe-r")
        self.assertEqual(before, (self.folder / "plan" / "config.ini").read_bytes())

    def test_file_size_limit_reached(self):
        """As a quota does: every write beyond a size fails."""
        def limit(size):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        result = tupelo_runs.run(self.train_line("limited", **FEW),
                                 preexec_fn=lambda: limit(60_000))
        self.assert_error(result, STORAGE, "File too large")
        self.assertEqual(list((self.folder / "limited" / "checkpoints").iterdir()), [])
        output = self.folder / "limited-corpus"
        result = tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": self.text, "output": output, "train-vocab": 160}),
            preexec_fn=lambda: limit(20_000))
        self.assert_error(result, STORAGE, "File too large")
        self.assertEqual([e.name for e in self.folder.iterdir() if "limited-corpus" in e.name], [])

    def test_unreadable_inputs(self):
        result = tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": self.folder / "missing.txt", "output": self.folder / "x", "train-vocab": 160}))
        self.assert_error(result, STORAGE, "missing.txt")
        self.assertFalse((self.folder / "x").exists())
        result = self.train("r-config", expect=STORAGE, config=self.folder / "missing.ini", **FEW)
        self.assert_error(result, STORAGE, "missing.ini")

    def test_run_folder_that_cannot_be_made(self):
        line = self.train_line("unused", ranks=2, **FEW)
        line[line.index("--run") + 1] = str(self.text / "run")  # below a file
        self.assert_error(tupelo_runs.run(line), STORAGE, "text.txt")

    def test_unknown_names(self):
        line = self.train_line("r-option", ranks=2, **FEW) + ["--train.step", "3"]
        self.assert_error(tupelo_runs.run(line), USAGE, "--train.step", "--train.steps")
        bad = self.folder / "bad.ini"
        bad.write_text("[train]\n# comment\nstepz = 3\n")
        result = self.train("r-key", ranks=2, config=bad, expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "bad.ini:3", "train.stepz", "train.steps")
        result = self.train("r-name", ranks=2, model__position="all:tupe-q", expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "tupe-q", "tupe-")
        result = tupelo_runs.run([tupelo_runs.TUPELO, "trian"])
        self.assert_error(result, USAGE, "'train'")

    def test_values_out_of_range(self):
        for setting, words in ((("train__steps", "0"), ("train.steps", "'0'", "at least 1")),
                               (("model__heads", "5"), ("model.heads", "hidden-size")),
                               (("data__packing", "tight"), ("data.packing", "full, doc, packed")),
                               (("optim__warmup", "soon"), ("soon",)),
                               (("train__global_batch", "1"), ())):
            result = self.train("r-range", ranks=2, expect=USAGE, **{**FEW, setting[0]: setting[1]})
            self.assert_error(result, USAGE, *words)

    def test_sequence_longer_than_the_table(self):
        result = self.train("r-long", ranks=2, data__sequence_length=49, expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "49", "48", "max-positions")

    def test_empty_corpus(self):
        empty = self.folder / "empty.txt"
        empty.write_text("\n \n\n")
        result = tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": empty, "output": self.folder / "e", "train-vocab": 160}))
        self.assert_error(result, CORRUPT, "empty.txt")
        self.assertFalse((self.folder / "e").exists())

    def test_no_held_out_documents(self):
        corpus = self.folder / "all-training"
        self.prepare(self.text, corpus, **{"held-out": "0"})
        result = self.train("r-held-out", ranks=2, corpus=corpus, expect=CORRUPT, **FEW)
        self.assert_error(result, CORRUPT, "held-out", "validate-every")
        self.train("r-held-out", corpus=corpus, train__validate_every=0, **FEW)

    def test_fresh_refuses_to_overwrite(self):
        self.train("fresh", **FEW)
        result = self.train("fresh", flags=["fresh"], expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "--force")
        self.assertEqual(len(tupelo_runs.losses(self.folder / "fresh")), 4)
        self.train("fresh", flags=["fresh", "force"], train__steps=3)
        self.assertEqual(len(tupelo_runs.losses(self.folder / "fresh")), 3)

    def test_nothing_is_left_of_a_run_that_cannot_begin(self):
        wrong = {"model__position": "all:tupe-full(rel_bins=16)"}
        deep = self.folder / "not" / "yet"
        for ranks in (0, 2):
            line = self.train_line("unused", ranks=ranks, **wrong, **FEW)
            line[line.index("--run") + 1] = str(deep)
            self.assert_error(tupelo_runs.run(line), USAGE, "rel_bins=16", "rel=t5")
            self.assertFalse(deep.parent.exists())
        line = self.train_line("unused", **FEW)
        line[line.index("--run") + 1] = str(self.text)
        self.assert_error(tupelo_runs.run(line), USAGE, "--run", "text.txt")
        # Nor is an older run replaced by one that cannot begin.
        self.train("older", **FEW)
        before = tupelo_runs.losses(self.folder / "older")
        self.train("older", flags=["fresh", "force"], expect=USAGE, **wrong, **FEW)
        self.assertEqual(tupelo_runs.losses(self.folder / "older"), before)

    def test_settings_that_exclude_each_other(self):
        for options, words in (
                ({"optim__positions": "freeze", "optim__position_frozen_steps": "5"},
                 ("optim.position-frozen-steps", "freeze")),
                ({"optim__optimizer": "lamb", "optim__flavour": "torch"},
                 ("optim.flavour", "torch", "corrected")),
                ({"data__span_words": "3"}, ("--data.span-words", "data.masking is span")),
                ({"model__position": "all:rope(scaling=pi)"}, ("scaling=pi", "factor")),
                ({"model__position": "all:tupe-full(pp=none,rel=t5)"}, ("rel=t5", "pp=none")),
                ({"model__position": "all:deberta(terms=c2p,p2c_index=paper)"}, ("p2c_index", "terms")),
                ({"model__position": "all:alibi", "model__input_position": "none",
                  "optim__positions": "freeze"}, ("optim.positions", "no position encoding"))):
            result = self.train("excluded", expect=USAGE, **options, **FEW)
            self.assert_error(result, USAGE, *words)
            self.assertFalse((self.folder / "excluded").exists())

    def test_output_that_cannot_be_written(self):
        self.train("told", **FEW)
        for words in (["inspect", self.corpus], ["inspect", "--plan"], ["--version"],
                      ["eval", "--run", self.folder / "told", "--json"],
                      ["train", "--print-config"], ["corpus", "head", self.corpus]):
            with self.subTest(words), open("/dev/full", "w") as full:
                result = subprocess.run([tupelo_runs.TUPELO, *map(str, words)], stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertEqual(result.returncode, STORAGE, result.stderr)
                self.assertIn("standard output", result.stderr)

    def test_variables_that_set_nothing(self):
        for name, near in (("TUPELO_TRAIN_STEPZ", "TUPELO_TRAIN_STEPS"),
                           ("TUPELO_MASK_FRACTION", "TUPELO_DATA_MASK_FRACTION")):
            result = tupelo_runs.run(self.train_line("variables", ranks=2, **FEW),
                                     env={**os.environ, name: "3"})
            self.assert_error(result, USAGE, name, near)
        result = tupelo_runs.run(self.train_line("variables", **FEW),
                                 env={**os.environ, "TUPELO_OF_MINE": "3"})
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_more_memory_than_there_is(self):
        wide = {"model__hidden_size": 1 << 20, "model__heads": 1 << 14}
        result = self.train("wide", ranks=2, expect=MEMORY, **wide, **FEW)
        self.assert_error(result, MEMORY, "memory ran out", "hidden-size")
        self.assertFalse((self.folder / "wide").exists())

    def test_folders_that_are_no_place_for_a_run(self):
        self.train("outer", **FEW)
        for inside, words in ((self.corpus, ("corpus",)), (self.corpus / "train" / "run", ("corpus",)),
                              (self.folder / "outer" / "checkpoints" / "inner", ("outer",)),
                              (self.folder, ("holds another run",))):
            line = self.train_line("unused", ranks=2, **FEW)
            line[line.index("--run") + 1] = str(inside)
            self.assert_error(tupelo_runs.run(line), USAGE, "--run", *words)
        self.assertFalse((self.corpus / "train" / "run").exists())
        self.assertFalse((self.corpus / "lock").exists())

    def test_a_lock_that_cannot_be_written_leaves_nothing(self):
        def no_bytes():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        result = tupelo_runs.run(self.train_line("unlocked", **FEW), preexec_fn=no_bytes)
        self.assert_error(result, STORAGE, "lock")
        self.assertFalse((self.folder / "unlocked").exists())

    def test_one_corpus_twice(self):
        line = self.train_line("twice", ranks=2, **FEW)
        line[line.index("--corpus") + 1:line.index("--corpus") + 1] = [str(self.corpus)]
        self.assert_error(tupelo_runs.run(line), USAGE, "--corpus", "same corpus")

    def test_cuda_graphs_on_processors(self):
        result = self.train("graphs", ranks=2, train__cuda_graphs="true", expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "train.cuda-graphs", "needs a CUDA device", "cpu")
        self.assertFalse((self.folder / "graphs").exists())

    def test_force_and_truncate_alone(self):
        result = self.train("alone", flags=["force"], expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "--force", "--fresh")
        result = self.train("alone", optim__positions="truncate", expect=USAGE, **FEW)
        self.assert_error(result, USAGE, "optim.positions", "--extend")
        self.assertFalse((self.folder / "alone").exists())

    def test_what_eval_is_given(self):
        self.train("measured", train__save_every=2, **FEW)
        run = self.folder / "measured"
        for options, words in (({"step": 7}, ("no checkpoint of step 7", "4, 2")),
                               ({"device": "tpu"}, ("--device", "tpu", "auto, cpu, cuda")),
                               ({"probe": run}, ("--probe", "measured", "other files"))):
            result = tupelo_runs.run(tupelo_runs.command("eval", {"run": run, **options}))
            self.assert_error(result, USAGE, *words)
        self.assertFalse((run / "probe.json").exists())
        result = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder}))
        self.assert_error(result, USAGE, "no folder checkpoints")

    def test_corrupt_checkpoint_falls_back_and_then_refuses(self):
        self.train("fallback", train__steps=6, train__save_every=3)
        golden = tupelo_runs.losses(self.folder / "fallback")
        newest, older = sorted((self.folder / "fallback" / "checkpoints").glob("step-*"),
                               reverse=True)
        for folder in (newest, older):
            weights = folder / "model.safetensors"
            data = bytearray(weights.read_bytes())
            data[-5] ^= 4
            if folder is newest:
                weights.write_bytes(data)
                result = self.train("fallback", train__steps=6, train__save_every=3)
                self.assertIn("step 6 is not used", result.stderr)
                self.assertIn("model.safetensors", result.stderr)
                self.assertEqual(golden, tupelo_runs.losses(self.folder / "fallback"))
        newest = sorted((self.folder / "fallback" / "checkpoints").glob("step-*"))[-1]
        damaged = newest / "model.safetensors"
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[:-1])
        result = tupelo_runs.run(tupelo_runs.command("eval", {"run": self.folder / "fallback"}, ["json"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("step 6 is not used", result.stderr)
        self.assertEqual(json.loads(result.stdout)["step"], 3)
        result = self.train("from-older", init_from=self.folder / "fallback", **FEW)
        self.assertIn("step 6 is not used", result.stderr)
        damaged.write_bytes(whole)
        for folder in (self.folder / "fallback" / "checkpoints").glob("step-*"):
            weights = folder / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:-1])
        result = self.train("fallback", ranks=2, expect=CORRUPT, train__steps=9)
        self.assert_error(result, CORRUPT, "checkpoint")

    def test_two_runs_on_one_folder(self):
        long_run = subprocess.Popen(self.train_line("shared", train__steps=100000),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            metrics = self.folder / "shared" / "metrics.jsonl"
            while not metrics.exists() or not metrics.read_text():
                self.assertIsNone(long_run.poll())
            result = self.train("shared", ranks=2, expect=USAGE, **FEW)
            self.assert_error(result, USAGE, "in use", str(long_run.pid))
        finally:
            tupelo_runs.kill_job(long_run)


if __name__ == "__main__":
    tupelo_runs.main()

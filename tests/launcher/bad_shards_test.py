"""Shards that rot: a run stops, or goes on without them, on all ranks alike."""

import json
import os
import shutil
import signal
import subprocess
import time

import tupelo_runs

USAGE, CORRUPT, STORAGE = 2, 3, 74
STEPS = 40
# With these the rates of a step do not depend on how long the run is.
STILL = {"train__steps": STEPS, "train__validate_every": 0, "optim__schedule": "constant", "optim__warmup": 0}
UNVERIFIED = ["no-verify"]
# So few rows a step that some steps do without the rows of a shard.
SMALL = {"train__global_batch": 4, "train__micro_batch": 2, "train__steps": 120,
         "optim__position_frozen_steps": "1.2e"}


def flip(shard):
    """Changes a bit of the tokens, which no look at the file's structure finds."""
    splits = json.loads((shard.parent.parent / "index.json").read_text())["splits"]
    (entry,) = [entry for entry in splits[shard.parent.name]["shards"] if entry["file"].endswith(shard.name)]
    data = bytearray(shard.read_bytes())
    data[entry["payload"][0][0] + 10] ^= 1
    shard.write_bytes(data)


def replace_by(make):
    def spoil(shard):
        shard.unlink()
        make(shard)
    return spoil


KINDS = {
    "flipped": flip,
    "missing": lambda shard: shard.unlink(),
    "empty": lambda shard: shard.write_bytes(b""),
    "garbage": lambda shard: shard.write_bytes(b"garbage" * 1000),
    "fifo": replace_by(lambda shard: os.mkfifo(shard)),
    "folder": replace_by(lambda shard: shard.mkdir()),
    "loop": replace_by(lambda shard: shard.symlink_to(shard.name)),
}


class BadShards(tupelo_runs.RunTest):
    documents = 200

    @classmethod
    def prepare(cls, text, corpus, **options):
        super().prepare(text, corpus, **{"shard-tokens": 500, **options})

    def copy(self, name, *spoiled, spoil=flip):
        """A copy of the corpus in which some training shards are spoiled, and these."""
        corpus = self.folder / name
        shutil.copytree(self.corpus, corpus)
        shards = [self.shards(corpus)[number] for number in spoiled]
        for shard in shards:
            spoil(shard)
        return corpus, shards

    @staticmethod
    def shards(corpus):
        return sorted((corpus / "train").iterdir())

    def run_with(self, name, corpus, bad=1, **options):
        return self.train(name, corpus=corpus, data__max_bad_shards=bad, **{**STILL, **options})

    def excluded(self, name):
        return tupelo_runs.records(self.folder / name, "excluded_shard")

    def state(self, name):
        folder = sorted((self.folder / name / "checkpoints").glob("step-*"))[-1]
        return json.loads((folder / "state.json").read_text())

    def masks(self, name):
        return {record["step"]: record["masks_hash"] for record in tupelo_runs.records(self.folder / name)}

    def epochs(self, name):
        epochs = tupelo_runs.records(self.folder / name, "epoch")
        self.assertTrue(epochs and all(epoch["complete"] for epoch in epochs))
        return [(epoch["finished_epoch"], epoch["rows"], epoch["ledger"], epoch["cut"]) for epoch in epochs]

    def assert_same_run(self, one, other, relative=0.0):
        self.assert_close(tupelo_runs.losses(self.folder / one), tupelo_runs.losses(self.folder / other), relative)
        self.assertEqual(self.masks(one), self.masks(other))
        self.assertEqual(self.epochs(one), self.epochs(other))
        self.assertEqual(self.excluded(one), self.excluded(other))
        self.assertEqual(self.state(one)["excluded_shards"], self.state(other)["excluded_shards"])

    def test_any_bad_shard_stops_a_run_that_may_lose_none(self):
        for number, (kind, spoil) in enumerate(KINDS.items()):
            corpus, (shard,) = self.copy(kind, number, spoil=spoil)
            code = STORAGE if kind == "loop" else CORRUPT
            result = self.train("r-" + kind, ranks=2 * (number % 2), corpus=corpus, expect=None, **STILL)
            self.assert_error(result, code, str(shard))
            self.assertNotIn("max-bad-shards", result.stderr)
            self.assertFalse((self.folder / ("r-" + kind)).exists())

    def test_all_ranks_go_on_without_a_shard_that_fails_on_the_way(self):
        corpus, (shard,) = self.copy("on-the-way", 3)
        for name, ranks in (("one", 0), ("two", 2)):
            result = self.run_with(name, corpus, ranks=ranks, flags=UNVERIFIED, **SMALL)
            notices = [line for line in result.stderr.splitlines() if "without shard" in line]
            self.assertEqual(len(notices), 1, result.stderr)
            for words in (shard.name, "bad shard 1 of at most 1", "is damaged between", " rows instead of "):
                self.assertIn(words, notices[0])
            (event,) = self.excluded(name)
            self.assertIn(f"step {event['step']}  saved", result.stdout)  # at once
        self.assert_same_run("one", "two", 1e-5)
        self.assertGreater(event["step"], 0)
        self.assertEqual(event["shard"], "train/" + shard.name)
        self.assertGreater(event["rows_before"], event["rows"])
        cut = [epoch for epoch in self.epochs("one") if epoch[3]]
        self.assertEqual(len(cut), 1)
        whole = [rows for _, rows, _, is_cut in self.epochs("one") if not is_cut]
        self.assertEqual(set(whole), {event["rows"]})
        (saved,) = self.state("one")["excluded_shards"]
        self.assertEqual((saved["file"], saved["step"]), (event["shard"], event["step"]))

        # What is left out stays so, even when the shard is sound again, on any number of ranks.
        stop = event["step"] + 5
        self.run_with("parts", corpus, flags=UNVERIFIED, **{**SMALL, "train__steps": stop})
        shutil.copytree(self.folder / "parts", self.folder / "moved")
        shutil.copy(self.corpus / "train" / shard.name, shard)
        for name, ranks, relative in (("parts", 0, 0.0), ("moved", 2, 1e-5)):
            result = self.run_with(name, corpus, ranks=ranks, **SMALL)
            self.assertIn(f"without   shard train/{shard.name}, since step {event['step']}", result.stdout)
            self.assert_same_run("one", name, relative)
        line = tupelo_runs.command("inspect", {}, ["json"]) + [str(self.folder / "parts")]
        self.assertEqual(json.loads(tupelo_runs.run(line).stdout)["excluded_shards"], [saved])
        result = self.run_with("parts", corpus, bad=0, expect=USAGE, **SMALL)
        self.assert_error(result, USAGE, "data.max-bad-shards is 0", "without 1")

    def test_a_shard_that_verification_finds(self):
        corpus, (shard,) = self.copy("from-the-start", 4, spoil=KINDS["garbage"])
        bins = {"data__packing": "doc", "data__length_bins": 2}
        for name, ranks, rows in (("first", 0, {}), ("first-2", 2, {}), ("docs", 0, bins), ("docs-2", 2, bins)):
            self.run_with(name, corpus, ranks=ranks, **rows)
            (event,) = self.excluded(name)
            self.assertEqual((event["step"], event["shard"]), (0, "train/" + shard.name))
            self.assertEqual({rows for _, rows, _, _ in self.epochs(name)}, {event["rows"]})
        self.assert_same_run("first", "first-2", 1e-5)
        self.assert_same_run("docs", "docs-2", 1e-5)

    def test_a_shard_that_rots_between_two_starts(self):
        corpus, _ = self.copy("between", spoil=flip)
        self.run_with("between-1", corpus, data__packing="packed", train__steps=9)
        shutil.copytree(self.folder / "between-1", self.folder / "between-2")
        shard = self.shards(corpus)[2]
        shard.unlink()
        for name, ranks in (("between-1", 0), ("between-2", 2)):
            self.run_with(name, corpus, ranks=ranks, data__packing="packed")
            (event,) = self.excluded(name)
            self.assertEqual((event["step"], event["shard"]), (9, "train/" + shard.name))
        self.assert_same_run("between-1", "between-2", 1e-5)

    def test_a_bad_shard_of_a_mixture(self):
        second = self.folder / "second"
        text = self.folder / "second.txt"
        tupelo_runs.write_text(text, 100, seed=9)
        result = tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": text, "output": second, "vocab": self.corpus / "tokenizer" / "vocab.txt", "shard-tokens": 500}))
        self.assertEqual(result.returncode, 0, result.stderr)
        shard = self.shards(second)[2]
        flip(shard)
        for name, ranks in (("mixed", 0), ("mixed-2", 2)):
            self.run_with(name, [self.corpus, second], ranks=ranks, flags=UNVERIFIED)
            (event,) = self.excluded(name)
            self.assertEqual((event["corpus"], event["shard"]), (1, "train/" + shard.name))
        self.assert_same_run("mixed", "mixed-2", 1e-5)

    def test_more_bad_shards_than_allowed(self):
        corpus, shards = self.copy("two-bad", 1, 5)
        names = [shard.name for shard in shards]
        result = self.run_with("too-many", corpus, ranks=2, expect=CORRUPT)
        self.assert_error(result, CORRUPT, "2 shards are bad, more than data.max-bad-shards 1", *names)
        result = self.run_with("too-many", corpus, ranks=2, flags=UNVERIFIED, expect=CORRUPT)
        self.assert_error(result, CORRUPT, "2 shards are bad, more than data.max-bad-shards 1", *names)
        self.run_with("enough", corpus, bad=2, ranks=2, flags=UNVERIFIED)
        self.assertEqual({event["shard"] for event in self.excluded("enough")},
                         {"train/" + name for name in names})

    def test_no_shard_is_left(self):
        corpus, _ = self.copy("all-bad")
        for shard in self.shards(corpus):
            shard.write_bytes(b"")
        result = self.run_with("nothing", corpus, bad=1000, ranks=2, expect=CORRUPT)
        self.assert_error(result, CORRUPT, "no sound training shard left")

    def test_a_bad_held_out_shard_is_always_an_error(self):
        corpus, _ = self.copy("held-out")
        shard = sorted((corpus / "held-out").iterdir())[0]
        flip(shard)
        result = self.run_with("judged", corpus, bad=1000, expect=CORRUPT)
        self.assert_error(result, CORRUPT, shard.name)

    def test_all_bad_shards_are_named_whoever_hashes_them(self):
        corpus, shards = self.copy("many", 0, 1, 2, 4)
        for name, ranks in (("many-one", 0), ("many-two", 2)):
            result = self.train(name, ranks=ranks, corpus=corpus, expect=None, data__max_bad_shards=1, **STILL)
            self.assert_error(result, CORRUPT, "4 shards are bad, more than data.max-bad-shards 1")
            for shard in shards:
                self.assertIn(shard.name, result.stderr)

    def test_an_index_that_is_wrong_costs_no_shard(self):
        corpus, (shard,) = self.copy("wrong-index", 2, spoil=lambda shard: None)
        size = shard.stat().st_size
        index = json.loads((corpus / "index.json").read_text())
        index["splits"]["train"]["shards"][2]["bytes"] += 1
        (corpus / "index.json").write_text(json.dumps(index))
        result = self.train("r-wrong-index", corpus=corpus, expect=None, data__max_bad_shards=3, **STILL)
        self.assert_error(result, CORRUPT, f"index.json says {size + 1}")

    def test_a_finished_run_tells_what_it_would_go_on_without(self):
        corpus, (shard,) = self.copy("rots-later", 2, spoil=lambda shard: None)
        self.run_with("finished", corpus)
        flip(shard)
        result = self.run_with("finished", corpus)
        self.assertIn("nothing to do", result.stdout)
        self.assertIn("without   shard train/" + shard.name, result.stdout)
        self.assertEqual(self.excluded("finished"), [])

    def test_shards_that_are_taken_away_while_the_run_goes_on(self):
        corpus, _ = self.copy("mid-run")
        settings = dict(STILL, corpus=corpus, data__max_bad_shards=2, data__prefetch_steps=1, train__global_batch=2,
                        train__steps=600)
        process = subprocess.Popen(self.train_line("robbed", flags=UNVERIFIED, **settings),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        metrics = self.folder / "robbed" / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.read_text()):
            time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)
        folder = f"/proc/{process.pid}/fd/"
        opened = {os.path.realpath(folder + name) for name in os.listdir(folder)}
        shards = self.shards(corpus)
        unread = [shard for shard in shards if str(shard.resolve()) not in opened]
        read = [shard for shard in shards if shard not in unread]
        self.assertTrue(read and unread, "the run had read everything, or nothing")
        unread[0].unlink()
        os.truncate(read[0], 100)  # a shard that is open and shrinks
        process.send_signal(signal.SIGCONT)
        _, text = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, text)
        self.assertEqual({event["shard"] for event in self.excluded("robbed")},
                         {"train/" + shard.name for shard in (unread[0], read[0])})
        self.epochs("robbed")


if __name__ == "__main__":
    tupelo_runs.main()

"""Preparation by several ranks: the same bytes, after kills too; one sentence for an error of one rank."""

import pathlib
import random
import subprocess
import time

import tupelo_runs

CORRUPT = 3


class Preparing(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.inputs = cls.folder / "texts"
        cls.inputs.mkdir()
        for i in range(12):
            tupelo_runs.write_text(cls.inputs / f"{i:02}.txt", documents=4000, seed=i % 9)

    def line(self, output, ranks=0, **options):
        settings = {"input": self.inputs, "output": self.folder / output, "train-vocab": 400,
                    "shard-tokens": 200000, "threads": 1, **options}
        return tupelo_runs.command("prepare", settings, ["clean", "json"], ranks=ranks)

    def tree(self, output):
        root = self.folder / output
        return {str(path.relative_to(root)): path.read_bytes()
                for path in sorted(root.rglob("*")) if path.is_file()}

    def leftovers(self):
        return [path.name for path in self.folder.iterdir() if path.name.startswith(".")]

    def expected(self):
        if not (self.folder / "whole").exists():
            result = tupelo_runs.run(self.line("whole"))
            self.assertEqual(result.returncode, 0, result.stderr)
        return self.tree("whole")

    def test_ranks_change_nothing(self):
        for ranks in (2, 3):
            result = tupelo_runs.run(self.line(f"ranks-{ranks}", ranks))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.count("train_tokens"), 1)
            self.assertEqual(self.tree(f"ranks-{ranks}"), self.expected())
        self.assertEqual(self.leftovers(), [])

    def test_kills_change_nothing(self):
        started = time.monotonic()
        expected = self.expected()
        duration = min(time.monotonic() - started, 10) + 1
        chance = random.Random(3)
        for kill in range(4):
            job = subprocess.Popen(self.line("killed", ranks=2), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.2, 1) * duration)
            if job.poll() is None:
                tupelo_runs.kill_job(job)
            if (self.folder / "killed").exists():
                break
        if not (self.folder / "killed").exists():
            result = tupelo_runs.run(self.line("killed", ranks=3))
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.tree("killed"), expected)

    def test_an_error_of_one_rank_is_told_once(self):
        bad = self.folder / "bad"
        bad.mkdir()
        for i in range(3):
            tupelo_runs.write_text(bad / f"{i}.txt", documents=50, seed=i)
        (bad / "x.jsonl").write_text("{}\n")
        result = tupelo_runs.run(self.line("refused", ranks=3, input=bad))
        self.assert_error(result, CORRUPT, "x.jsonl:1: has no key 'text'")
        self.assertFalse((self.folder / "refused").exists())
        self.assertEqual(self.leftovers(), [])


if __name__ == "__main__":
    tupelo_runs.main()

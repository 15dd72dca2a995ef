"""Ranks that were not given the same are refused before the work begins, with both sides named."""

import os
import shutil

import tupelo_runs

MPIRUN = [tupelo_runs.MPIRUN, "--oversubscribe", "-np", "1"]


class Mismatch(tupelo_runs.RunTest):

    def one_and_other(self, one, other):
        return tupelo_runs.run([*MPIRUN, *one, ":", "-np", "1", *other])

    def refused(self, one, other, *words):
        result = self.one_and_other(one, other)
        self.assert_error(result, 2, "ranks do not match", "on rank 0 (", "on rank 1 (", *words)
        self.assertNotIn("Traceback", result.stderr)
        self.assertFalse((self.folder / "run").exists())

    def line(self, **options):
        return self.train_line("run", train__steps=5, **options)

    def test_settings(self):
        other = self.line()
        other[other.index("--train.steps") + 1] = "6"
        self.refused(self.line(), other, "setting train.steps is 5", "but 6")

    def test_settings_of_the_environment(self):
        self.refused(self.line(), ["env", "TUPELO_OPTIM_CLIP_NORM=3", *self.line()], "optim.clip-norm")

    def test_corpora(self):
        other_text, other_corpus = self.folder / "other.txt", self.folder / "other"
        tupelo_runs.write_text(other_text, self.documents, seed=8)
        self.prepare(other_text, other_corpus)
        self.refused(self.line(), self.line(corpus=other_corpus), "digest of corpus 1")

    def test_programs(self):
        other = self.folder / "other-tupelo"
        shutil.copy(tupelo_runs.TUPELO, other)
        with open(other, "ab") as file:
            file.write(b"\0")
        self.refused(self.line(), [str(other), *self.line()[1:]], "the tupelo program (SHA-256)")

    def test_instruction_sets(self):
        self.refused(["env", "ATEN_CPU_CAPABILITY=default", *self.line()],
                     ["env", "ATEN_CPU_CAPABILITY=avx2", *self.line()],
                     "instruction set", "DEFAULT", "AVX2", "set ATEN_CPU_CAPABILITY")

    def test_ranks_that_match_are_told_where_they_run_once(self):
        line = self.train_line("matching", train__steps=5)
        result = self.one_and_other(line, line)
        self.assertEqual(result.returncode, 0, result.stderr)
        host = os.uname().nodename
        self.assertEqual(result.stdout.count(f"hosts     {host}: ranks 0-1\n"), 1, result.stdout)


if __name__ == "__main__":
    tupelo_runs.main()

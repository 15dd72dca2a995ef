"""A file system without room: one sentence, nothing half-written. Mounts small ones, so needs root."""

import pathlib
import subprocess
import tempfile

import tupelo_runs

STORAGE = 74


class SmallDisk:
    """A folder on a file system of its own."""

    def __init__(self, size):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="tupelo-small-disk-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path], check=True)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)
        self.path.rmdir()


class FullDisk(tupelo_runs.RunTest):

    def test_training(self):
        for ranks in (0, 2):
            with SmallDisk("200k") as disk:
                line = self.train_line("unused", ranks=ranks, train__steps=4)
                line[line.index("--run") + 1] = str(disk / "run")
                self.assert_error(tupelo_runs.run(line), STORAGE, "No space left")
                self.assertEqual(list((disk / "run" / "checkpoints").iterdir()), [])

    def test_older_checkpoint_survives(self):
        """Room for one checkpoint but not for two."""
        with SmallDisk("900k") as disk:
            line = self.train_line("unused", train__steps=400, train__save_every=1,
                                   train__keep_checkpoints=100)
            line[line.index("--run") + 1] = str(disk / "run")
            self.assert_error(tupelo_runs.run(line), STORAGE, "No space left")
            inspected = tupelo_runs.run([tupelo_runs.TUPELO, "inspect", str(disk / "run"), "--json"])
            self.assertEqual(inspected.returncode, 0, inspected.stderr)
            self.assertIn('"rejected": []', inspected.stdout)

    def test_preparing(self):
        with SmallDisk("48k") as disk:
            result = tupelo_runs.run(tupelo_runs.command("prepare", {
                "input": self.text, "output": disk / "corpus", "train-vocab": 160}))
            self.assert_error(result, STORAGE, "No space left")
            self.assertEqual(list(disk.iterdir()), [])


if __name__ == "__main__":
    tupelo_runs.main()

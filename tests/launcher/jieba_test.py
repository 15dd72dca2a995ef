"""`prepare --segmenter jieba`: the dictionary of the PyPI package, fetched once and never a wrong one.

pip is played by a program of this test, which hands out an archive made from the installed package.
"""

import io
import os
import pathlib
import stat
import tarfile

import jieba
import tupelo_runs

USAGE = 2
DICTIONARY = pathlib.Path(jieba.__file__).parent / "dict.txt"
FAKE_PIP = """#!/bin/sh
echo "$@" >>"$FAKE_LOG"
if [ ! -e "$FAKE_ARCHIVE" ]; then echo "ERROR: no network" >&2; exit 1; fi
while [ $# -gt 1 ]; do if [ "$1" = --dest ]; then cp "$FAKE_ARCHIVE" "$2/"; fi; shift; done
"""


class Fetching(tupelo_runs.RunTest):

    def setUp(self):
        self.home = self.folder / self.id().rsplit(".", 1)[1]
        programs = self.home / "bin"
        programs.mkdir(parents=True)
        python = programs / "python3"
        python.write_text(FAKE_PIP)
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        self.archive = self.home / "jieba-0.42.1.tar.gz"
        self.log = self.home / "log"
        self.cached = self.home / "cache" / "tupelo" / "jieba-0.42.1" / "dict.txt"
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                            "XDG_CACHE_HOME": str(self.home / "cache"), "FAKE_LOG": str(self.log),
                            "FAKE_ARCHIVE": str(self.archive)}

    def pack(self, content, name="jieba-0.42.1/jieba/dict.txt"):
        with tarfile.open(self.archive, "w:gz") as archive:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

    def prepared(self, output, segmenter="jieba", ranks=0):
        return tupelo_runs.run(tupelo_runs.command("prepare", {
            "input": self.text, "output": self.home / output, "train-vocab": 160,
            "segmenter": segmenter}, ranks=ranks), env=self.environment)

    def refused(self, *words):
        result = self.prepared("refused")
        self.assert_error(result, USAGE, "--segmenter jieba", "jieba==0.42.1", *words)
        self.assertFalse((self.home / "refused").exists())
        left = self.cached.parent
        self.assertEqual(list(left.iterdir()) if left.exists() else [], [])

    def test_fetched_once_and_equal_to_the_named_file(self):
        self.pack(DICTIONARY.read_bytes())
        for output, ranks in (("first", 0), ("again", 2)):
            result = self.prepared(output, ranks=ranks)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.log.read_text().splitlines()), 1)
        self.assertEqual(self.cached.read_bytes(), DICTIONARY.read_bytes())
        result = self.prepared("named", segmenter=DICTIONARY)
        self.assertEqual(result.returncode, 0, result.stderr)
        index = (self.home / "first" / "index.json").read_text()
        self.assertIn('"jieba 0.42.1"', index)
        for other in ("again", "named"):
            self.assertEqual((self.home / other / "index.json").read_text(), index)

    def test_no_network(self):
        self.refused("pip download", "no network")

    def test_another_dictionary(self):
        self.pack(DICTIONARY.read_bytes()[:-1])
        self.refused("another dictionary")

    def test_another_archive(self):
        self.pack(b"x", name="jieba-0.42.1/README")
        self.refused("holds no")

    def test_damaged_cache(self):
        self.cached.parent.mkdir(parents=True)
        self.cached.write_text("word 1 n\n")
        self.assert_error(self.prepared("refused"), USAGE, str(self.cached), "damaged")


if __name__ == "__main__":
    tupelo_runs.main()

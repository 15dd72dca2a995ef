"""Runs the `tupelo` program for the tests beside this file: corpora, training runs, kills, metrics."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TUPELO = os.environ.get("TUPELO_PROGRAM", "tupelo")
MPIRUN = os.environ.get("TUPELO_MPIRUN", "mpirun")
# By precision, less than a step of TINY needs where nothing is recomputed and more than where everything is; devices need
# more than processors.
TIGHT_BUDGETS = dict(zip(("fp32", "bf16"), os.environ.get("TUPELO_TEST_BUDGETS", "800KiB,800KiB").split(",")))

# A model small enough that a step takes milliseconds, with a hybrid position plan and two groups.
TINY = {
    "model.layers": "3", "model.hidden-size": "32", "model.heads": "4",
    "model.intermediate-size": "48", "model.max-positions": "48", "model.dropout": "0",
    "model.attention-dropout": "0", "model.position": "0:none,1:tupe-r,2:tupe-a",
    "data.sequence-length": "40", "train.global-batch": "16", "train.micro-batch": "4",
    "train.log-every": "1", "train.save-every": "0", "train.threads": "1",
    "train.timeout-seconds": "120", "optim.learning-rate": "1e-3", "optim.warmup": "10%",
}


def write_text(path, documents=300, seed=7, alphabet=120):
    """Chinese-looking text with some order in it: blank lines between documents."""
    chance = random.Random(seed)
    characters = [chr(0x4E00 + 37 * i) for i in range(alphabet)]
    lines = []
    for _ in range(documents):
        length = chance.randint(5, 120)
        at = chance.randrange(alphabet)
        document = ""
        for _ in range(length):
            at = (at + chance.choice((1, 1, 2, 5))) % alphabet
            document += characters[at]
        lines += [document + "。", ""]
    pathlib.Path(path).write_text("\n".join(lines), encoding="utf-8")


def command(verb, options, flags=(), ranks=0, launcher_options=()):
    line = []
    if ranks:
        line += [MPIRUN, "--oversubscribe", *launcher_options, "-np", str(ranks)]
    line += [TUPELO, verb]
    for name, value in options.items():
        line += ["--" + name] + (list(value) if isinstance(value, (list, tuple)) else [str(value)])
    return line + ["--" + flag for flag in flags]


def run(line, timeout=240, **more):
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False, **more)


def records(run_folder, event=None):
    """The step records of metrics.jsonl, or those of one event."""
    text = (pathlib.Path(run_folder) / "metrics.jsonl").read_text()
    parsed = [json.loads(line) for line in text.splitlines()]
    return [record for record in parsed if record.get("event") == event]


def losses(run_folder):
    return {record["step"]: record["loss"] for record in records(run_folder)}


def descendants(pid):
    """Process ids of everything that `pid` started, directly or not."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def is_running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def kill_job(process):
    """SIGKILL to every process of a job at once, as a power cut would."""
    victims = descendants(process.pid)
    for pid in [process.pid, *victims]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in victims):
        if time.monotonic() > deadline:
            raise AssertionError("processes survived SIGKILL")
        time.sleep(0.02)


class RunTest(unittest.TestCase):
    """A folder with a tiny corpus; removed afterwards."""

    documents = 300

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tupelo-test-"))
        cls.text = cls.folder / "text.txt"
        cls.corpus = cls.folder / "corpus"
        write_text(cls.text, cls.documents)
        cls.prepare(cls.text, cls.corpus)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def prepare(cls, text, corpus, **options):
        settings = {"input": text, "output": corpus, "train-vocab": 160, "vocab-multiple": 1, "held-out": "10%"}
        settings.update(options)
        result = run(command("prepare", settings))
        if result.returncode != 0:
            raise AssertionError(result.stdout + result.stderr)

    def train_line(self, run_name, ranks=0, flags=(), launcher_options=(), **options):
        settings = dict(TINY)
        settings.update({name.replace("__", ".").replace("_", "-"): value
                         for name, value in options.items()})
        settings.setdefault("corpus", self.corpus)
        settings["run"] = self.folder / run_name
        return command("train", settings, flags, ranks, launcher_options)

    def train(self, run_name, ranks=0, flags=(), expect=0, **options):
        result = run(self.train_line(run_name, ranks, flags, **options))
        if expect is not None:
            self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def assert_close(self, expected, actual, relative):
        self.assertEqual(sorted(expected), sorted(actual))
        for step, value in expected.items():
            self.assertLessEqual(abs(actual[step] - value), relative * abs(value),
                                 f"step {step}: {value} and {actual[step]}")

    def assert_error(self, result, code, *words):
        """One sentence that holds all `words`, and the exit code."""
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        sentences = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(sentences), 1, result.stderr)
        for word in words:
            self.assertIn(word, sentences[0])


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])

#!/usr/bin/env python3
"""Prepares one text again and again: by several numbers of ranks, and killed at random, with one corpus as the result.

    cmake --build --preset release --target tupelo
    python3 bench/check_preparation.py --work check --ranks 1,2 --kills 5 -- --input TEXT --train-vocab 8000 --clean

What stands behind -- goes to `tupelo prepare`. Prints of each run its seconds, the peak memory of a rank, the peak disk
space while it ran (beside that of the corpus it left) and the corpus's tokens and digest over the bytes of all files.
Exit code 1 when two runs differ. Times are of this machine as it is: compare within one table only.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

LOOK_EVERY = 0.02  # seconds


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def bytes_below(folder):
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                pass  # published or removed meanwhile
    return total


def digest_of(folder):
    digest = hashlib.sha256()
    for path in files_below(folder):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def peak_memory_of_ranks(session):
    """Of the processes of a session, in bytes, as the kernel remembers it; mpirun's own left out."""
    most = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if os.getsid(int(status.parent.name)) != session:
                continue
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        except (OSError, ValueError):
            continue
        if fields.get("Name") == "tupelo" and "VmHWM" in fields:
            most = max(most, int(fields["VmHWM"].split()[0]) * 1024)
    return most


class Job:
    """One `tupelo prepare` in a session of its own, watched until it ends or `deadline` kills it."""

    def __init__(self, arguments, output, ranks):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] if ranks > 1 else []
        self.command = [*launcher, str(arguments.program), "prepare", *arguments.prepare, "--output", str(output), "--json"]
        self.folder = output.parent
        self.memory = self.disk = 0

    def run(self, deadline=None):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        begin = time.monotonic()
        with subprocess.Popen(self.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as job:
            while job.poll() is None:
                if deadline is not None and time.monotonic() - begin > deadline:
                    self.kill_all(job.pid)
                    break
                self.memory = max(self.memory, peak_memory_of_ranks(job.pid))
                self.disk = max(self.disk, bytes_below(self.folder))
                time.sleep(LOOK_EVERY)
            out, error = job.communicate()
        self.seconds = time.monotonic() - begin
        if deadline is None and job.returncode != 0:
            sys.exit(f"{' '.join(self.command)}\n{error.strip()}")
        return out

    @staticmethod
    def kill_all(session):
        """mpirun gives ranks process groups of their own; the session is what they share."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(process.name)) == session:
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ValueError):
                pass


def row_of(name, job, output, tokens):
    return {"run": name, "seconds": job.seconds, "memory": job.memory, "disk": job.disk, "corpus": bytes_below(output),
            "tokens": tokens, "digest": digest_of(output)}


def tokens_of(printed):
    counts = json.loads(printed)
    return counts["train_tokens"] + counts["held_out_tokens"]


def plain_run(arguments, ranks):
    output = arguments.work / f"ranks-{ranks}" / "corpus"
    output.parent.mkdir(parents=True)
    job = Job(arguments, output, ranks)
    tokens = tokens_of(job.run())
    row = row_of(f"{ranks} ranks", job, output, tokens)
    shutil.rmtree(output.parent)
    return row


def killed_run(arguments, ranks, seconds):
    """Each try is killed within the time that a whole run takes; what follows the last one ends by itself."""
    output = arguments.work / "killed" / "corpus"
    output.parent.mkdir(parents=True)
    chance = random.Random(arguments.seed)
    job = Job(arguments, output, ranks)
    kills = 0
    while kills < arguments.kills:
        job.run(deadline=chance.uniform(0.05, 0.6) * seconds)
        if output.exists():  # it was faster than its death
            shutil.rmtree(output)
        else:
            kills += 1
    tokens = tokens_of(job.run())
    row = row_of(f"{ranks} ranks after {kills} kills", job, output, tokens)
    left = [path.name for path in output.parent.iterdir() if path != output]
    if left:
        sys.exit(f"left behind in {output.parent}: {', '.join(left)}")
    shutil.rmtree(output.parent)
    return row


def print_table(rows):
    print(f"{'run':24} {'seconds':>8} {'MB a rank':>10} {'MB on disk':>11} {'of corpus':>10} {'tokens':>14}  digest")
    for row in rows:
        print(f"{row['run']:24} {row['seconds']:8.1f} {row['memory'] / 1e6:10.0f} {row['disk'] / 1e6:11.1f} "
              f"{row['disk'] / row['corpus']:9.2f}x {row['tokens']:14,}  {row['digest']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder to create; emptied by the end")
    parser.add_argument("--program", default="build/release/launcher/tupelo", type=pathlib.Path)
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks, separated by commas")
    parser.add_argument("--kills", default=5, type=int, help="of a run with the last number of ranks")
    parser.add_argument("--seed", default=1, type=int, help="of the moments of the kills")
    parser.add_argument("prepare", nargs="+", help="arguments of tupelo prepare but --output, behind --")
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True)
    ranks = [int(number) for number in arguments.ranks.split(",")]
    rows = [plain_run(arguments, number) for number in ranks]
    if arguments.kills > 0:
        rows.append(killed_run(arguments, ranks[-1], rows[-1]["seconds"]))
    arguments.work.rmdir()
    print_table(rows)
    sys.exit(len({row["digest"] for row in rows}) != 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Holds the model of bench/scale to runs of `tupelo train` with 1 to 4 ranks on this machine.

    cmake --build --preset release --target tupelo bench_scale
    python3 bench/check_scale.py --work check

Measures in turns, --rounds times: what `tupelo doctor` says of each number of ranks, and the step time of a small model,
by ranks, shards and rows, one thread a rank. Three runs of one rank calibrate the work of a step: with the fewest and the most
rows, and with four micro-batches. Everything else is predicted. Writes WORK/measured.json, and prints predictions, measurements and errors by
`scale --check`. Wants the machine for itself: how many cores others used meanwhile is printed too. Where that is not to be had,
--best takes the fastest measurement of each thing instead of the median.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time

RANKS = (1, 2, 3, 4)
SHARDS = ("none", "node", "world")
ROWS = (2, 4, 8)  # of a micro-batch
CALIBRATING = ((ROWS[0], 1), (ROWS[-1], 1), (ROWS[0], 4))  # rows and micro-batches of one rank
SEQUENCE_LENGTH = 64
THREADS = 1
BUCKET_BYTES = 4 << 20
MODEL = {"layers": 4, "hidden-size": 256, "heads": 4, "intermediate-size": 1024, "max-positions": SEQUENCE_LENGTH}
SETTINGS = {
    "model.input-position": "sinusoidal", "model.position": "all:none", "data.sequence-length": SEQUENCE_LENGTH,
    "train.threads": THREADS, "train.bucket-bytes": BUCKET_BYTES, "train.validate-every": 0, "train.save-every": 0,
    "train.keep-checkpoints": 1, "optim.learning-rate": 1e-4, "optim.warmup": 1,
}


def run(command, accepted=(0,)):
    environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS), OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in accepted:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout.strip()}\n{done.stderr.strip()}")
    return done.stdout


def under_mpirun(ranks):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks]


def busy_seconds():
    """Of all cores, and of what this script has started and waited for."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), children.ru_utime + children.ru_stime


def make_corpus(arguments, folder):
    """Random characters: what a step costs does not depend on them. Returns the size of the vocabulary."""
    text, corpus = folder / "text.txt", folder / "corpus"
    if not corpus.exists():
        chance = random.Random(1)
        lines = ["".join(chr(chance.randrange(0x4E00, 0x4E00 + 3000)) for _ in range(200)) for _ in range(3000)]
        text.write_text("\n\n".join(lines), encoding="utf-8")
        run([arguments.tupelo, "prepare", "--input", text, "--output", corpus, "--train-vocab", 3100, "--vocab-multiple", 1,
             "--held-out", "0%"])
    return json.loads((corpus / "index.json").read_text())["tokenizer"]["vocab_size"]


def step_seconds(arguments, folder, ranks, shard, rows, micro_batches):
    """Of each of a run's records but the first, which has the beginning in it."""
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    settings = dict(SETTINGS, **{"train.steps": arguments.steps, "train.log-every": 2,
                                 "train.global-batch": ranks * rows * micro_batches, "train.micro-batch": rows,
                                 "train.shard-optimizer": shard})
    settings.update({f"model.{name}": value for name, value in MODEL.items()})
    options = [text for name, value in settings.items() for text in (f"--{name}", value)]
    run([*under_mpirun(ranks), arguments.tupelo, "train", "--corpus", folder / "corpus", "--run", runs, *options])
    records = [json.loads(line) for line in (runs / "metrics.jsonl").read_text().splitlines()]
    speeds = [record["tokens_per_second"] for record in records if "tokens_per_second" in record][1:]
    return [ranks * rows * micro_batches * SEQUENCE_LENGTH / speed for speed in speeds]


def doctor(arguments, ranks):
    return json.loads(run([*under_mpirun(ranks), arguments.tupelo, "doctor", "--json"], accepted=(0, 20)))


def one_report(reports, choose):
    """The first one, with a time of each size that all of them measured."""
    times = [{each["bytes"]: each["seconds"] for each in report["all_reduce"]} for report in reports]
    common = sorted(set.intersection(*(set(each) for each in times)))
    return dict(reports[0], all_reduce=[
        {"bytes": size, "seconds": choose([each[size] for each in times])} for size in common])


def measure(arguments, folder):
    vocab = make_corpus(arguments, folder)
    choose = min if arguments.best else statistics.median
    reports = {ranks: [] for ranks in RANKS if ranks > 1}
    cases = [(ranks, shard, rows, 1) for ranks in RANKS for shard in SHARDS for rows in ROWS
             if ranks > 1 or shard == "none"]
    cases += [(1, "none", rows, several) for rows, several in CALIBRATING if several > 1]
    seconds = {case: [] for case in cases}
    began, (busy, own) = time.monotonic(), busy_seconds()
    for number in range(arguments.rounds):
        for ranks, of_ranks in reports.items():
            of_ranks.append(doctor(arguments, ranks))
        for case, of_case in seconds.items():
            of_case.extend(step_seconds(arguments, folder, *case))
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    busy_after, own_after = busy_seconds()
    others = ((busy_after - busy) - (own_after - own)) / (time.monotonic() - began)
    model = {"layers": MODEL["layers"], "hidden": MODEL["hidden-size"], "intermediate": MODEL["intermediate-size"],
             "vocab": vocab, "position_rows": 0}
    runs = [{"ranks": ranks, "shard": shard, "rows": rows, "micro_batches": several, "seconds": choose(times),
             "all_seconds": times, "calibrates": ranks == 1 and (rows, several) in CALIBRATING}
            for (ranks, shard, rows, several), times in seconds.items()]
    return {"cores": len(os.sched_getaffinity(0)), "threads": THREADS, "bucket_bytes": BUCKET_BYTES,
            "sequence_length": SEQUENCE_LENGTH, "model": model, "cores_of_others": round(others, 3),
            "doctor": {str(ranks): one_report(all_of, choose) for ranks, all_of in reports.items()}, "runs": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", required=True, help="folder for the corpus, runs and measured.json")
    parser.add_argument("--tupelo", default="build/release/launcher/tupelo", help="the program")
    parser.add_argument("--scale", default="build/release/bench/scale", help="the benchmark")
    parser.add_argument("--steps", type=int, default=40, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--best", action="store_true", help="fastest measurements instead of medians")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.work)
    folder.mkdir(parents=True, exist_ok=True)
    measured = measure(arguments, folder)
    (folder / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    print(f"{measured['cores']} cores, of which others used {measured['cores_of_others']} meanwhile")
    print(run([arguments.scale, "--check", folder / "measured.json"]), end="")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains the same small model with different position encodings on the same rows, several seeds each,
and writes what they reach, with intervals, as one table.

    scripts/quickstart --steps 1        # builds, gathers text (once)
    build/release/launcher/tupelo prepare --input quickstart/text --output comparison/corpus \\
        --train-vocab 6000 --vocab-multiple 1 --held-out 4%
    python3 bench/compare_positions.py --corpus comparison/corpus --work comparison

Finished runs are kept in --work and not repeated, so an interrupted comparison goes on where it stopped.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

# name: (input position, plan)
VARIANTS = {
    "none": ("none", "all:none"),
    "learned": ("learned", "all:none"),
    "sinusoidal": ("sinusoidal", "all:none"),
    "sinusoidal(scale=0.05)": ("sinusoidal(scale=0.05)", "all:none"),
    "rope": ("none", "all:rope"),
    "alibi": ("none", "all:alibi"),
    "t5": ("none", "all:t5"),
    "tupe-a": ("none", "all:tupe-a"),
    "tupe-r": ("none", "all:tupe-r"),
    "tupe-full": ("none", "all:tupe-full"),
    "tupe-r in the first half": ("none", "0-1:tupe-r,2-3:none"),
    "learned, tupe-r in the last half": ("learned", "0-1:none,2-3:tupe-r"),
}

LENGTH = 64
LENGTHS = [LENGTH, LENGTH * 3 // 2, LENGTH * 2]

MODEL = {
    "model.layers": 4,
    "model.hidden-size": 96,
    "model.heads": 3,
    "model.intermediate-size": 384,
    "model.max-positions": LENGTH,
    "model.dropout": 0,
    "model.attention-dropout": 0,
    "model.initializer-range": 0.05,
    "model.allow-no-position": "true",
    "data.sequence-length": LENGTH,
    "train.global-batch": 8,
    "train.micro-batch": 8,
    "train.validate-every": 0,
    "train.log-every": 100,
    "train.keep-checkpoints": 1,
    "train.threads": 1,
    "optim.learning-rate": 2e-3,
    "optim.schedule": "linear",
    "optim.beta2": 0.98,
}


def run(command):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout


def measure(arguments, name, seed):
    """The evaluation of one run, trained first when it has not been."""
    folder = pathlib.Path(arguments.work) / "runs" / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    result = folder / "evaluation.json"
    if not result.exists():
        input_position, plan = VARIANTS[name]
        settings = dict(MODEL, **{"model.input-position": input_position, "model.position": plan,
                                  "train.steps": arguments.steps, "train.seed": seed})
        options = [text for key, value in settings.items() for text in (f"--{key}", str(value))]
        run([arguments.tupelo, "train", "--corpus", arguments.corpus, "--run", folder, *options])
        text = run([arguments.tupelo, "eval", "--run", folder, "--corpus", arguments.corpus, "--lengths",
                    ",".join(map(str, LENGTHS)), "--extend-policy", "align", "--threads", "1", "--json"])
        partial = result.with_suffix(".partial")
        partial.write_text(text)
        partial.rename(result)
        print(f"{name}, seed {seed}: done", file=sys.stderr, flush=True)
    by_length = {entry["length"]: entry for entry in json.loads(result.read_text())["lengths"]}
    return [by_length[length] for length in LENGTHS]


def interval(values):
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else float("nan")


def table(results, seeds):
    """Markdown. `results`: name -> seeds -> lengths -> evaluation."""
    losses = {name: [interval([run[i]["loss"] for run in runs]) for i in range(len(LENGTHS))]
              for name, runs in results.items()}
    best = [min(losses.values(), key=lambda intervals: intervals[i][0])[i] for i in range(len(LENGTHS))]
    lines = ["| encoding | " + " | ".join(f"loss at {length}" for length in LENGTHS) +
             " | masked accuracy | attention entropy |",
             "|---|" + "---|" * (len(LENGTHS) + 2)]
    for name, runs in results.items():
        cells = []
        for i, (mean, deviation) in enumerate(losses[name]):
            apart = 2 * ((deviation ** 2 + best[i][1] ** 2) / 2) ** 0.5
            tie = mean - best[i][0] <= apart
            text = f"{mean:.3f} ± {2 * deviation:.3f}"
            cells.append(f"**{text}**" if tie else text)
        accuracy = statistics.mean(run[0]["masked_accuracy"] for run in runs)
        entropies = [statistics.mean(run[i]["attention_entropy"] for run in runs)
                     for i in range(len(LENGTHS))]
        cells.append(f"{100 * accuracy:.1f} %")
        cells.append(" → ".join(f"{entropy:.2f}" for entropy in entropies))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("")
    lines.append(f"{seeds} seeds each; ± is two standard deviations over seeds. Bold: a tie with the column's best, that is, "
                 "not farther from it than two standard deviations, pooled over the two.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--corpus", required=True, help="a prepared corpus")
    parser.add_argument("--work", required=True, help="folder for runs and results")
    parser.add_argument("--tupelo", default="build/release/launcher/tupelo", help="the program")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, one thread each")
    arguments = parser.parse_args()
    tasks = [(name, seed) for seed in range(1, arguments.seeds + 1) for name in VARIANTS]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        measured = list(pool.map(lambda task: measure(arguments, *task), tasks))
    results = {name: [] for name in VARIANTS}
    for (name, _), lengths in zip(tasks, measured):
        results[name].append(lengths)
    print(table(results, arguments.seeds))


if __name__ == "__main__":
    main()

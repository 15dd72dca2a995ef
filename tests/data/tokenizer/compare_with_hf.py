#!/usr/bin/env python3
"""Encodes text with HF's tokenizer and with ours; any difference in ids or word flags is a failure.

    compare_with_hf.py TOOL random             random Unicode and bytes, every code point, installed text
    compare_with_hf.py TOOL shared FOLDER      the vocabularies and the corpus of FOLDER
"""

import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import hf_oracle as hf

BATCH = 20_000
CODE_POINTS_AT_ONCE = 140_000  # a vocabulary may hold about a million tokens


def as_text(line):
    """Python, too, replaces each maximal invalid subpart by U+FFFD."""
    return line.decode("utf-8", "replace") if isinstance(line, bytes) else line


def damaged(lines, seed):
    """Some bytes of each line overwritten, left out or doubled."""
    rng = random.Random(seed)
    for line in lines:
        data = bytearray(line.encode())
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(data) + 1)
            data[at:at + rng.randint(0, 1)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 2)))
        yield bytes(data)


def compare(name, tool, vocab_path, lowercase, lines, minimum):
    tokenizer = hf.hf_tokenizer(hf.read_vocab(vocab_path), lowercase)
    total = unknown = ids_total = 0
    start, batch = time.time(), []

    def flush():
        nonlocal total, unknown, ids_total
        expected = hf.hf_encode(tokenizer, [as_text(line) for line in batch])
        for line, want, got in zip(batch, expected, hf.our_encode(tool, vocab_path, lowercase, batch)):
            if (list(want[0]), want[1]) != got:
                sys.exit(f"{name}: {ascii(line)}\n  HF   {want}\n  ours {got}")
            ids_total += len(got[0])
            unknown += got[0].count(tokenizer.token_to_id("[UNK]"))
        total += len(batch)
        batch.clear()

    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            flush()
    flush()
    casing = "uncased" if lowercase else "cased"
    print(f"{name}, {casing}: {total} lines, {ids_total} ids ({100 * unknown / max(ids_total, 1):.2f} % "
          f"[UNK]), 0 differences, {time.time() - start:.0f} s", flush=True)
    if total < minimum:
        sys.exit(f"{name}: only {total} lines, at least {minimum} were to be compared")


def trained_vocab(tool, folder, name, size, lowercase, lines):
    path = pathlib.Path(folder) / f"{name}-{lowercase}.txt"
    path.write_bytes(hf.our_vocab(tool, size, 1, lowercase, lines))
    return path


def compare_random(tool):
    with tempfile.TemporaryDirectory() as folder:
        random_text = hf.random_lines(130_000, seed=20_240)
        real_text = hf.installed_lines(200_000)
        code_points = [f"x{chr(c)}y {chr(c)}" for c in range(0x110000) if not 0xD800 <= c < 0xE000]
        for lowercase in (True, False):
            # A vocabulary that knows the characters: [UNK] would hide what became of them.
            vocab = trained_vocab(tool, folder, "random", 160_000, lowercase, random_text[:60_000])
            compare("random Unicode", tool, vocab, lowercase, random_text, 120_000)
            compare("damaged UTF-8", tool, vocab, lowercase, damaged(random_text[:40_000], 5), 40_000)
            for part in range(0, len(code_points), CODE_POINTS_AT_ONCE):
                lines = code_points[part:part + CODE_POINTS_AT_ONCE]
                vocab = trained_vocab(tool, folder, "points", 290_000, lowercase, lines)
                compare(f"code points, part {part // CODE_POINTS_AT_ONCE}", tool, vocab, lowercase,
                        lines, len(lines))
            vocab = trained_vocab(tool, folder, "real", 16_000, lowercase, real_text[::4])
            compare("installed text", tool, vocab, lowercase, real_text, 50_000)


def corpus_lines(path):
    with subprocess.Popen(["zstd", "-dc", str(path)], stdout=subprocess.PIPE) as zstd:
        for line in zstd.stdout:
            text = line.rstrip(b"\n").decode("utf-8", "replace")
            if text:
                yield text


def compare_shared(tool, folder):
    folder = pathlib.Path(folder)
    chinese = folder / "vocab" / "bert-zh-vocab.txt"
    english = folder / "vocab" / "bert-en-uncased-vocab.txt"
    random_text = hf.random_lines(30_000, seed=31_337)
    installed = hf.installed_lines(60_000)
    compare("corpus, Chinese vocabulary", tool, chinese, True,
            itertools.islice(corpus_lines(folder / "corpora" / "modern-zh.txt.zst"), 300_000), 250_000)
    for lowercase in (True, False):
        for name, vocab in (("Chinese", chinese), ("English", english)):
            compare(f"installed text, {name} vocabulary", tool, vocab, lowercase, installed, 50_000)
            compare(f"random Unicode, {name} vocabulary", tool, vocab, lowercase, random_text, 30_000)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] == "random":
        compare_random(sys.argv[1])
    elif len(sys.argv) == 4 and sys.argv[2] == "shared":
        compare_shared(sys.argv[1], sys.argv[3])
    else:
        sys.exit(__doc__)

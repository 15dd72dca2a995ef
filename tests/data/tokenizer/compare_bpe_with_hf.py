#!/usr/bin/env python3
"""Byte-level BPE: encodes text with HF's tokenizer and with ours; any difference is a failure.
Files of both kinds of tokenizer: what one side writes, the other reads.

    compare_bpe_with_hf.py TOOL random             random Unicode and bytes, every code point, installed text
    compare_bpe_with_hf.py TOOL shared FOLDER      RoBERTa's vocabulary and the corpus of FOLDER

Compared are ids, word flags and decoded text.
"""

import itertools
import json
import pathlib
import random
import sys
import tempfile
import time

import hf_oracle as hf
from hf_oracle import hf_bpe, train_hf_bpe
from compare_with_hf import as_text, corpus_lines, damaged
from tokenizers import Tokenizer

BATCH = 20_000
def compare(name, tool, folder, prefix, lines, minimum, options=("ids",)):
    tokenizer, option = hf_bpe(folder, prefix), "prefix" if prefix else "plain"
    start, total, ids_total, batch = time.time(), 0, 0, []

    def flush():
        nonlocal total, ids_total
        texts = [as_text(line) for line in batch]
        expected = list(hf.hf_encode(tokenizer, texts))
        for line, want, got in zip(batch, expected, hf.our_ids(tool, folder, option, batch)):
            if (want[0], want[1]) != got:
                sys.exit(f"{name}: {ascii(line)}\n  HF   {want}\n  ours {got}")
            ids_total += len(got[0])
        if "decode" in options:
            ids = [ids for ids, _ in expected]
            ids += [random.Random(i).sample(range(tokenizer.get_vocab_size()), 30) for i in range(2000)]
            for i, want, got in zip(ids, tokenizer.decode_batch(ids, skip_special_tokens=False),
                                    hf.our_decode(tool, folder, ids), strict=True):
                if want != got:
                    sys.exit(f"{name}: ids {i}\n  HF decodes   {want!r}\n  ours {got!r}")
        total += len(batch)
        batch.clear()

    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            flush()
    flush()
    print(f"{name}, {option}: {total} lines, {ids_total} ids, 0 differences, "
          f"{time.time() - start:.0f} s", flush=True)
    if total < minimum:
        sys.exit(f"{name}: only {total} lines, at least {minimum} were to be compared")


def compare_written(tool, path, option, lines):
    """The tokenizer.json that ours writes, in HF; what HF then saves, in ours."""
    with tempfile.TemporaryDirectory() as written:
        hf.our_files(tool, path, option, written)
        tokenizer = Tokenizer.from_file(f"{written}/tokenizer.json")
        tokenizer.encode_special_tokens = True
        saved = pathlib.Path(written) / "saved.json"
        tokenizer.save(str(saved))
        expected = list(hf.hf_encode(tokenizer, lines))
        if sum(len(ids) for ids, _ in expected) < len(lines):
            sys.exit(f"{path}: hardly any ids")
        for source in (written, saved, path):
            for line, want, got in zip(lines, expected, hf.our_ids(tool, source, option, lines)):
                if (want[0], want[1]) != got:
                    sys.exit(f"{source}: {ascii(line)}\n  HF   {want}\n  ours {got}")
    print(f"tokenizer.json, {option}: {len(lines)} lines, 0 differences", flush=True)


def long_words():
    """Words that need a heap: runs without space, of one character, of a few, of Chinese."""
    rng = random.Random(11)
    pools = ["a", "ab", "-=", "\u4e2d\u56fd\u4eba", "eiou", "\u00e9\u0301", "0123456789", " \u3000", "the",
             "\U0001f600\U0001f601"]
    for size in (31, 32, 33, 34, 63, 64, 65, 200, 1000, 5000):
        for pool in pools:
            yield "".join(rng.choice(pool) for _ in range(size))
            yield pool[0] * size


CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'", "''", "\u2019s", " ", "  ", "\t", "\n",
                "\u3000", "\u00a0", "a", "Z", "\u4e2d", "1", "\u0661", "\u00b2", "!", "\u3002", "\u0301", "\u200b", "\x85",
                "\x1c", "\ufeff", "<mask>", "<s>", "</s>"]


def awkward_lines(count):
    rng = random.Random(5)
    for _ in range(count):
        yield "".join(rng.choice(CONTRACTIONS) for _ in range(rng.randint(0, 12)))


def compare_random(tool):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        random_text = hf.random_lines(130_000, seed=20_241)
        real_text = hf.installed_lines(60_000)
        train_hf_bpe(folder, 12_000, real_text[::3] + random_text[::20])
        # Nothing is assigned in planes 4 to 13.
        code_points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000
                       and (c % 64 == 0 or not 0x40000 <= c < 0xE0000)]
        code_points = ["|".join(f"x{c}y {c}1{c}" for c in code_points[i:i + 16])
                       for i in range(0, len(code_points), 16)]
        compare("random Unicode", tool, folder, False, random_text, 120_000)
        for prefix in (False, True):
            compare("awkward", tool, folder, prefix, awkward_lines(40_000), 40_000, ("ids", "decode"))
            compare("long words", tool, folder, prefix, long_words(), 200)
            compare_written(tool, folder, "prefix" if prefix else "plain",
                            random_text[:5000] + list(awkward_lines(5000)))
        for casing in ("cased", "uncased"):
            vocab = pathlib.Path(__file__).resolve().parent / "vectors" / f"vocab_{casing}.txt"
            compare_written(tool, vocab, casing, random_text[:5000] + real_text[:5000])
        compare("damaged UTF-8", tool, folder, False, damaged(random_text[:40_000], 5), 40_000)
        compare("code points", tool, folder, False, code_points, len(code_points))
        compare("installed text", tool, folder, False, real_text, 50_000, ("ids", "decode"))


def shared_files(shared, folder):
    """vocab.json from one token per line."""
    tokens = (shared / "vocab" / "roberta-vocab.txt").read_text(encoding="utf-8").split("\n")
    if tokens[-1] == "":
        tokens.pop()
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    merges = (shared / "vocab" / "roberta-merges.txt").read_bytes()
    (folder / "merges.txt").write_bytes(merges)


def compare_shared(tool, shared):
    shared = pathlib.Path(shared)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shared_files(shared, folder)
        corpus = shared / "corpora" / "modern-zh.txt.zst"
        installed = hf.installed_lines(60_000)
        random_text = hf.random_lines(125_000, seed=31_338)
        compare("corpus", tool, folder, False, itertools.islice(corpus_lines(corpus), 260_000), 250_000)
        compare("installed text", tool, folder, False, installed, 50_000, ("ids", "decode"))
        compare("random Unicode", tool, folder, False, random_text, 120_000)
        compare("installed text", tool, folder, True, installed[::4], 12_000)
        for prefix in (False, True):
            compare("long words", tool, folder, prefix, long_words(), 200)
            compare_written(tool, folder, "prefix" if prefix else "plain",
                            random_text[:5000] + installed[:5000])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] == "random":
        compare_random(sys.argv[1])
    elif len(sys.argv) == 4 and sys.argv[2] == "shared":
        compare_shared(sys.argv[1], sys.argv[3])
    else:
        sys.exit(__doc__)

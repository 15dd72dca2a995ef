#!/usr/bin/env python3
"""Writes vectors/: texts, vocabularies learnt from them, and what HF's tokenizer makes of them.

    make_vectors.py TOOL        TOOL is the built tokenizer_stream

Real text: Tang and Song poems (fortunes-zh) and the Apache licence; the rest is random, drawn from a
pool of characters so that the vocabularies know them. Answers are one line per text: token ids, with a
space before an id that begins a word and a comma before one that does not.
"""

import pathlib
import random
import sys

import hf_oracle as hf
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

FOLDER = pathlib.Path(__file__).resolve().parent / "vectors"
LICENCE = pathlib.Path("/usr/share/common-licenses/Apache-2.0")
CODE_POINT_BLOCK = 0x1000


def character_pool(rng):
    pool = list(hf.MARKS)
    for low, high in hf.SCRIPTS:
        pool += [chr(rng.randrange(low, high)) for _ in range(30)]
    return [c for c in pool if c not in "\0\r\n" and not 0xD800 <= ord(c) < 0xE000]


def pooled_line(rng, pool):
    few = [rng.choice(pool) for _ in range(rng.randint(2, 12))]
    source = few + hf.MARKS if rng.random() < 0.3 else few
    return "".join(rng.choice(source) if rng.random() < 0.9 else rng.choice(" \t\u3000,abZÉ")
                   for _ in range(rng.randint(1, 24))).replace("\n", "")


def texts():
    rng = random.Random(7)
    chinese = list(hf.fortune_lines(("tang300", "song100")))[:900]
    english = [line for line in LICENCE.read_text().split("\n") if line.strip()]
    pool = character_pool(rng)
    return chinese + english + [pooled_line(rng, pool) for _ in range(1800)]


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def code_point_digests(lowercase):
    """One number per 4,096 code points, over the words of "x?y ?" for each of them."""
    normalize = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None,
                               lowercase=lowercase).normalize_str
    split = BertPreTokenizer().pre_tokenize_str
    for block in range(0, 0x110000, CODE_POINT_BLOCK):
        words = []
        for c in range(block, block + CODE_POINT_BLOCK):
            if not 0xD800 <= c < 0xE000:
                words += [word for word, _ in split(normalize(f"x{chr(c)}y {chr(c)}"))] + [""]
        yield fnv1a("\n".join(words))


def answer(ids, flags):
    return "".join((" " if flag else ",") + str(i) for i, flag in zip(ids, flags)).strip()


def make_byte_bpe(lines):
    """A vocabulary learnt by HF's trainer, and what its tokenizer makes of every third line."""
    folder = FOLDER / "byte_bpe"
    folder.mkdir(exist_ok=True)
    hf.train_hf_bpe(folder, 1500, lines)
    for prefix in (False, True):
        answers = [answer(*encoded) + "\n"
                   for encoded in hf.hf_encode(hf.hf_bpe(folder, prefix), lines[::3])]
        (folder / f"ids_{'prefix' if prefix else 'plain'}.txt").write_text("".join(answers))


def main(tool):
    FOLDER.mkdir(exist_ok=True)
    lines = texts()
    (FOLDER / "lines.txt").write_bytes("".join(line + "\n" for line in lines).encode())
    for casing in ("uncased", "cased"):
        lowercase = casing == "uncased"
        vocab_path = FOLDER / f"vocab_{casing}.txt"
        vocab_path.write_bytes(hf.our_vocab(tool, 8000, 1, lowercase, lines))
        tokenizer = hf.hf_tokenizer(hf.read_vocab(vocab_path), lowercase)
        answers = [answer(*encoded) + "\n" for encoded in hf.hf_encode(tokenizer, lines)]
        (FOLDER / f"ids_{casing}.txt").write_text("".join(answers))
        digests = [f"{digest:016x}\n" for digest in code_point_digests(lowercase)]
        (FOLDER / f"code_points_{casing}.txt").write_text("".join(digests))
    make_byte_bpe(lines)
    print(f"{len(lines)} lines")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)

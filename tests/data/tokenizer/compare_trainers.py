#!/usr/bin/env python3
"""Trains vocabularies with HF's trainers and with ours on the same text.

    compare_trainers.py TOOL             text that is installed
    compare_trainers.py TOOL FOLDER      the corpus of FOLDER

Byte-level BPE must come out equal, token for token and merge for merge. HF's WordPiece trainer does not
give the same twice; there, ours must need at most 0.5 % more tokens for the same text.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import hf_oracle as hf
from compare_with_hf import corpus_lines
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.trainers import WordPieceTrainer

MOST_TOKENS = 1.005
MOST_UNKNOWN = 1.1


def our_bpe(tool, size, min_count, lines, folder, threads):
    command = [tool, "train", str(size), str(min_count), str(threads), "plain", str(folder)]
    subprocess.run(command, input=hf.frame(lines), check=True)
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]


def compare_bpe(name, tool, size, lines, min_count=2):
    start = time.time()
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        ours, theirs = pathlib.Path(ours), pathlib.Path(theirs)
        hf.train_hf_bpe(theirs, size, lines, min_count)
        theirs_took = time.time() - start
        vocab = json.loads((theirs / "vocab.json").read_text(encoding="utf-8"))
        merges = (theirs / "merges.txt").read_text(encoding="utf-8").split("\n")[1:-1]
        start = time.time()
        model = our_bpe(tool, size, min_count, lines, ours, threads=1)
        ours_took = time.time() - start
        first = (ours / "tokenizer.json").read_bytes()
        our_bpe(tool, size, min_count, lines[::-1], ours, threads=4)
        if (ours / "tokenizer.json").read_bytes() != first:
            sys.exit(f"{name}: four threads and another order gave another vocabulary")
    learnt = [token for token in model["vocab"] if not token.startswith("[unused")]
    for i, (want, got) in enumerate(itertools.zip_longest(merges, model["merges"])):
        if want != got:
            sys.exit(f"{name}: merge {i} of {len(merges)} is {want!r}, ours {got!r}")
    if {token: model["vocab"][token] for token in learnt} != vocab:
        sys.exit(f"{name}: the vocabularies differ")
    print(f"{name}: byte-level BPE of {len(vocab)} tokens, {len(merges)} merges equal, "
          f"HF {theirs_took:.1f} s, ours {ours_took:.1f} s", flush=True)


def compare_wordpiece(name, tool, size, lowercase, lines):
    trained = Tokenizer(WordPiece(unk_token="[UNK]"))
    template = hf.hf_tokenizer({"[UNK]": 0}, lowercase)
    trained.normalizer, trained.pre_tokenizer = template.normalizer, template.pre_tokenizer
    ours = hf.our_vocab(tool, size, 2, lowercase, lines).decode().split("\n")[:-1]
    # Ours leaves out characters that occur once; HF's shall have as many, the commonest.
    alphabet = {token.removeprefix("##") for token in ours}
    trained.train_from_iterator(lines, WordPieceTrainer(
        vocab_size=size, min_frequency=2, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        limit_alphabet=sum(len(token) == 1 for token in alphabet)))
    counts, unknown = [], []
    for vocab in (trained.get_vocab(), {token: i for i, token in enumerate(ours)}):
        tokenizer = hf.hf_tokenizer(vocab, lowercase)
        encoded = [encoding.tokens for encoding in
                   tokenizer.encode_batch(lines, add_special_tokens=False)]
        counts.append(sum(map(len, encoded)))
        unknown.append(sum(tokens.count("[UNK]") for tokens in encoded))
    size_in_bytes = sum(len(line.encode()) for line in lines)
    print(f"{name}: WordPiece of {size} tokens, bytes/token HF {size_in_bytes / counts[0]:.4f} "
          f"({unknown[0]} [UNK]), ours {size_in_bytes / counts[1]:.4f} ({unknown[1]} [UNK])", flush=True)
    if counts[1] > MOST_TOKENS * counts[0] or unknown[1] > MOST_UNKNOWN * unknown[0]:
        sys.exit(f"{name}: ours needs {counts[1]} tokens, {unknown[1]} of them [UNK], "
                 f"HF's {counts[0]}, {unknown[0]}")


def main(tool, shared=None):
    if shared is None:
        lines = hf.installed_lines(30_000)
        compare_bpe("installed text", tool, 16_000, lines)
        # Rules and tables: words of one character, in which a token can come about in two ways.
        rules = [line for line in hf.installed_lines(150_000) if any(c * 4 in line for c in "-=*#_~ ")]
        compare_bpe("lines with rules", tool, 12_000, rules)
        compare_wordpiece("installed text, uncased", tool, 12_000, True, lines)
        compare_wordpiece("installed text, cased", tool, 12_000, False, lines)
    else:
        corpus = pathlib.Path(shared) / "corpora" / "modern-zh.txt.zst"
        lines = list(itertools.islice(corpus_lines(corpus), 40_000))
        compare_bpe("corpus", tool, 16_000, lines)
        compare_wordpiece("corpus", tool, 8_000, True, lines)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) in (2, 3) else sys.exit(__doc__)

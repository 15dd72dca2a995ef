"""Reads a corpus with h5py alone, following data/FORMAT.md; prints what it found, one value per line.

Usage: read_with_h5py.py CORPUS SPLIT
"""

import hashlib
import json
import pathlib
import sys

import h5py
import numpy as np


def main(corpus, split):
    corpus = pathlib.Path(corpus)
    index = json.loads((corpus / "index.json").read_text(encoding="utf-8"))
    documents = tokens = 0
    ids = hashlib.sha256()
    words = hashlib.sha256()
    hashes = hashlib.sha256()
    for shard in index["splits"][split]["shards"]:
        with h5py.File(corpus / shard["file"], "r") as file:
            assert file.attrs["format"].decode() == "tupelo-corpus" and file.attrs["complete"] == 1
            assert file.attrs["split"].decode() == split
            assert file.attrs["n_tokens"] == len(file["tokens"]) == shard["tokens"]
            for name in ("tokens", "doc_offsets", "word_start", "doc_source", "doc_hash"):
                dataset = file[name]
                assert dataset.chunks is None and dataset.compression is None
                assert hashlib.sha256(dataset[:].tobytes()).hexdigest() == dataset.attrs["sha256"].decode()
            assert (np.diff(file["doc_offsets"][:].astype(np.int64)) > 0).all()
            documents += len(file["doc_hash"])
            tokens += len(file["tokens"])
            ids.update(file["tokens"][:].astype("<u4").tobytes())
            bits = np.unpackbits(file["word_start"][:], bitorder="little")
            words.update(bits[: len(file["tokens"])].tobytes())
            hashes.update(file["doc_hash"][:].astype("<u8").tobytes())
    for value in (documents, tokens, ids.hexdigest(), words.hexdigest(), hashes.hexdigest()):
        print(value)


if __name__ == "__main__":
    main(*sys.argv[1:])

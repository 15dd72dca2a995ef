"""Reads a corpus with h5py alone, following data/FORMAT.md; prints what it found, one value per line.

Usage: read_with_h5py.py CORPUS SPLIT
"""

import hashlib
import json
import pathlib
import sys

import h5py
import numpy as np

BLOCK = 1024


def crc32c_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & np.uint32(1), np.uint32(0x82F63B78), np.uint32(0))
    return table


TABLE = crc32c_table()


def block_checksums(content):
    """CRC-32C of each block of the bytes, all blocks side by side."""
    blocks = [content[at:at + BLOCK] for at in range(0, len(content), BLOCK)]
    lengths = np.array([len(block) for block in blocks])
    rows = np.frombuffer(b"".join(block.ljust(BLOCK, b"\0") for block in blocks), np.uint8).reshape(-1, BLOCK)
    sums = np.full(len(blocks), 0xFFFFFFFF, np.uint32)
    for column in range(BLOCK):
        after = (sums >> np.uint32(8)) ^ TABLE[(sums ^ rows[:, column]) & np.uint32(0xFF)]
        sums = np.where(column < lengths, after, sums)
    return sums ^ np.uint32(0xFFFFFFFF)


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
            assert file.attrs["version"] == 2
            covered = [name for name in ("tokens", "doc_offsets", "word_start", "sent_start", "doc_source", "doc_hash")
                       if name in file]
            sums = np.concatenate([block_checksums(file[name][:].tobytes()) for name in covered])
            assert np.array_equal(sums, file["block_crc32c"][:])
            for name in covered + ["block_crc32c"]:
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

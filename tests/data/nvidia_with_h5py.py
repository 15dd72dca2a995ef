"""Files of NVIDIA's BERT recipes through h5py, with what is in them one document or row per line, as token ids.

Usage: nvidia_with_h5py.py write FOLDER     makes one file per layout, each with the same documents
       nvidia_with_h5py.py read FOLDER      reads rows as run_pretraining.py does, masks undone
"""

import pathlib
import random
import sys

import h5py
import numpy as np

CLS, SEP, MASK, VOCABULARY = 2, 3, 4, 400
LENGTH, PREDICTIONS, COPIES = 128, 20, 3


def masked_copy(chance, document):
    """One row as create_pretraining_data.py makes it: ids, positions, original ids."""
    ids = [CLS, *document, SEP]
    positions = sorted(chance.sample(range(1, len(ids) - 1), min(PREDICTIONS, max(1, len(document) * 15 // 100))))
    originals = [ids[position] for position in positions]
    for position in positions:
        ids[position] = chance.choice([MASK] * 8 + [chance.randrange(10, VOCABULARY), ids[position]])
    return ids, positions, originals


def padded(lists, width):
    table = np.zeros((len(lists), width), dtype="int32")
    for row, values in zip(table, lists):
        row[:len(values)] = values
    return table


def write_fixed(path, rows, compression="gzip", id_type="i4", libver=None, shuffle=False):
    ids = padded([row[0] for row in rows], LENGTH)
    options = {"compression": compression, "shuffle": shuffle}
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("input_ids", data=ids, dtype=id_type, **options)
        file.create_dataset("input_mask", data=padded([[1] * len(row[0]) for row in rows], LENGTH), dtype="i1", **options)
        file.create_dataset("segment_ids", data=np.zeros_like(ids), dtype="i1", **options)
        file.create_dataset("masked_lm_positions", data=padded([row[1] for row in rows], PREDICTIONS), dtype="i4", **options)
        file.create_dataset("masked_lm_ids", data=padded([row[2] for row in rows], PREDICTIONS), dtype="i4", **options)
        file.create_dataset("next_sentence_labels", data=np.zeros(len(rows)), dtype="i1", **options)


def write_varying(path, rows):
    with h5py.File(path, "w") as file:
        for name, column, kind in (("input_ids", 0, "int16"), ("segment_ids", None, "int8"),
                                   ("masked_lm_positions", 1, "int16"), ("masked_lm_ids", 2, "int16")):
            dataset = file.create_dataset(name, (len(rows),), dtype=h5py.vlen_dtype(np.dtype(kind)))
            for i, row in enumerate(rows):
                dataset[i] = np.array(row[column] if column is not None else [0] * len(row[0]), dtype=kind)
        file.create_dataset("next_sentence_labels", data=np.zeros(len(rows)), dtype="i1")


def write(folder):
    chance = random.Random(5)
    documents = [[chance.randrange(10, VOCABULARY) for _ in range(chance.randint(1, LENGTH - 2))] for _ in range(700)]
    rows = [masked_copy(chance, document) for _ in range(COPIES) for document in documents]
    write_fixed(folder / "gzip.hdf5", rows)
    write_fixed(folder / "shuffled.hdf5", rows, shuffle=True)
    write_fixed(folder / "plain.hdf5", rows, compression=None, id_type="i2")
    write_fixed(folder / "latest.hdf5", rows, compression=None, libver="latest")
    write_varying(folder / "varying.hdf5", rows)
    write_fixed(folder / "lzf.h5", rows, compression="lzf")
    write_fixed(folder / "latest-gzip.h5", rows, libver="latest")
    return documents


def read(folder):
    rows = []
    for path in sorted(folder.glob("*.hdf5")):
        with h5py.File(path, "r") as file:
            names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels")
            assert [str(file[name].dtype) for name in names] == ["int32", "int8", "int8", "int32", "int32", "int8"]
            assert all(file[name].compression == "gzip" for name in names)
            ids, mask, segments, positions, originals, labels = (file[name][:] for name in names)
        assert labels.shape == (len(ids),) and not labels.any() and not segments.any()
        for row in range(len(ids)):
            used = positions[row]
            end = int(np.argmax(used == 0)) if (used == 0).any() else len(used)
            ids[row, used[:end]] = originals[row, :end]
            rows.append(ids[row, :mask[row].sum()].tolist())
    return rows


def main(action, folder):
    for line in {"write": write, "read": read}[action](pathlib.Path(folder)):
        print(*line)


if __name__ == "__main__":
    main(*sys.argv[1:])

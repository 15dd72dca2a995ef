"""Holds our safetensors files to the reference implementation, and writes some of its own.

usage: safetensors_oracle.py check OURS DESCRIPTION    compare OURS with what DESCRIPTION says
       safetensors_oracle.py write THEIRS DESCRIPTION  write THEIRS and describe it in DESCRIPTION

A description has one line per tensor: name, dtype, comma-separated shape, hexadecimal bytes, separated
by tabs. Any difference, or a missing package, ends with a traceback and a status other than 0.
"""

import ctypes
import random
import sys

import safetensors

SIZES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
PYTORCH = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16",
           "I64": "int64", "I32": "int32", "U8": "uint8", "BOOL": "bool"}
SHAPES = [[], [0], [1], [3, 5], [2, 0, 4], [1, 2, 3, 4]]


def parse(description):
    tensors = {}
    with open(description, encoding="utf-8") as lines:
        for line in lines:
            name, dtype, shape, data = line.rstrip("\n").split("\t")
            sizes = [int(size) for size in shape.split(",") if size]
            tensors[name] = (dtype, sizes, bytes.fromhex(data))
    return tensors


def check(path, description):
    expected = parse(description)
    with open(path, "rb") as file:
        found = dict(safetensors.deserialize(file.read()))
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for name, (dtype, shape, data) in expected.items():
        tensor = found[name]
        assert tensor["dtype"] == dtype, (name, tensor["dtype"], dtype)
        assert list(tensor["shape"]) == shape, (name, tensor["shape"], shape)
        assert bytes(tensor["data"]) == data, (name, "data")
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt", "made": "by us"}, file.metadata()


def reference_bytes(tensors, metadata):
    """tensors: name -> (dtype as PyTorch calls it, shape, bytes)."""
    if not hasattr(safetensors, "TensorSpec"):  # before 0.8
        plain = {name: {"dtype": dtype, "shape": shape, "data": data}
                 for name, (dtype, shape, data) in tensors.items()}
        return safetensors.serialize(plain, metadata)
    buffers = {name: ctypes.create_string_buffer(data, len(data) + 1)
               for name, (_, _, data) in tensors.items()}
    specs = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_len=len(data),
                                          data_ptr=ctypes.addressof(buffers[name]))
             for name, (dtype, shape, data) in tensors.items()}
    return safetensors.serialize(specs, metadata=metadata)


def write(path, description):
    draw = random.Random(11)
    tensors, lines = {}, []
    for dtype, size in SIZES.items():
        for i, shape in enumerate(SHAPES):
            count = size
            for dimension in shape:
                count *= dimension
            data = bytes(draw.randrange(2 if dtype == "BOOL" else 256) for _ in range(count))
            name = f"{dtype}.\u4f4d.{i}"
            tensors[name] = (PYTORCH[dtype], shape, data)
            lines.append(f"{name}\t{dtype}\t{','.join(map(str, shape))}\t{data.hex()}\n")
    with open(path, "wb") as file:
        file.write(bytes(reference_bytes(tensors, {"made": "by them"})))
    with open(description, "w", encoding="utf-8") as file:
        file.writelines(lines)
    assert len(lines) == len(SIZES) * len(SHAPES)


if __name__ == "__main__":
    {"check": check, "write": write}[sys.argv[1]](sys.argv[2], sys.argv[3])

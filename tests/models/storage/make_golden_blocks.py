#!/usr/bin/env python3
"""Writes golden_blocks.json: blocks of random codes with their values, as gguf and transformers read them.

gguf 0.19.0 and numpy have to be installed. Numbers are hexadecimal bytes, as they lie in memory.
"""
import importlib.metadata
import json
import pathlib

import gguf
import numpy

# The storage's name, gguf's type, and the places of fp16 numbers in a block.
KINDS = {
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, [0]),
    "q4_0": (gguf.GGMLQuantizationType.Q4_0, [0]),
    "q4_1": (gguf.GGMLQuantizationType.Q4_1, [0, 2]),
    "q4_k": (gguf.GGMLQuantizationType.Q4_K, [0, 2]),
    "q6_k": (gguf.GGMLQuantizationType.Q6_K, [208]),
}
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def hex_of(array):
    return numpy.ascontiguousarray(array).tobytes().hex()


def blocks(random, n, n_bytes, halves):
    """Random bytes, with finite fp16 numbers at some places: of both signs, subnormal ones and zeros too."""
    made = random.integers(0, 256, (n, n_bytes), dtype=numpy.uint8)
    for at in halves:
        numbers = (random.standard_normal(n) * 10.0 ** random.integers(-7, 3, n)).astype(numpy.float16)
        numbers[1], numbers[2] = 0, -0.0
        made[:, at : at + 2] = numbers.view(numpy.uint8).reshape(n, 2)
    return made


def mxfp4(rows):
    """Values of blocks (scale, 16 bytes): a value of FP4 times 2 ^ (scale - 127), as transformers has it."""
    table = numpy.array(FP4 + [-x for x in FP4], dtype=numpy.float32)
    codes = numpy.concatenate([rows[:, 1:] & 15, rows[:, 1:] >> 4], axis=1)
    return numpy.ldexp(table[codes], rows[:, :1].astype(numpy.int32) - 127).astype(numpy.float32)


def main():
    random = numpy.random.default_rng(7)
    cases = []
    for storage, (kind, halves) in KINDS.items():
        n_values, n_bytes = gguf.GGML_QUANT_SIZES[kind]
        made = blocks(random, 6, n_bytes, halves)
        values = gguf.quants.dequantize(made.reshape(2, 3 * n_bytes), kind)
        case = {"storage": storage, "rows": 2, "columns": 3 * n_values}
        cases.append(case | {"blocks": hex_of(made), "fp32": hex_of(values)})
    made = blocks(random, 6, 17, [])
    made[:, 0] = [0, 1, 2, 127, 120, 250]
    case = {"storage": "mxfp4", "rows": 2, "columns": 3 * 32, "blocks": hex_of(made), "fp32": hex_of(mxfp4(made))}
    # gguf has no -0 among its codes.
    values = gguf.quants.dequantize(made, gguf.GGMLQuantizationType.MXFP4)
    assert (values == mxfp4(made)).all()
    cases.append(case)
    text = json.dumps({"gguf": importlib.metadata.version("gguf"), "cases": cases}, indent=0)
    pathlib.Path(__file__).with_name("golden_blocks.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

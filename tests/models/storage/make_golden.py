#!/usr/bin/env python3
"""Writes golden.json: matrices as bitsandbytes quantises them on a CPU, and what it makes of them again, and nested scales.

bitsandbytes 0.50.2 and torch have to be installed. Numbers are hexadecimal bytes, as they lie in memory.
"""
import json
import pathlib

import bitsandbytes
import torch
from bitsandbytes import functional

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MAGNITUDES = [1e-45, 3e-39, 1e-38, 1e-37, 1e-20, 3e-5, 1e4, 1e30, 3e38]


def neighbours(values):
    """The values, and those next to them on both sides."""
    infinity = torch.full_like(values, float("inf"))
    return torch.cat([values, torch.nextafter(values, infinity), torch.nextafter(values, -infinity)])


def row_of(values, columns, largest):
    """A row that begins with the largest magnitude and ends in zeros."""
    row = torch.zeros(columns)
    row[0] = largest
    row[1 : 1 + len(values)] = values
    return row.view(1, columns)


def matrices(storage):
    """Name and values (rows, columns). Ties lie between codes, where the scale is a power of two or all 127."""
    torch.manual_seed(5)
    columns = 128 if storage == "nf4" else 61
    yield "normal", 0.02 * torch.randn(2, columns)
    if storage == "nf4":
        table = functional.get_4bit_type("nf4", device="cpu")
        middle = (table[1:] + table[:-1]) / 2
        yield "ties", torch.cat([row_of(neighbours(middle), 64, 1.0), row_of(neighbours(middle) / 4, 64, -0.25)])
    else:
        middle = torch.arange(-10, 10) + 0.5
        yield "ties", torch.cat([row_of(neighbours(middle), columns, 127.0), row_of(middle / 127, columns, -1.0)])
    width = 64 if storage == "nf4" else 5
    yield "zeros", torch.cat([torch.zeros(1, width), row_of(torch.tensor([-1.5]), width, 0.0)])
    yield "magnitudes", torch.cat([size * (2 * torch.rand(1, width) - 1) for size in MAGNITUDES])


def quantised(storage, values):
    """Codes, scales, and a function that gives the values in a type."""
    if storage == "nf4":
        codes, state = functional.quantize_4bit(values, blocksize=64, quant_type="nf4")

        def back(dtype):
            state.dtype = torch.float32
            values = functional.dequantize_4bit(codes, state)
            # Processors with AVX512-BF16 round values that fp32 has no leading one for to zero, others as torch does.
            state.dtype = dtype
            is_plain = values.abs() >= torch.finfo(torch.float32).tiny
            assert torch.equal(functional.dequantize_4bit(codes, state)[is_plain], values.to(dtype)[is_plain])
            return values.to(dtype)

        return codes, state.absmax, back
    codes, scales, _ = functional.int8_vectorwise_quant(values)
    return codes, scales, lambda dtype: functional.int8_vectorwise_dequant(codes, scales).to(dtype)


def hex_of(tensor):
    return bytes(tensor.contiguous().view(torch.uint8).flatten().tolist()).hex()


def nested():
    """Scales of nf4 and what double quantisation makes of them. Their mean is of one thread, since more add up otherwise."""
    torch.set_num_threads(1)
    torch.manual_seed(6)
    scales = {"two": torch.tensor([0.25, 0.75]), "several": 0.05 * torch.rand(2 * 256 + 3)}
    scales |= {"many": 0.02 * torch.randn(4096 + 40).abs(), "wide": 10 ** (8 * torch.rand(300) - 6)}
    scales["equal"] = torch.full((64,), 0.5)
    for name, values in scales.items():
        # A block whose largest magnitude is its scale.
        matrix = torch.zeros(len(values), 64)
        matrix[:, 5] = values
        _, state = functional.quantize_4bit(matrix, blocksize=64, quant_type="nf4", compress_statistics=True)
        back = functional.dequantize_blockwise(state.absmax, state.state2) + state.offset
        case = {"name": name, "scales": hex_of(values), "codes": hex_of(state.absmax), "back": hex_of(back)}
        yield case | {"nested": hex_of(torch.cat([state.offset.view(1), state.state2.absmax]))}


def main():
    cases = []
    for storage in ("nf4", "int8"):
        for name, values in matrices(storage):
            codes, scales, back = quantised(storage, values.clone())
            case = {"storage": storage, "name": name, "rows": values.shape[0], "columns": values.shape[1]}
            case |= {"values": hex_of(values), "codes": hex_of(codes), "scales": hex_of(scales)}
            case |= {key: hex_of(back(dtype)) for key, dtype in TYPES.items()}
            cases.append(case)
    golden = {"bitsandbytes": bitsandbytes.__version__, "cases": cases}
    golden |= {"nested_map": hex_of(functional.create_dynamic_map()), "nested": list(nested())}
    text = json.dumps(golden, indent=0)
    pathlib.Path(__file__).with_name("golden.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""All weights of a model of Llama-3-8B's shape, trained by `ferry train` within 12 GiB of GPU and 60 GiB of host memory.

    tests/perf/llama_8g.py FERRY [--dir DIR] [--tokens 1,4,16,64] [--steps 12] [--gpu-memory 12GiB] [--host-memory 60GiB] [--small]

The directory is made in DIR (17 GB, kept; a run writes its model beside it and removes it, 33 GB): random bf16 weights drawn by a seed, in shards, a tokenizer of whole words, and a text
whose samples have 1,024 tokens each. Each run trains all weights with AdamW in 8 bits and split master weights, at so many
thousands of tokens a step. Printed is, for each, the tokens a second in the median step (without the first steps, which record
graphs and touch memory), and the GPU and host memory that the run promised before its first step and took, as its run.json says.
A run that Ferry refuses is a line with the reason. Exits 1 where a run took more than it promised and a twentieth, or more than it
was given. --small is a tiny model on the CPU, which shows that all parts work.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LENGTH = 1024
FIRST_STEPS = 3
N_WORDS = 20000
GIB = 1 << 30
LLAMA_8G = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}


def shapes():
    """The program that writes directories of random weights."""
    spec = importlib.util.spec_from_file_location("train_beside_bench", HERE / "gpu/train_beside_bench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_of(size):
    """Those of a size as "12GiB"."""
    return int(float(size.removesuffix("GiB")) * GIB)


def train(args, data, n_samples, length, settings):
    """run.json of a run, and its metrics lines; or why it was refused."""
    with tempfile.TemporaryDirectory(dir=args.dir) as runs:
        out = Path(runs) / "run"
        command = [args.ferry, "train", "--model", args.dir / "model", "--task", "causal-lm", "--dataset", data,
                   "--output-dir", out, "--train-batch-size", n_samples, "--max-length", length, "--optim", "adamw_8bit",
                   "--master", "split", "--dtype", "bf16", "--max-steps", args.steps, "--save-strategy", "no",
                   "--logging-steps", 1, *settings]
        print("$", *command, flush=True)
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env=dict(os.environ, XDG_DATA_HOME=str(args.dir / "share")))
        if done.returncode == 3:
            return None, [], done.stderr.strip().splitlines()[-1]
        if done.returncode != 0:
            sys.exit(f"exit {done.returncode}\n{done.stderr[-3000:]}")
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return json.loads((out / "run.json").read_text()), [line for line in lines if "step_ms" in line], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ferry", type=Path)
    parser.add_argument("--dir", type=Path, default=Path("/tmp/llama_8g"))
    parser.add_argument("--tokens", default="1,4,16,64", help="thousands of tokens a step")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--gpu-memory", default="12GiB")
    parser.add_argument("--host-memory", default="60GiB")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    args.ferry = args.ferry.resolve()
    make = shapes()
    config, length = LLAMA_8G, LENGTH
    settings = ["--gpu-memory", args.gpu_memory, "--host-memory", args.host_memory]
    if args.small:
        config = dict(LLAMA_8G, vocab_size=N_WORDS + 16, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                      num_key_value_heads=2, intermediate_size=128)
        length, settings = 32, ["--device", "cpu"]
    if not (args.dir / "model/config.json").exists():
        make.write_model(args.dir / "model", config)
        make.write_tokenizer(args.dir / "model", N_WORDS)

    rows, faults = [], []
    for thousands in map(int, args.tokens.split(",")):
        n_samples = thousands * 1024 // LENGTH
        data = args.dir / "texts.jsonl"
        make.write_texts(data, N_WORDS, n_samples * (args.steps + 1), length)
        run, steps, refusal = train(args, data, n_samples, length, settings)
        if refusal:
            rows.append(f"| {n_samples} x {length} | refused: {refusal} | | | |")
            continue
        promised, actual = run["promised"], run["actual"]
        step_s = statistics.median(line["step_ms"] for line in steps[FIRST_STEPS:]) / 1e3
        cells = [f"{n_samples * length / step_s:.0f}", f"{step_s:.2f}"]
        for place, limit in (("gpu", args.gpu_memory), ("host", args.host_memory)):
            has, took = promised.get(f"{place}_bytes_peak"), actual.get(f"{place}_bytes_peak")
            if not has or not took:
                cells.append("")
                continue
            cells.append(f"{took / GIB:.2f} of {has / GIB:.2f}")
            if took > has * 1.05 or (not args.small and took > bytes_of(limit)):
                faults.append(f"{n_samples} x {length}: took {took / GIB:.2f} GiB of {place} memory")
        rows.append(f"| {n_samples} x {length} | " + " | ".join(cells) + " |")
    print("\n| a step | tokens/s | a step, s | GPU memory taken, of promised, GiB | host memory, likewise |\n|---|---|---|---|---|")
    print("\n".join(rows))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

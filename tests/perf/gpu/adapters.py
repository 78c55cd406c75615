#!/usr/bin/env python3
"""LoRA of large models by `ferry train` on a GPU with little memory, beside its plan and beside peft.

    tests/perf/gpu/adapters.py BUILD_DIR [CASE]... [--steps 6] [--dir DIR] [--peers] [--small]

BUILD_DIR has ferry and ferry-trainer. Adapters have rank 16, on all linear maps; the frozen model has random weights of a seed, 16
bits each, which are written to DIR once (--dir keeps them: 16 GB of the 8 G shape). Rows are random words of full length. Printed
at once for each case: tokens a second in the median step (without the first steps, which record graphs and touch memory), the step
that `ferry plan` said before the run, and the bound of the formula: the greater of what the copies of frozen weights take at the
measured rate of the link, and of what the plan says that the GPU computes. --peers adds peft (tests/perf/peers/lora.py) where it is
installed. A run that fails is a line with its last words, and the script exits 1. --small: a tiny model on the CPU, which shows
that all parts work.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import train_beside_bench as MAKE  # noqa: E402
from llama_8g import LLAMA_8G  # noqa: E402
from several_gpus import FIRST_STEPS, N_WORDS, figures_of, last_words, planned  # noqa: E402

LLAMA_32G = {**LLAMA_8G, "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 40, "intermediate_size": 27648,
             "vocab_size": 152064}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
         "vocab_size": N_WORDS + 3}
# name: config, samples of 1,024 tokens a step, options, micro-batches of a peer that is measured beside it
CASES = {
    "8g-4k": (LLAMA_8G, 4, ["--gpu-memory", "11GiB"], []),
    "8g-16k": (LLAMA_8G, 16, ["--gpu-memory", "11GiB"], []),
    "8g-64k": (LLAMA_8G, 64, ["--gpu-memory", "11GiB"], []),
    "8g-16k-nf4": (LLAMA_8G, 16, ["--gpu-memory", "11GiB", "--quantization", "nf4"], []),
    "8g-16k-24g": (LLAMA_8G, 16, ["--gpu-memory", "24GiB"], [1, 2, 4]),
    "32g-16k": (LLAMA_32G, 16, ["--gpu-memory", "12GiB"], []),
}


def train(args, name):
    """A line of the table, and the tokens a second; None where the run failed."""
    config, batch, options, _ = CASES[name]
    length, n_steps = 1024, args.steps + FIRST_STEPS
    if args.small:
        config, batch, length, n_steps, options = {**config, **SMALL}, 4, 32, FIRST_STEPS + 2, ["--device", "cpu"]
    shape = "small" if args.small else name.split("-")[0]
    directory = args.dir / shape
    if not (directory / "config.json").exists():
        MAKE.write_model(directory, config)
        MAKE.write_tokenizer(directory, N_WORDS)
    data = args.dir / f"{name}.jsonl"
    MAKE.write_texts(data, N_WORDS, batch * (n_steps + 1), length)
    with tempfile.TemporaryDirectory(dir=args.dir) as runs:
        out = Path(runs) / "run"
        words = [args.build / "src/cli/ferry", "train", "--model", directory, "--dataset", data, "--task", "causal-lm",
                 "--output-dir", out, "--tuning", "lora", "--lora-r", 16, "--learning-rate", "2e-4", "--train-batch-size", batch,
                 "--max-length", length, "--max-steps", n_steps, "--logging-steps", 1, "--save-strategy", "no",
                 "--eval-fraction", "0", "--measure-plans", "off", "--dtype", "fp32" if args.small else "bf16", *options]
        env = {**os.environ, "XDG_DATA_HOME": str(args.dir / "share")}
        plan = planned(words, env)
        started = time.monotonic()
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        if done.returncode != 0:
            return f"| {name} | exit {done.returncode}: {last_words(done.stdout)} |", None
        step_s, losses, memory = figures_of(out)
    rate = batch * length / step_s
    said = plan.get("time") or {}
    planned_s = said.get("step_s", float("nan"))
    bound_s = max(said.get("compute_s", 0), said.get("h2d_s", 0))
    return (f"| {name} | {rate:.0f} | {step_s * 1e3:.1f} | {planned_s * 1e3:.1f} | {bound_s * 1e3:.1f} | {bound_s / step_s:.2f} | "
            f"{memory['gpu']} | {memory['host']} | {losses} | {time.monotonic() - started:.0f} s |"), rate


def peer(args, name, micro):
    _, batch, options, _ = CASES[name]
    shape = "small" if args.small else name.split("-")[0]
    words = [sys.executable, HERE.parent / "peers/lora.py", args.dir / shape / "config.json", "--batch", batch, "--micro", micro,
             "--length", 1024, "--cap", options[1]]
    if args.small:
        words = [*words[:3], "--batch", 4, "--micro", 2, "--length", 32, "--steps", 2, "--device", "cpu"]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    row = json.loads(found[-1]) if found else {"error": last_words(done.stdout)}
    if "error" in row:
        return f"| {name} | peft, {micro} at a time: {row['error']} |", None
    return (f"| {name} | peft, {micro} at a time | {row['tokens_per_s']:.0f} | {row['step_ms']:.1f} | | | "
            f"{row['gpu_bytes_max'] / 2**30:.2f} | {row['first_loss']:.5f} {row['loss']:.5f} |"), row["tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("case", nargs="*", choices=[[], *CASES], help=f"of {', '.join(CASES)}")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--dir", type=Path, default=Path("/tmp/adapters"))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_intermixed_args()
    args.build = args.build.resolve()
    profile = args.dir / "share/ferry/machine.json"
    if not args.small and not profile.exists():
        profile.parent.mkdir(parents=True, exist_ok=True)
        MAKE.run([args.build / "src/cli/ferry", "bench", "all", "--output", profile])
    args.dir.mkdir(parents=True, exist_ok=True)
    print("| case | tokens/s | step, ms | planned, ms | bound, ms | share of the bound | GPU memory taken, of promised, GiB | "
          "host memory | loss, first and last | took |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for name in args.case or ["8g-4k", "8g-16k", "8g-64k"]:
        line, rate = train(args, name)
        print(line, flush=True)
        failed = failed or rate is None
        best = 0
        for micro in CASES[name][3] if args.peers else []:
            line, its = peer(args, name, micro)
            print(line, flush=True)
            best = max(best, its or 0)
        if rate and best:
            print(f"{name}: {rate / best:.2f} times peft", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

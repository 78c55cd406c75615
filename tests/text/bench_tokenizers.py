#!/usr/bin/env python3
"""Megabytes of text a second of processor time, Ferry's tokenizer beside Hugging Face's, whose faster entry counts, on as many
threads.

bench_tokenizers.py TOKENIZER_BENCH THREADS MODEL_DIR[,MODEL_DIR]... FILE...; a MODEL_DIR has to hold a tokenizer.json. MAX_LENGTH
in the environment cuts texts. Prints a line a model and file, and a line a model: the least and the middle ratio.
"""

import json
import os
import statistics
import subprocess
import sys
import time

PROGRAM, THREADS, MODELS, FILES = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4:]
os.environ["TOKENIZERS_PARALLELISM"] = "true" if THREADS > 1 else "false"
os.environ["RAYON_NUM_THREADS"] = str(THREADS)
MAX_LENGTH = int(os.environ.get("MAX_LENGTH", 0))

from tokenizers import Tokenizer  # noqa: E402 - it reads the environment


def cpu_seconds(action):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def theirs(tokenizer, file):
    """Megabytes a second, and tokens."""
    with open(file, encoding="utf-8", newline="\n") as stream:
        lines = stream.read().split("\n")
    if not lines[-1]:
        lines.pop()
    n_bytes = sum(len(line.encode()) for line in lines)
    times = []
    for entry in [tokenizer.encode_batch, tokenizer.encode_batch_fast] * 3:
        taken, n_tokens = cpu_seconds(lambda: sum(len(e) for i in range(0, len(lines), 1000) for e in entry(lines[i : i + 1000])))
        times.append(taken)
    return n_bytes / min(times) / 1e6, n_tokens


def main():
    for model in MODELS:
        open_s, tokenizer = cpu_seconds(lambda: Tokenizer.from_file(os.path.join(model, "tokenizer.json")))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_LENGTH) if MAX_LENGTH else tokenizer.no_truncation()
        run = subprocess.run([PROGRAM, model, str(THREADS), str(MAX_LENGTH), *FILES], check=True, capture_output=True)
        ratios, name = [], os.path.basename(model)
        for file, line in zip(FILES, run.stdout.splitlines()):
            ours = json.loads(line)
            speed, n_tokens = theirs(tokenizer, file)
            ratios.append(ours["mb_per_cpu_s"] / speed)
            differs = "" if n_tokens == ours["tokens"] else f"; {n_tokens} tokens and {ours['tokens']}"
            print(f"  {name} {os.path.basename(file)}: {speed:.2f} and {ours['mb_per_cpu_s']:.2f} MB/s, {ratios[-1]:.1f}x{differs}")
        print(f"{name}, {THREADS} threads: least {min(ratios):.1f}x, middle {statistics.median(ratios):.1f}x; opened in "
              f"{1e3 * open_s:.0f} and {ours['open_ms']:.0f} ms", flush=True)


if __name__ == "__main__":
    main()

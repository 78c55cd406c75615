#!/usr/bin/env python3
"""Lines a second of processor time on one thread, Ferry's tokenizer beside Hugging Face's, whose best of three entries counts.

bench_tokenizers.py TOKENIZER_BENCH MODEL_DIR FILE [MAX_LENGTH]
"""

import json
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer  # noqa: E402 - it reads the environment

PROGRAM, MODEL, FILE = sys.argv[1:4]
MAX_LENGTH = int(sys.argv[4]) if len(sys.argv) > 4 else None


def best_of_three(action):
    times, n_tokens = [], 0
    for _ in range(3):
        start = time.process_time()
        n_tokens = action()
        times.append(time.process_time() - start)
    return min(times), n_tokens


def main():
    with open(FILE, encoding="utf-8", newline="\n") as stream:
        lines = stream.read().split("\n")
    if not lines[-1]:
        lines.pop()
    tokenizer = Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH) if MAX_LENGTH else tokenizer.no_truncation()

    def batches(encode):
        return sum(len(e) for i in range(0, len(lines), 1000) for e in encode(lines[i : i + 1000]))

    entries = {
        "encode": lambda: sum(len(tokenizer.encode(line)) for line in lines),
        "encode_batch": lambda: batches(tokenizer.encode_batch),
        "encode_batch_fast": lambda: batches(tokenizer.encode_batch_fast),
    }
    best, n_tokens = 0.0, 0
    for name, action in entries.items():
        seconds, n_tokens = best_of_three(action)
        print(f"hugging face {name:18} {len(lines) / seconds:10,.0f} lines/s")
        best = max(best, len(lines) / seconds)
    arguments = [PROGRAM, MODEL, FILE] + ([str(MAX_LENGTH)] if MAX_LENGTH else [])
    ours = json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)
    print(f"ferry                           {ours['lines_per_s']:10,.0f} lines/s, {ours['mb_per_s']} MB/s, "
          f"opened in {ours['open_ms']} ms")
    print(f"tokens: {n_tokens} and {ours['tokens']}; ratio {ours['lines_per_s'] / best:.1f}")


if __name__ == "__main__":
    main()

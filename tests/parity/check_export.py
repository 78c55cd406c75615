#!/usr/bin/env python3
"""Asserts that an exported directory means the same to Hugging Face `transformers` as to Ferry.

    check_export.py DIRECTORY [PREDICTIONS]

PREDICTIONS is what a training run writes: DIRECTORY/../predictions.jsonl by default, one held-out text a line,
    {"text": ..., "text_pair": ..., "predicted": "sport", "logits": [...]}
text_pair only where the task has two texts; predicted is a list of labels where a text may have several, and a number in
a regression. The directory is loaded with AutoModel and AutoTokenizer, the texts are run in fp32 on the CPU, and every
label has to be equal and every logit within --tolerance. Exits 1 with the first texts that differ, 77 (skipped) where
transformers is not installed.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

os.environ['HF_HUB_OFFLINE'] = '1'  # what is in the directory has to be enough
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'

try:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)


def read_predictions(path):
    """The rows of a predictions file; each has text, predicted and logits."""
    rows = []
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        row = json.loads(line)
        for key in ('text', 'predicted', 'logits'):
            if key not in row:
                sys.exit(f"{path}:{number}: no '{key}'")
        rows.append(row)
    if not rows:
        sys.exit(f'{path}: no predictions')
    return rows


def load(directory):
    """Model and tokenizer of the directory; fails where a weight is missing, left over or of another shape."""
    model, report = AutoModelForSequenceClassification.from_pretrained(directory, output_loading_info=True)
    wrong = {kind: sorted(map(str, names)) for kind, names in report.items() if names}
    if wrong:
        sys.exit(f'{directory}: weights and model do not match: {wrong}')
    return model.float().eval(), AutoTokenizer.from_pretrained(directory)


def run(model, tokenizer, rows, max_length, batch_size=16):
    """Logits of every row, (rows, labels), as transformers computes them."""
    logits = []
    with torch.inference_mode():
        for first in range(0, len(rows), batch_size):
            batch = rows[first:first + batch_size]
            pairs = [row['text_pair'] for row in batch] if 'text_pair' in batch[0] else None
            encoded = tokenizer([row['text'] for row in batch], pairs, truncation=True, max_length=max_length,
                                padding=True, return_tensors='pt')
            logits.append(model(**encoded).logits)
    return torch.cat(logits)


def labels_of(model, logits):
    """What transformers would answer for each row, in the form of `predicted`; None for a regression."""
    names = model.config.id2label
    problem = model.config.problem_type
    if problem == 'regression':
        return [None] * len(logits)
    if problem == 'multi_label_classification':
        return [[names[i] for i, logit in enumerate(row) if logit > 0] for row in logits.tolist()]
    return [names[int(i)] for i in logits.argmax(dim=1)]


def trained_length(directory):
    """max_length of the run that the directory belongs to, else 128."""
    settings = directory / '../config.toml'
    found = re.search(r'(?m)^max_length\s*=\s*(\d+)', settings.read_text()) if settings.exists() else None
    return int(found[1]) if found else 128


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('directory', type=Path)
    parser.add_argument('predictions', type=Path, nargs='?')
    parser.add_argument('--max-length', type=int, help='as trained (default: of config.toml beside it, or 128)')
    parser.add_argument('--padding-side', choices=['left', 'right'], help="in place of the tokenizer's")
    parser.add_argument('--tolerance', type=float, default=1e-4, help='of a logit, absolute (default 1e-4)')
    arguments = parser.parse_args()

    rows = read_predictions(arguments.predictions or arguments.directory / '../predictions.jsonl')
    model, tokenizer = load(arguments.directory)
    tokenizer.padding_side = arguments.padding_side or tokenizer.padding_side
    ours = torch.tensor([row['logits'] for row in rows])
    theirs = run(model, tokenizer, rows, arguments.max_length or trained_length(arguments.directory))
    if ours.shape != theirs.shape:
        sys.exit(f'logits are {tuple(ours.shape)} in the predictions and {tuple(theirs.shape)} in transformers')

    apart = (ours - theirs).abs().amax(dim=1)
    labels = labels_of(model, theirs)
    other = [i for i, row in enumerate(rows) if labels[i] is not None and row['predicted'] != labels[i]]
    # A NaN is not within anything.
    far = [i for i in range(len(rows)) if not apart[i] <= arguments.tolerance]
    for i in sorted(set(other + far))[:5]:
        print(f"differs: predicted {rows[i]['predicted']}, transformers {labels[i]}, logits {apart[i]:.2e} apart: "
              f"{rows[i]['text'][:70]!r}")
    print(f'{len(rows)} texts: {len(rows) - len(other)} labels equal, largest difference of a logit {apart.max():.2e}')
    sys.exit(1 if other or far else 0)


if __name__ == '__main__':
    main()

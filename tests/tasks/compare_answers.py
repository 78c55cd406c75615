#!/usr/bin/env python3
"""Asserts that Ferry scores tags as seqeval does, and answers as SQuAD defines it (squad_scores.py), on seeded random ones.

compare_answers.py SCORE_ANSWERS; called by Meson. Quick: 2,000 of each; FERRY_LONG=1: 50,000. Exits with 77 (skipped) and a
reason where seqeval is not there.
"""

import json
import os
import random
import subprocess
import sys
import warnings

try:
    from seqeval import metrics as seqeval
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import squad_scores

N_EACH = 50000 if os.environ.get("FERRY_LONG") == "1" else 2000
SEED = 20251125
TOLERANCE = 1e-12

# As people write them: IOB1 and IOB2, IOBES, BILOU (of which seqeval's default mode knows B, I and O), without types, types with dashes.
SCHEMES = [["O", "B-X", "I-X", "B-Y", "I-Y"], ["O", "I-X", "I-Y", "B-Y"],
           ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"],
           ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"], ["O", "B", "I"], ["O", "B-a-b", "I-a-b", "I-b", "É-b"]]
WORDS = ["the", "The", "a", "an", "A.", "U.S.", "Denver", "denver", "Broncos", "(broncos)", "10,000", "é", "É", "theatre",
         "a–b", "the_", "_a", "x²", "Ⅻ", "日本", "–", "'", "an’s", "İstanbul", "ſ", "\u0301", "a\u0301"]
SPACES = [" ", "  ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\x1f", "-"]


def tags(rng):
    scheme, n = rng.choice(SCHEMES), rng.randint(1, 6)
    actual = [[rng.choice(scheme) for _ in range(rng.randint(1, 12))] for _ in range(n)]
    keep = rng.random()
    predicted = [[tag if rng.random() < keep else rng.choice(scheme) for tag in text] for text in actual]
    return {"actual": actual, "predicted": predicted}


def expected_of_tags(request):
    pair = request["actual"], request["predicted"]
    return {"precision": seqeval.precision_score(*pair), "recall": seqeval.recall_score(*pair),
            "f1": seqeval.f1_score(*pair), "accuracy": seqeval.accuracy_score(*pair)}


def text(rng):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(0, 5)))


def answer(rng):
    right = [text(rng) for _ in range(rng.randint(1, 3))]
    return {"right": right, "answer": rng.choice(right).lower() if rng.random() < 0.3 else text(rng)}


def expected_of_answer(request):
    return {"exact_match": max(squad_scores.exact_match(r, request["answer"]) for r in request["right"]),
            "f1": max(squad_scores.f1(r, request["answer"]) for r in request["right"])}


def main():
    warnings.simplefilter("ignore")  # of tags that are no entities' and of ratios of nothing
    rng = random.Random(SEED)
    kinds = [(tags, expected_of_tags), (answer, expected_of_answer)]
    pairs = [(make(rng), expected) for make, expected in kinds for _ in range(N_EACH)]
    done = subprocess.run([sys.argv[1]], input="".join(json.dumps(request) + "\n" for request, _ in pairs), text=True,
                          capture_output=True, check=True)
    scored = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(scored) == len(pairs), f"{len(scored)} lines of {len(pairs)}"
    n_failed = 0
    for (request, expected_of), got in zip(pairs, scored):
        expected = expected_of(request)
        if expected.keys() == got.keys() and all(abs(got[name] - expected[name]) <= TOLERANCE for name in got):
            continue
        n_failed += 1
        if n_failed <= 5:
            print(f"{json.dumps(request)}\n  expected {expected}\n  got      {got}")
    print(f"answers: {len(pairs) - n_failed} of {len(pairs)} scored as seqeval and SQuAD do")
    sys.exit(n_failed > 0)


main()

#!/usr/bin/env python3
"""Asserts that Ferry's evaluation metrics are those of scikit-learn and SciPy, on seeded random predictions.

compare_metrics.py SCORE_PREDICTIONS; called by Meson. Quick: 600 data sets; FERRY_LONG=1: 20,000. Exits with 77 (skipped)
and a reason where the wheels are absent.
"""

import json
import math
import os
import subprocess
import sys
import warnings

try:
    import numpy as np
    from scipy import stats
    from sklearn import metrics
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

N_SETS = 20000 if os.environ.get("FERRY_LONG") == "1" else 600
SEED = 20240611
TOLERANCE = 1e-11  # of n <= 60 samples in fp64, in another order; correlations lose digits where little varies


def single_label(rng):
    """Few samples of many classes, so that classes are absent on either side, or on both."""
    n_labels, n = int(rng.integers(2, 7)), int(rng.integers(1, 40))
    actual = rng.integers(0, rng.integers(1, n_labels + 1), n)
    predicted = np.where(rng.random(n) < rng.random(), actual, rng.integers(0, rng.integers(1, n_labels + 1), n))
    expected = {"accuracy": metrics.accuracy_score(actual, predicted),
                "f1_macro": metrics.f1_score(actual, predicted, average="macro"),
                "matthews_correlation": metrics.matthews_corrcoef(actual, predicted)}
    if n_labels == 2:
        expected["f1"] = metrics.f1_score(actual, predicted, pos_label=1)
    return {"n_labels": n_labels, "actual": actual.tolist(), "predicted": predicted.tolist()}, expected


def multi_label(rng):
    n_labels, n = int(rng.integers(2, 6)), int(rng.integers(1, 30))  # with one label it would be binary
    actual = (rng.random((n, n_labels)) < rng.random(n_labels)).astype(int)
    logits = np.round(rng.normal(rng.normal(0, 2, n_labels), 1, (n, n_labels)), 1)  # a few are 0: not predicted
    right = rng.random(n) < 0.3
    logits[right] = np.where(actual[right] == 1, 1.5, -1.5)
    predicted = (logits > 0).astype(int)
    expected = {"accuracy": metrics.accuracy_score(actual, predicted),
                "f1_micro": metrics.f1_score(actual, predicted, average="micro"),
                "f1_macro": metrics.f1_score(actual, predicted, average="macro")}
    sets = [np.flatnonzero(row).tolist() for row in actual]
    return {"n_labels": n_labels, "actual": sets, "predicted": logits.tolist()}, expected


def regression(rng):
    """Ties on either side; now and then a side that does not vary, or a mean far from 0."""
    n = int(rng.integers(2, 60))
    actual = np.round(rng.normal(0, 2, n) * 2) / 2 + rng.choice([0, 2.5, 1000])
    predicted = np.round(actual * rng.choice([-1, 0.1, 1]) + rng.normal(0, 1, n), int(rng.integers(0, 4)))
    if rng.random() < 0.1:
        predicted[:] = predicted[0] + 0.1
    expected = {"mean_absolute_error": metrics.mean_absolute_error(actual, predicted),
                "mean_squared_error": metrics.mean_squared_error(actual, predicted),
                "pearson": stats.pearsonr(actual, predicted)[0],
                "spearman": stats.spearmanr(actual, predicted)[0]}
    return {"actual": actual.tolist(), "predicted": predicted.tolist()}, expected


def is_close(a, b):
    return abs(a - b) <= TOLERANCE * max(1, abs(b))


def main():
    warnings.simplefilter("ignore")  # of the undefined cases, which are what is compared here
    rng = np.random.default_rng(SEED)
    makers = [single_label, multi_label, regression]
    requests, expectations = [], []
    for i in range(N_SETS):
        make = makers[i % len(makers)]
        request, expected = make(rng)
        requests.append({"problem": make.__name__, **request})
        expectations.append({name: float(value) for name, value in expected.items() if not math.isnan(value)})
    done = subprocess.run([sys.argv[1]], input="".join(json.dumps(r) + "\n" for r in requests), text=True,
                          capture_output=True, check=True)
    scored = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(scored) == N_SETS, f"{len(scored)} lines of {N_SETS}"
    n_failed = 0
    for request, expected, got in zip(requests, expectations, scored):
        if expected.keys() == got.keys() and all(is_close(got[name], expected[name]) for name in got):
            continue
        n_failed += 1
        if n_failed <= 5:
            print(f"{json.dumps(request)}\n  expected {expected}\n  got      {got}")
    n_undefined = sum("pearson" not in e and "mean_squared_error" in e for e in expectations)
    assert n_undefined > 0, "no data set without a correlation: that case was not compared"
    print(f"metrics: {N_SETS - n_failed} of {N_SETS} data sets as scikit-learn and SciPy have them, "
          f"{n_undefined} of them without correlations")
    sys.exit(n_failed > 0)


main()

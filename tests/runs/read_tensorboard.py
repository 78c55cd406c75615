#!/usr/bin/env python3
"""Asserts that TensorBoard reads from a run's event files what its metrics.jsonl says, also after kills and resumes.

read_tensorboard.py WRITE_METRICS; called by Meson. Exits with 77 (skipped) and a reason where the wheels are absent.
"""

import json
import logging
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy as np
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TAGS = {"loss": "train/loss", "loss_mean": "train/loss_mean", "learning_rate": "train/learning_rate", "grad_norm": "train/grad_norm",
        "train_tokens_per_second": "throughput/train_tokens_per_second", "eval_loss": "eval/loss",
        "eval_f1_macro": "eval/f1_macro", "eval_" + "long" * 60: "eval/" + "long" * 60}


def lines_of(first, last, attempt):
    """A run's lines; each attempt at a step has other values. The loss of step 4 is not finite."""
    for step in range(first, last + 1):
        mean = {"loss_mean": attempt + 2 / step} if step % 2 == 0 else {}
        yield {"step": step, "epoch": step / 10, **mean, "loss": None if step == 4 else attempt + 1 / step, "grad_norm": 0.1 * step,
               "learning_rate": 2e-5 / step, "train_tokens_per_second": 1e6 + step, "step_ms": 3.5}
        if step % 3 == 0:
            yield {"step": step, "eval_loss": attempt + 0.5, "eval_f1_macro": 1 / step, "eval_" + "long" * 60: step}
            yield {"step": step, "save_seconds": 0.25, "save_bytes": 12}


def write(run, n_steps, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    subprocess.run([sys.argv[1], str(run), str(n_steps)], input=text, text=True, check=True)


def check(run, lines):
    """Every point of the lines, no other, in TensorBoard's two readers."""
    expected = {}
    for line in lines:
        for key, tag in TAGS.items():
            if key in line:
                value = math.nan if line[key] is None else line[key]
                expected.setdefault(tag, []).append((line["step"], float(np.float32(value))))
    events = event_accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    dashboard = plugin_event_accumulator.EventAccumulator(str(run / "tensorboard"))
    dashboard.Reload()
    assert sorted(events.Tags()["scalars"]) == sorted(expected), events.Tags()
    assert sorted(dashboard.Tags()["tensors"]) == sorted(expected), dashboard.Tags()
    now = time.time()
    for tag, points in expected.items():
        got = [(e.step, e.value) for e in events.Scalars(tag)]
        np.testing.assert_array_equal(got, points, err_msg=tag)
        got = [(e.step, float(e.tensor_proto.float_val[0])) for e in dashboard.Tensors(tag)]
        np.testing.assert_array_equal(got, points, err_msg=tag)
        assert dashboard.SummaryMetadata(tag).plugin_data.plugin_name == "scalars"
        assert all(now - 600 < e.wall_time <= now + 1 for e in events.Scalars(tag)), tag
    assert events.FirstEventTimestamp() > now - 600
    return sum(len(points) for points in expected.values())


def main():
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it warns of each purge, which is what is wanted
    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory)
        first = list(lines_of(1, 10, 0))
        write(run, 0, first)
        n_points = check(run, first)

        # Killed after step 10, resumed at once from the checkpoint of step 6: steps 7 to 10 are done again.
        kept = [line for line in first if line["step"] <= 6]
        second = list(lines_of(7, 12, 100))
        write(run, 6, second)
        n_points += check(run, kept + second)

        # Killed in the middle of a record, then resumed from step 9: what lies before the tear counts.
        file = max((run / "tensorboard").iterdir())
        file.write_bytes(file.read_bytes()[:-7])
        kept += [line for line in second if line["step"] <= 9]
        third = list(lines_of(10, 11, 200))
        write(run, 9, third)
        n_points += check(run, kept + third)

        # Resumed where no checkpoint was left: everything is done again.
        fourth = list(lines_of(1, 3, 300))
        write(run, 0, fourth)
        n_points += check(run, fourth)
        assert len(list((run / "tensorboard").iterdir())) == 4
    print(f"tensorboard: {n_points} points read back")


main()

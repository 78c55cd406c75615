#!/usr/bin/env python3
"""The planner against reality on this GPU: predictions are written before each run.

    tests/perf/gpu/plan_grid.py STEP_BENCH PROFILE [--seed 1] [--out DIR] [--only N] [--smoke]

PROFILE is the machine.json that `ferry doctor` wrote here. A fixed part of the grid, some of it with
forced placements, and another drawn by the seed: shapes x GPU memory x types x clipping. For each:
predicted and measured step time, peak bytes of GPU (as the driver counts) and host memory. Bars:
15, 5 and 5 percent, and no run that was said to fit may run out of memory. At the end it also says how
many are within 5, 1 and 3 percent. Then the other side: the
least plan of some shapes runs on all of the memory and its peak is taken; a few percent below that
the planner must refuse, and the peak must be more than what was refused. --smoke tries this program
out on the simulated device: one small case of each kind; only "refused or not" is judged.
"""
import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

FIXED = [  # shape, batch, length, GiB, dtype, clip
    ("minilm", 256, 256, 4, "bf16", 1), ("bert-base", 64, 512, 6, "bf16", 1),
    ("bert-large", 32, 512, 4, "bf16", 1), ("bert-large", 32, 512, 8, "fp16", 1),
    ("bert-large", 32, 512, 11, "bf16", 0), ("bert-large", 64, 384, 24, "bf16", 1),
    ("six-layers", 64, 512, 16, "fp32", 1), ("stack-3g", 8, 1024, 11, "bf16", 1)]
FORCED = [  # the same, and what a planner whose copies are slower beside its GPU would choose
    ("bert-large", 64, 512, 6, "bf16", 1, "--activations", "host"),
    ("bert-large", 32, 512, 4, "bf16", 0, "--activations", "host", "--boundaries", "host"),
    ("stack-3g", 16, 1024, 11, "bf16", 1, "--activations", "host"),
    ("stack-3g", 8, 1024, 8, "bf16", 1, "--slots", "2", "--boundaries", "host")]
REFUSED = [  # shape, batch, length, dtype, clip; at this share of what the least plan takes
    ("minilm", 256, 256, "bf16", 1), ("bert-base", 8, 512, "fp32", 1),
    ("bert-large", 8, 512, "bf16", 0), ("six-layers", 16, 384, "fp16", 1)]
REFUSED_SHARE = 0.95
CLOSE = {"time": 5, "GPU memory": 1, "host memory": 3}  # percent, counted at the end
SMOKE = [("minilm", 4, 16, 1, "fp32", 1), ("minilm", 4, 16, 1, "fp32", 1, "--placement", "host")]
SMOKE_REFUSED = [("minilm", 4, 16, "fp32", 1)]
SMOKE_WORDS = ["--device", "simulated", "--layers", "2"]


def drawn(seed, n=8):
    rng = random.Random(seed)
    while n:
        case = (rng.choice(["minilm", "bert-base", "bert-large", "six-layers", "stack-3g"]),
                rng.choice([8, 32, 64, 128]), rng.choice([128, 256, 384, 512]),
                rng.choice([4, 6, 8, 11, 16, 24]), rng.choice(["bf16", "fp16", "fp32"]),
                rng.choice([0, 1]))
        if case[0] == "stack-3g" and case[4] == "fp32":
            continue  # more host memory than most machines have
        n -= 1
        yield case


def step_bench(args, *words):
    """(exit code, the JSON objects it printed, the end of what it said)."""
    command = [args.step_bench, "--order", "auto", "--profile", args.profile, *words,
               *(SMOKE_WORDS if args.smoke else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines, done.stderr.strip()[-500:]


def refuse(args, log):
    """True where all of REFUSED really do not fit where the planner says no."""
    met = 0
    cases = SMOKE_REFUSED if args.smoke else REFUSED
    print("shape batch length type clip | the least plan took GiB | refused at GiB")
    for shape, batch, length, dtype, clip in cases:
        words = ["--shape", shape, "--batch", batch, "--length", length, "--dtype", dtype,
                 "--clip", clip, "--warmup", 1, "--steps", 2]
        name = f"{shape:10} {batch:3} {length:3} {dtype} {clip}"
        _, lines, err = step_bench(args, *words, "--gpu-memory", "1MiB", "--force", "on")
        if len(lines) < 2:
            print(f"{name} | FAILED: {err[-160:]}", flush=True)
            continue
        took = lines[1]["driver_bytes_max"]
        cap = int(took * REFUSED_SHARE) >> 20
        code, none, said = step_bench(args, *words, "--gpu-memory", f"{cap}MiB")
        is_refused = code == 3 and not none
        log.write(json.dumps({"refused": name, "lines": lines, "cap_MiB": cap, "err": said}) + "\n")
        met += is_refused
        print(f"{name} | {took / 2 ** 30:.2f} | {cap / 2 ** 10:.2f} "
              f"{'refused' if is_refused else f'NOT refused, exit {code}'}", flush=True)
    print(f"{met} of {len(cases)} refused where they really do not fit")
    return met == len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step_bench")
    parser.add_argument("profile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--only", type=int, default=99)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    log = (args.out / "plan_grid.jsonl").open("w")
    met, n_ran, close = 0, 0, dict.fromkeys(CLOSE, 0)
    cases = SMOKE if args.smoke else (FIXED + FORCED + list(drawn(args.seed)))[:args.only]
    print("shape batch length GiB type clip | step ms: said, was | GPU GiB | host GiB")
    for shape, batch, length, gib, dtype, clip, *forced in cases:
        code, lines, err = step_bench(
            args, "--shape", shape, "--batch", batch, "--length", length, "--gpu-memory",
            f"{gib}GiB", "--dtype", dtype, "--clip", clip, "--steps", 7, *forced)
        name = " ".join([f"{shape:10} {batch:3} {length:3} {gib:2} {dtype} {clip}", *forced])
        log.write(json.dumps({"case": name, "lines": lines, "err": err}) + "\n")
        log.flush()
        if len(lines) < 2:
            said = "refused beforehand" if code == 3 and not lines else "FAILED"
            print(f"{name} | {said}: {err[-160:]}", flush=True)
            continue
        said, was = lines[0]["promised"], lines[1]
        time_bar, bytes_bar = (float("inf"),) * 2 if args.smoke else (15, 5)
        pairs = [(said["step_ms"], was["step_ms"], 1, time_bar),
                 (said["gpu_bytes"], was["driver_bytes_max"], 2 ** 30, bytes_bar),
                 (said["host_bytes"], was["host_bytes_max"], 2 ** 30, bytes_bar)]
        text = [f"{p / unit:.1f} {w / unit:.1f} {100 * (p / w - 1):+.0f} %{'' if abs(p / w - 1) * 100 <= bar else ' !'}"
                for p, w, unit, bar in pairs]
        met += all(abs(p / w - 1) * 100 <= bar for p, w, _, bar in pairs)
        n_ran += 1
        for (what, bar), (p, w, _, _) in zip(CLOSE.items(), pairs):
            close[what] += abs(p / w - 1) * 100 <= bar
        print(f"{name} | {' | '.join(text)} | {said['why']}", flush=True)
    print(f"{met} of {len(cases)} within all bars")
    for what, bar in CLOSE.items():
        print(f"{what} within {bar} %: {close[what]} of {n_ran} that ran")
    sys.exit(0 if refuse(args, log) and met == len(cases) else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Ferry beside its peers on the same work, on this machine, in one run.

    tests/perf/compare.py STEP_BENCH [PROFILE] [--work NAME]... [--peer WORDS]... [--steps 12] [--out DIR]
                          [--limit 240]

Prints a table: samples and tokens a second, GPU memory beyond an empty context, energy by NVML, and
Ferry's rate over each peer's beside the bar it is held to. Ferry runs before and after the peers of a
work, so that a machine that drifts shows. PROFILE is what `ferry bench all --output` wrote here: with
it the planner knows times. A peer whose package is missing is named and left out; so is one that
runs out of the memory that it is given, or is not done after so many seconds. --peer "transformers"
takes only the peers whose words have these. All that was printed
is in DIR/compare.jsonl. Ragged rows are drawn by a seed, lengths as of questions with a paragraph:
64 to 503 tokens, 176 on average; peers pad them to the longest of each micro-batch, or with --pad to
512. Each of the steps comes once before it is timed.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

PEER = Path(__file__).resolve().parent / "peers" / "peer.py"
NEEDS = {"transformers": ["transformers"], "plain": ["transformers"],
         "torchao": ["transformers", "torchao"], "deepspeed2": ["transformers", "deepspeed"],
         "deepspeed3": ["transformers", "deepspeed"], "fsdp2": ["transformers"]}

# The peers of each work: engine and options, and Ferry's rate over the peer's that is to be reached,
# if any.
BEST_PLAIN = [("plain --micro 8", 1.12), ("plain --micro 8 --compile", 1.12),
              ("plain --checkpoint", 1.12), ("plain --checkpoint --compile", 1.12)]
WORKS = {
    "bert-bf16": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB",
        "peers": BEST_PLAIN + [("transformers --checkpoint --dtype fp16", 1.5),
                               ("torchao --checkpoint", 1.25)]},
    "bert-fp16": {
        "what": "BERT-Large, 512, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB",
        "peers": BEST_PLAIN + [("transformers --checkpoint", 1.5)]},
    "bert-host": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, weights and states on the host",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB",
        "ferry": "--placement host",
        "peers": [("deepspeed2 --checkpoint", 1.8), ("deepspeed3 --checkpoint", 2.8),
                  ("fsdp2 --checkpoint", 2.8)]},
    "bert-ragged": {
        "what": "BERT-Large, ragged rows, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB",
        "ragged": True,
        "peers": [("transformers --checkpoint", 4.0), ("transformers --checkpoint --pad", None),
                  ("plain --micro 8 --dtype bf16", None), ("plain --checkpoint --dtype bf16", None),
                  ("plain --checkpoint --pad --dtype bf16", None)]},
    "bert-4gib": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 4 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "4GiB",
        "peers": [("torchao --checkpoint", None), ("deepspeed3 --checkpoint", None)]},
    "bert-no-cap": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, all of the GPU",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large",
        "peers": [("transformers", 1.2), ("plain --compile", 0.97)]},
    "llama": {
        "what": "Llama shape of 3.0 G, 1024, 8 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 8 --length 1024 --dtype bf16", "shape": "llama-3g", "cap": "11GiB",
        "peers": [("deepspeed3 --checkpoint", 1.7), ("fsdp2 --checkpoint", None)],
        # The peers' states are fp32 all the same.
        "variants": [("--optim adamw_8bit", {"deepspeed3 --checkpoint": 2.3})]},
}


class Energy:
    """Joules that the first GPU has taken, sampled by NVML beside what runs; none without NVML."""

    INTERVAL_S = 0.02

    def __init__(self):
        self.samples = []  # (monotonic seconds, joules)
        self.ends = threading.Event()
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
            self.device = ctypes.c_void_p()
            works = (self.nvml.nvmlInit_v2() == 0 and self.nvml.nvmlDeviceGetHandleByIndex_v2(
                0, ctypes.byref(self.device)) == 0)
        except OSError:
            works = False
        self.thread = threading.Thread(target=self.sample, daemon=True)
        if works:
            self.thread.start()

    def sample(self):
        millijoules = ctypes.c_ulonglong()
        while not self.ends.wait(self.INTERVAL_S):
            if self.nvml.nvmlDeviceGetTotalEnergyConsumption(
                    self.device, ctypes.byref(millijoules)) == 0:
                self.samples.append((time.monotonic(), millijoules.value / 1e3))

    def stop(self):
        self.ends.set()
        if self.thread.is_alive():
            self.thread.join()

    def joules_between(self, start_s, end_s):
        return joules_between(self.samples, start_s, end_s)


def joules_between(samples, start_s, end_s):
    """Between two times, linear between the samples around each; None where they do not reach."""
    def at(time_s):
        for (t0, j0), (t1, j1) in zip(samples, samples[1:]):
            if t0 <= time_s <= t1:
                return j0 + (j1 - j0) * (time_s - t0) / max(t1 - t0, 1e-9)
        return None
    start, end = at(start_s), at(end_s)
    return None if start is None or end is None else end - start


N_RAGGED = 16


def steps_of(args, work):
    """(warm-up, timed steps). fp16's loss scale comes down in the first ones."""
    if work.get("ragged"):
        return N_RAGGED, N_RAGGED
    return (12 if "fp16" in work["model"] else 4), args.steps


def ragged_lengths(batch, n_steps=N_RAGGED, seed=3):
    """Of n_steps steps; most of them between 90 and 300."""
    rng = random.Random(seed)
    return [[min(512, max(64, int(rng.lognormvariate(5.1, 0.4)))) for _ in range(batch)]
            for _ in range(n_steps)]


def lengths_file(args, work):
    file = args.out / "lengths.txt"
    batch = int(work["model"].split()[work["model"].split().index("--batch") + 1])
    file.write_text("".join(" ".join(map(str, step)) + "\n" for step in ragged_lengths(batch)))
    return ["--lengths", file]


def measured(command, energy, limit_s):
    """The last JSON object that a command prints, with what the GPU took in the timed part."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # compilers that it started would hold its pipes
        process.communicate()
        return {"error": f"not done after {limit_s} s", "command": " ".join(words)}
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    result = lines[-1] if lines and "step_ms" in lines[-1] else (lines or [{}])[-1]
    if "step_ms" not in result and "out_of_memory" not in result:
        result.setdefault("error", err.strip()[-300:] or f"exit {process.returncode}")
    if "timed_from_s" in result:
        result["joules"] = energy.joules_between(result["timed_from_s"], result["timed_to_s"])
    return dict(result, command=" ".join(words))


def missing_of(engine):
    return [name for name in NEEDS[engine] if importlib.util.find_spec(name) is None]


def common_words(args, work):
    """What Ferry and its peers are told alike."""
    warmup, steps = steps_of(args, work)
    words = [*work["model"].split(), "--warmup", warmup, "--steps", steps]
    if "cap" in work:
        words += ["--cap", work["cap"]]
    return words + (lengths_file(args, work) if work.get("ragged") else [])


def ferry_command(args, work, variant=""):
    words = [args.step_bench, "--shape", work["shape"], *common_words(args, work), "--order", "auto",
             "--clip", "1.0", *work.get("ferry", "").split(), *variant.split()]
    return words + (["--profile", args.profile] if args.profile else [])


def peer_command(args, work, peer):
    engine, *options = peer.split()
    return [sys.executable, PEER, "--engine", engine, "--model", work["shape"],
            *common_words(args, work), *options]


def row(name, result):
    """A line of the table: rates, memory, energy."""
    if "step_ms" not in result:
        said = "out of memory" if result.get("out_of_memory") else result.get("error", "?")
        return f"  {name:44} {said}"
    gpu = result["gpu_bytes_max"] / 2**30
    joules = result.get("joules")
    skipped = f"  {result['skipped_steps']} steps skipped" if result.get("skipped_steps") else ""
    energy = f"{joules / result['n_tokens'] * 1e6:7.0f}" if joules else "      -"
    return (f"  {name:44} {result['samples_per_s']:9.1f} {result['tokens_per_s']:9.0f} "
            f"{gpu:6.2f} {energy}{skipped}")


def compare(args, name, work, energy, log):
    """Ferry, its peers, Ferry again; says what was reached."""
    print(f"{work['what']}\n  {'':44} {'samples/s':>9} {'tokens/s':>9} {'GiB':>6} {'J/Mtok':>7}",
          flush=True)

    def run(title, command):
        result = measured(command, energy, args.limit)
        log.write(json.dumps(dict(result, work=name)) + "\n")
        log.flush()
        print(row(title, result), flush=True)
        return result

    ferry = [run("Ferry", ferry_command(args, work))]
    results = []
    for peer, bar in work["peers"]:
        if args.peer and not any(words in peer for words in args.peer):
            continue
        missing = missing_of(peer.split()[0])
        if missing:
            print(f"  {peer:44} not installed: {', '.join(missing)}", flush=True)
            results.append((peer, bar, {}))
            continue
        results.append((peer, bar, run(peer, peer_command(args, work, peer))))
    variants = [(f"Ferry {variant}", run(f"Ferry {variant}", ferry_command(args, work, variant)), bars)
                for variant, bars in work.get("variants", [])]
    ferry.append(run("Ferry again", ferry_command(args, work)))

    def is_met(who, rate, bars):
        met = True
        for peer, bar, result in results:
            bar = bar if bars is None else bars.get(peer)
            if "samples_per_s" not in result:
                # Who runs out of the memory that both have is beaten; of others nothing is known.
                met &= bar is None or result.get("out_of_memory", False)
                continue
            if bars is not None and bar is None:
                continue
            ratio = rate / result["samples_per_s"]
            met &= bar is None or ratio >= bar
            said = "" if bar is None else f", bar {bar}: {'met' if ratio >= bar else 'NOT met'}"
            print(f"  {who}{ratio:.2f} x {peer}{said}")
        return met

    met = all("samples_per_s" in result for result in ferry + [result for _, result, _ in variants])
    if met:
        met = is_met("", statistics.mean(f["samples_per_s"] for f in ferry), None)
        for who, result, bars in variants:
            met &= is_met(f"{who}: ", result["samples_per_s"], bars)
    print(flush=True)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step_bench")
    parser.add_argument("profile", nargs="?")
    parser.add_argument("--work", action="append", choices=sorted(WORKS))
    parser.add_argument("--peer", action="append")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--limit", type=float, default=240, help="seconds that one may take")
    parser.add_argument("--out", type=Path, default=Path("."))
    args = parser.parse_args()
    if not Path(args.step_bench).exists():
        parser.error(f"there is no {args.step_bench}; scripts/build --option tests=true "
                     "tests/perf/step_bench makes build/tests/perf/step_bench")
    energy = Energy()
    n_met = 0
    names = args.work or list(WORKS)
    with (args.out / "compare.jsonl").open("w") as log:
        for name in names:
            n_met += compare(args, name, WORKS[name], energy, log)
    energy.stop()
    print(f"{n_met} of {len(names)} works with every bar met")


if __name__ == "__main__":
    main()

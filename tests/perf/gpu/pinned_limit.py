#!/usr/bin/env python3
"""Steps with a limit on pinned memory against steps without, all weights and states in host memory.

    tests/perf/gpu/pinned_limit.py STEP_BENCH PROFILE [--limit 512MiB] [--smoke]

PROFILE is the machine.json that `ferry doctor` wrote here. For BERT-Large and a Llama of 3.0 G parameters: the step time that
the plan said and the one that was, without a limit and with it, the bytes that went through the ring in a step, and the
ratio of both times. Losses and gradient norms must have the same bits, no more may be pinned than the limit, and the
limited step must be within 10 % of what was said. --smoke tries this program out on the simulated device with a small
model: times are not judged. On an H100 with 16 cores it takes a minute; 3.0 G parameters need 70 GiB of host memory.
"""
import argparse
import json
import subprocess
import sys

CASES = {  # name: words for step_bench
    "BERT-Large, 32 x 512": "--shape bert-large --batch 32 --length 512 --warmup 3 --steps 12",
    "Llama 3.0 G, 8 x 1024": "--shape llama-3g --batch 8 --length 1024 --warmup 2 --steps 5"}
SMOKE = {"MiniLM of two layers": "--shape minilm --layers 2 --batch 4 --length 16 --dtype fp32 --warmup 1 --steps 2 "
                                 "--device simulated"}
SMOKE_LIMIT = "1MiB"
TIME_BAR = 0.10
UNITS = {"KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30}


def bytes_of(text):
    return int(float(text[:-3]) * UNITS[text[-3:]])


def steps(args, words, *more):
    command = [args.step_bench, "--placement", "host", "--profile", args.profile, *words.split(), *more]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != 2:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return lines[0]["promised"], lines[1]


def gib(n_bytes):
    return f"{n_bytes / 2 ** 30:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step_bench")
    parser.add_argument("profile")
    parser.add_argument("--limit", default="512MiB")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    limit = SMOKE_LIMIT if args.smoke else args.limit
    faults = []
    print("case | pinned GiB | beside it GiB | ring GiB a step | said ms | was ms | off")
    for name, words in (SMOKE if args.smoke else CASES).items():
        times, bits = [], []
        for more in ([], ["--pinned-memory", limit]):
            said, was = steps(args, words, *more)
            times.append(was["step_ms"])
            bits.append([was[key] for key in ("first_loss", "loss", "grad_norm")])
            off = said["step_ms"] / was["step_ms"] - 1
            print(f"{name}{', ' + limit if more else ''} | {gib(was['pinned_bytes'])} | {gib(was['unpinned_bytes'])} | "
                  f"{gib(said['step_ring_bytes'])} | {said['step_ms']:.1f} | {was['step_ms']:.1f} | {100 * off:+.1f} %",
                  flush=True)
            if not more:
                if was["unpinned_bytes"] and not args.smoke:
                    faults.append(f"{name}: the system does not pin all, so there is nothing to compare with")
                continue
            if was["pinned_bytes"] > bytes_of(limit) or not was["unpinned_bytes"] or not said["step_ring_bytes"]:
                faults.append(f"{name}: {was['pinned_bytes']} bytes pinned of {limit}, {was['unpinned_bytes']} beside them")
            if abs(was["pinned_bytes"] - said["pinned_bytes"]) > 2 ** 20:
                faults.append(f"{name}: {said['pinned_bytes']} bytes pinned were said, {was['pinned_bytes']} were")
            if abs(off) > TIME_BAR and not args.smoke:
                faults.append(f"{name}: the step is {100 * off:+.1f} % off")
        print(f"{name}: {times[1] / times[0]:.2f} times the step with all pinned; "
              f"{'the same bits' if bits[0] == bits[1] else 'OTHER BITS'}", flush=True)
        if bits[0] != bits[1]:
            faults.append(f"{name}: {bits[0]} without a limit, {bits[1]} with it")
    print("\n".join(faults) if faults else "all held")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Steps on this GPU against the time that their bytes and operations need, with every rate measured apart from them.

    tests/perf/gpu/against_formula.py BUILD_DIR [CASE]... [--json] [--bar 0.9] [--logs DIR] [--profile FILE]

CASE is one of those below; none means consumer-host. BUILD_DIR is a build with step_bench, ferry and ferry-trainer. No rate comes
from the steps that are judged; each is measured by a program of its own:

    copies both ways                `ferry bench all`
    AdamW alone and beside copies   `ferry bench adamw`, right before the steps and right after them, the mean of both: what else
                                    runs on a host takes from its memory, and changes within a minute
    forward, recompute, backward    steps of the same shapes with all weights and states on the GPU: the whole model, or where
                                    that does not fit, its first and last block and a few layers, the mean of which stands for all

AdamW's rate is that of fp32 states in bytes; states of 8 bits are taken to move theirs as fast, which arithmetic may not allow.
Which blocks lie where and which layers are recomputed is the plan of the judged steps. All of it under the case's emulation: cores
by affinity, one thread a core, instructions by FERRY_SIMD. The same updates once more after the steps in the run's own memory are
shown, and are no part of the formula. From these

    clipping or loss scaling   max(backward, copies) + max(forward, CPU update, copies to the GPU) + edges
    neither                    max(forward + backward, CPU update, copies each way) + edges

where backward has what is recomputed, forward AdamW of the blocks that live on the GPU, copies and CPU updates are those of the
blocks that live on the host, and the edges are the first trained block's update and copy and the last one's forward. Frozen
parameters are copied to the GPU in both passes, but have no gradients that are copied or made, and no updates: the steps that
computing is timed in freeze the same. Blocks before the first trained one have no backward, and are copied once. Exits 1 where a
step takes longer than formula / bar, or a case fails.

Cases whose states live on a drive (nvme-1g, nvme-1g-split, nvme-3g, nvme-3g-windows) have one more resource, beside the CPU's update: the bytes that a step reads
and writes at the rates of `ferry bench disk` in the same directory, right before the steps and right after them, the mean of
both. Reads and writes at once go at the rate of both together. The same steps with states in host memory run beside them: a case
fails where their loss and norm have other bits.

--device, --shape, --dtype, --batch, --length and --gpu-memory replace the case's; with --device cpu it only shows that all
parts work. --profile: the planner takes this machine profile, that of other steps which are to have the same plan, not the one
that is measured here.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compare import objects  # noqa: E402
from faults import STATE_BYTES  # noqa: E402


@dataclass(frozen=True)
class Case:
    shape: str = "bert-large"
    dtype: str = "bf16"
    batch: int = 32
    length: int = 512
    clip: float = 1
    placement: str = "host"
    activations: str = "keep"
    micro: int | None = None  # texts at once; None: all of them, which the formula is of; 0: as planned, which has to be all
    order: str = "horizontal"  # of several micro-batches
    attention: str = "auto"
    gpu_memory: str = "0"
    host_memory: str = "0"
    device: str = "cuda"
    cores: int = 0  # 0: all that are usable
    simd: str = ""  # "": the best here
    layers: int = 0  # 0: the shape's
    reference_layers: int = 0  # of the steps that computing is timed in; 0: all of them fit on the GPU
    optim: str = "adamw"
    master: str = "fp32"
    steps: int = 10
    limit_s: int = 60
    freeze: str = ""  # patterns, as in the option of a run
    learns: bool = False  # the loss of the rows, the same in each step, has to fall
    twin_steps: bool = True  # with states on a drive: the same steps with states in host memory run, too


STACK = Case(shape="stack-3g", batch=8, length=1024, gpu_memory="11GiB", activations="recompute", reference_layers=4)
# 13 G parameters on one card: 6 bytes of each in host memory, and its gradient.
GPT2 = Case(shape="gpt2-13g", gpu_memory="11GiB", host_memory="118GiB", placement="auto", activations="auto",
            reference_layers=3, optim="adamw_8bit", master="split", steps=20, limit_s=280, learns=True)
# Of the matrices only the last one of each layer is trained, and the norms are.
FROZEN = Case(shape="llama-3g", batch=8, length=1024, gpu_memory="11GiB", placement="auto", activations="recompute", reference_layers=4,
              freeze="model.embed_tokens.*,*.self_attn.*,*.mlp.gate_proj.*,*.mlp.up_proj.*,lm_head.*")
# Llama's layers, 1,002 M parameters; all states on the drive, at 12 bytes a parameter twice.
NVME = Case(shape="llama-3g", layers=8, batch=8, length=1024, gpu_memory="11GiB", placement="nvme", activations="recompute", steps=6,
            limit_s=240)
CASES = {
    # A desktop with a Turing card: six cores with AVX2, fp16 with loss scaling, no flash attention.
    "consumer-host": Case(dtype="fp16", attention="memory_efficient", cores=6, simd="avx2"),
    "host-clip": Case(),
    "host-no-clip": Case(clip=0),
    "stack-host": STACK,
    "stack-filled": replace(STACK, placement="auto"),
    "frozen-host": replace(FROZEN, placement="host"),
    "frozen-filled": FROZEN,
    "gpt2-13g-32": GPT2,
    "gpt2-13g-8": replace(GPT2, batch=8),
    "nvme-1g": NVME,
    # A master of two halves, of which one is the weights: 10 bytes a parameter on the drive.
    "nvme-1g-split": replace(NVME, master="split"),
    # 3.0 G parameters: two generations of states of 8 bytes each take 48 GB.
    "nvme-3g": replace(NVME, layers=0, reference_layers=4, optim="adamw_bf16", steps=3),
    # Host memory holds the process and windows: weights and gradients live on the drive, too.
    "nvme-3g-windows": replace(NVME, layers=0, reference_layers=4, optim="adamw_8bit", host_memory="4GiB", steps=3),
    # Beside steps of compare.py, which leave the plan to the planner: the same plan only comes of asking for the same.
    "bert-4gib": Case(gpu_memory="4GiB", placement="auto", activations="auto", micro=0, order="auto"),
}
ADAMW_BYTES = 28  # of a parameter in the profile's rate
# What copies to the GPU alone take from updates, of what copies both ways do: as in src/plan/cost/cost.cpp.
TAKEN_BY_H2D = 0.45
WARM_UP = 3
REFERENCE_STEPS = 4
LOSS_SCALE_STEPS = 6  # more, in which fp16's scale comes down to what overflows no longer
TRACED = 3  # step_bench traces its last three
BENCH_S = 10
ADAMW_BENCH_S = 6
DISK_BENCH_S = 10
DISK_BENCH_WINDOW = "960MiB"  # the slots of nvme-1g; what stays in the processor's caches is copied faster by a virtual disk
DISK_BENCH_FILE = "8GiB"  # a small one lies in what the machine below keeps of a virtual disk
BENCH_LIMIT_S = 60


class Failed(Exception):
    pass


def chosen_cores(n):
    """The first n usable ones, no two of them threads of one core as long as there are others."""
    firsts, others, seen = [], [], set()
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(cpu)
        (others if core in seen else firsts).append(cpu)
        seen.add(core)
    cpus = firsts + others
    if n > len(cpus):
        raise Failed(f"the case wants {n} cores, {len(cpus)} are usable here")
    return set(cpus[:n]) if n else set(cpus)


class Runner:
    """Commands under the case's emulation; each has a limit, its output goes to a log."""

    def __init__(self, build, logs, planned_with=None, drive=None):
        self.build, self.logs, self.planned_with, self.drive = build, logs, planned_with, drive or logs
        self.rates = {}

    def run(self, case, name, command, limit_s):
        cores = chosen_cores(case.cores)
        environment = dict(os.environ)
        environment.pop("FERRY_SIMD", None)
        if case.simd:
            environment["FERRY_SIMD"] = case.simd
        environment["OMP_NUM_THREADS"] = str(len(cores))
        words = [str(word) for word in command]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, env=environment,
                                  preexec_fn=lambda: os.sched_setaffinity(0, cores))
        except subprocess.TimeoutExpired:
            raise Failed(f"{name}: not done after {limit_s} s: {' '.join(words)}")
        except FileNotFoundError:
            raise Failed(f"{name}: {words[0]} is not there: build step_bench, ferry and ferry-trainer")
        (self.logs / f"{name}.log").write_text(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise Failed(f"{name}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def profile_file(self, case):
        return self.logs / f"machine-{case.cores}-{case.simd or 'best'}.json"

    def rates_of(self, case):
        """Copies in bytes per second; once for each emulation. The whole profile goes to the planner, as it does in training,
        where no other is given."""
        key = (case.cores, case.simd, case.device)
        if key not in self.rates:
            file = self.profile_file(case)
            file.unlink(missing_ok=True)  # of an earlier run: ferry overwrites nothing
            self.run(case, file.stem, [self.build / "src/cli/ferry", "bench", "all", "--seconds", BENCH_S, "--output", file],
                     BENCH_LIMIT_S)
            profile = json.loads(file.read_text())
            rates = {}
            if case.device == "cuda":
                copies = max(profile["gpu"]["copies"], key=lambda rate: rate["bytes"])
                rates |= {name: copies[name] for name in ("h2d", "d2h", "h2d_beside_d2h", "d2h_beside_h2d")}
            else:  # there are no copies without a GPU
                rates |= dict.fromkeys(("h2d", "d2h", "h2d_beside_d2h", "d2h_beside_h2d"), float("inf"))
            self.rates[key] = rates
        return self.rates[key]

    def adamw_rates(self, case, name):
        """Parameters per second of all threads as it is now."""
        said = self.run(case, name, [self.build / "src/cli/ferry", "bench", "adamw", "--seconds", ADAMW_BENCH_S, "--json"],
                        BENCH_LIMIT_S)
        rate = max(json.loads(said)["profile"]["host"]["adamw"], key=lambda rate: rate["threads"])
        return {"adamw": rate["alone"], "adamw_beside_copies": rate.get("beside_copies") or rate["alone"]}

    def drive_rates(self, case, name):
        """Bytes per second as it is now: read and written alone, and each of both at once."""
        said = self.run(case, name, [self.build / "src/cli/ferry", "bench", "disk", "--directory", self.drive, "--seconds", DISK_BENCH_S,
                                     "--file-bytes", DISK_BENCH_FILE, "--window-bytes", DISK_BENCH_WINDOW, "--json"], BENCH_LIMIT_S)
        rates = {pattern["pattern"]: pattern["bytes_per_s"] for pattern in json.loads(said)["patterns"]}
        return {**rates, "mixed": rates["mixed"] / 2}

    def tell_planner(self, case, drive):
        """Puts a drive's rates in the profile that the planner takes."""
        file = self.profile_file(case)
        profile = json.loads(file.read_text())
        profile["nvme"] = [{"source": "measured", **{f"{name}_bytes_per_s": rate for name, rate in drive.items()}}]
        file.write_text(json.dumps(profile))

    def steps(self, case, name, n_steps):
        warm_up = WARM_UP + (LOSS_SCALE_STEPS if case.dtype == "fp16" else 0)
        trace = self.logs / f"{name}.trace.json"
        command = [self.build / "tests/perf/step_bench", "--warmup", warm_up, "--steps", n_steps, "--trace", trace]
        for option in ("shape", "dtype", "batch", "length", "clip", "placement", "activations", "order", "attention", "device",
                       "optim", "master", "layers", "freeze"):
            command += [f"--{option}", getattr(case, option)]
        command += ["--micro", case.batch if case.micro is None else case.micro, "--gpu-memory", case.gpu_memory,
                    "--host-memory", case.host_memory, "--profile", self.planned_with or self.profile_file(case)]
        if case.placement == "nvme":
            command += ["--nvme-path", self.drive]
        result = objects(self.run(case, name, command, case.limit_s))[-1]
        if result["n_micro"] != 1:
            raise Failed(f"{name}: {result['n_micro']} micro-batches; the formula is that of one")
        if case.learns and not result["loss"] < result["first_loss"]:
            raise Failed(f"{name}: the loss went from {result['first_loss']} to {result['loss']} on rows that came again and again")
        if result["skipped_steps"]:
            raise Failed(f"{name}: {result['skipped_steps']} steps overflowed and updated nothing: raise LOSS_SCALE_STEPS")
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
        if len({event["args"]["step"] for event in events}) != TRACED:
            raise Failed(f"{name}: {TRACED} steps were to be traced")
        return result, events


SAME = ("first_loss", "loss", "grad_norm")  # wherever bytes live
HOST_QUEUE = 3  # its number in a trace


def by_block(events, verb, queue=None):
    """Milliseconds of one step, by the block's number; on one queue, or on any."""
    found = {}
    for event in events:
        if event["cat"] == verb and (queue is None or event["tid"] == queue):
            block = event["args"]["block"]
            found[block] = found.get(block, 0) + event["dur"] / TRACED / 1e3
    return found


def milliseconds(events, verb, queue=None):
    """Of one step."""
    return sum(by_block(events, verb, queue).values())


def recomputed_blocks(events):
    """Numbers of those that the steps recompute: the plan, no rate of it."""
    return sorted(by_block(events, "recompute"))


def reference_of(case, recomputes):
    """The case of steps with all on the GPU, which no copy and no CPU update is in."""
    return replace(case, placement="gpu", gpu_memory="0", host_memory="0", micro=case.batch, order="horizontal",
                   layers=case.reference_layers or case.layers,
                   activations="recompute" if recomputes else "keep", learns=False)


def compute_times(blocks, recomputed, reference_blocks, reference_events):
    """Of the judged steps' blocks at the rates of the reference's. The first and the last block are the same in both, each layer
    between them is the mean one of the reference."""
    n, n_timed = len(blocks), len(reference_blocks)

    def times_of(verb, of):
        found = by_block(reference_events, verb)
        between = [found.get(i, 0.0) for i in range(1, n_timed - 1)]
        layer = sum(between) / len(between) if between else 0.0
        return sum(found.get(0, 0.0) if i == 0 else found.get(n_timed - 1, 0.0) if i == n - 1 else layer for i in of)

    on_gpu = sum(block["trained"] for block in blocks if block["place"] == "device")
    return {
        "forward_ms": times_of("forward", range(n)),
        "backward_ms": times_of("backward", range(n)) + times_of("recompute", recomputed),
        "last_forward_ms": times_of("forward", [n - 1]),
        # With everything on the GPU all is updated there; of the steps, what lives there.
        "gpu_update_ms": milliseconds(reference_events, "update") * on_gpu / sum(block["trained"] for block in reference_blocks),
    }


def bytes_of_update(case):
    """Of a parameter. Read: gradient, master and both states; written: these but the gradient, and weights of their own. A split
    master's upper half is the weights."""
    wide = case.dtype == "fp32"
    return (4 if wide else 2) + 2 * (4 + STATE_BYTES[case.optim]) + (0 if wide or case.master == "split" else 2)


def host_params(blocks, which="trained"):
    """Those that the CPU updates: their states live in host memory or on a drive."""
    return sum(block[which] for block in blocks if block["place"] in ("host", "nvme"))


def drive_ms(result, rates):
    """Milliseconds that a step's bytes take on its drive; 0 where nothing lives there."""
    read, written = result.get("nvme_read_bytes", 0), result.get("nvme_written_bytes", 0)
    if not read + written:
        return 0.0
    both = min(read, written)
    return 1e3 * (both / rates["mixed"] + (read - both) / rates["read"] + (written - both) / rates["write"])


def rate_in_place(case, result):
    """Parameters per second of the profile's kind that the updates alone are worth, in the memory of the steps themselves. Shown
    beside the rate that the formula takes: on a host that is shared it depends on where memory lies."""
    params = host_params(result["blocks"])
    return params * bytes_of_update(case) / ADAMW_BYTES / result["update_alone_ms"] * 1e3 if params else None


def formula(case, blocks, times, rates, drive=0.0):
    """Milliseconds. `rates["adamw"]` alone, less what copies take from it while they run. drive: milliseconds of the drive."""
    wide = case.dtype == "fp32"  # weights are the master, gradients as wide
    weight_bytes = 4 if wide else 2
    update_bytes = bytes_of_update(case)
    params = host_params(blocks)
    first_trained = next(i for i, block in enumerate(blocks) if block["trained"])
    in_forward, in_backward = host_params(blocks, "params"), host_params(blocks[first_trained:], "params")
    waits = case.clip > 0 or case.dtype == "fp16"

    def copy_ms(n, rate):
        return 1e3 * n * weight_bytes / rates[rate]

    def update_ms(n, copies_ms=0.0, taken_share=0.0):
        beside = rates["adamw"] - taken_share * max(0, rates["adamw"] - rates["adamw_beside_copies"])
        work = 1e3 * n * update_bytes / ADAMW_BYTES
        alone = work / rates["adamw"]
        return min(work / beside, alone + copies_ms * (1 - beside / rates["adamw"]))

    sent = copy_ms(params, "d2h_beside_h2d")
    forward, backward = times["forward_ms"] + times["gpu_update_ms"], times["backward_ms"]
    if waits:
        fetched = copy_ms(in_forward, "h2d")
        update = update_ms(params, fetched, TAKEN_BY_H2D)
        phases = [max(backward, copy_ms(in_backward, "h2d_beside_d2h"), sent)]

        def whole(update):
            return phases[0] + max(forward, update, fetched, drive)
    else:
        fetched = copy_ms(in_forward + in_backward, "h2d_beside_d2h")
        update = update_ms(params, max(fetched, sent), 1)

        def whole(update):
            return max(forward + backward, fetched, sent, update, drive)

    edges = 0.0
    if params:
        first = blocks[first_trained:first_trained + 1]
        edges = update_ms(host_params(first)) + copy_ms(host_params(first, "params"), "h2d") + times["last_forward_ms"]
    return {
        "cpu_update_ms": update,
        "cpu_update_alone_ms": update_ms(params),
        "edges_ms": edges,
        "formula_ms": whole(update) + edges,
        "formula_adamw_alone_ms": whole(update_ms(params)) + edges,
    }


def measure(runner, name, case):
    start = time.monotonic()
    rates = runner.rates_of(case)
    on_drive = case.placement == "nvme"
    before = runner.adamw_rates(case, f"{name}-before")
    if on_drive:
        before_drive = runner.drive_rates(case, f"{name}-drive-before")
        runner.tell_planner(case, before_drive)
    result, events = runner.steps(case, name, case.steps)
    after = runner.adamw_rates(case, f"{name}-after")
    drive = {}
    if on_drive:
        after_drive = runner.drive_rates(case, f"{name}-drive-after")
        drive = {key: (before_drive[key] + after_drive[key]) / 2 for key in before_drive}
        if case.twin_steps:
            twin, _ = runner.steps(replace(case, placement="host", host_memory="0"), f"{name}-host", case.steps)
            if [result[key] for key in SAME] != [twin[key] for key in SAME]:
                raise Failed(f"{name}: {[result[key] for key in SAME]} with states on the drive, {[twin[key] for key in SAME]} in memory")
    rates = dict(rates, before=before["adamw"], after=after["adamw"], in_place=rate_in_place(case, result),
                 **{key: (before[key] + after[key]) / 2 for key in before})
    blocks, recomputed = result["blocks"], recomputed_blocks(events)
    reference, timed = runner.steps(reference_of(case, recomputed), f"{name}-resident", REFERENCE_STEPS)
    times = compute_times(blocks, recomputed, reference["blocks"], timed)
    said = formula(case, blocks, times, rates, drive_ms(result, drive))
    return {
        "case": name,
        **{key: result[key] for key in ("why", "attention_backend", "simd", "n_workers")},
        "host_params": host_params(blocks),
        "gpu_params": sum(block["trained"] for block in blocks if block["place"] == "device"),
        "frozen_params": sum(block["params"] - block["trained"] for block in blocks),
        "host_frozen_params": host_params(blocks, "params") - host_params(blocks),
        "compute_from": f"resident steps, {len(reference['blocks'])} of {len(blocks)} blocks",
        "rates": {key: None if value == float("inf") else value for key, value in rates.items()},
        **times,
        **said,
        **({"drive_rates": drive, "drive_ms": drive_ms(result, drive),
            "drive_measured_ms": {queue: result[f"{queue}_busy_ms"] for queue in ("nvme_read", "nvme_write")},
            **{key: result[key] for key in ("nvme_read_bytes", "nvme_written_bytes", "nvme_store_bytes", "nvme_window_bytes",
                                            "nvme_transport", "planned_host_bytes")}} if on_drive else {}),
        "cpu_update_measured_ms": milliseconds(events, "update", HOST_QUEUE),
        **{key: result[key] for key in ("step_ms", "samples_per_s", "first_loss", "loss", "host_bytes_max", "driver_bytes_max")},
        "ratio": said["formula_ms"] / result["step_ms"],
        "ratio_adamw_alone": said["formula_adamw_alone_ms"] / result["step_ms"],
        "seconds": time.monotonic() - start,
    }


def show(row, bar):
    rates = row["rates"]
    frozen = (f"; {row['frozen_params'] / 1e6:.0f} M are frozen, {row['host_frozen_params'] / 1e6:.0f} M of them on the host"
              if row["frozen_params"] else "")
    print(f"{row['case']}: {row['why']}")
    print(f"  {row['attention_backend']} attention, {row['simd']}, {row['n_workers']} threads; on the host "
          f"{row['host_params'] / 1e6:.0f} M parameters, on the GPU {row['gpu_params'] / 1e6:.0f} M{frozen}")
    in_place = f", in the run's memory, not taken, {rates['in_place'] / 1e6:.0f}" if rates["in_place"] else ""
    print(f"  AdamW {rates['adamw'] / 1e6:.0f} M parameters/s alone (before the steps {rates['before'] / 1e6:.0f}, after them "
          f"{rates['after'] / 1e6:.0f}{in_place}), {rates['adamw_beside_copies'] / 1e6:.0f} beside copies", end="")
    if rates["h2d"]:
        print(f"; copies {rates['h2d'] / 1e9:.1f} and {rates['d2h'] / 1e9:.1f} GB/s, both at once "
              f"{rates['h2d_beside_d2h'] / 1e9:.1f} and {rates['d2h_beside_h2d'] / 1e9:.1f}", end="")
    print(f"\n  forward {row['forward_ms']:.1f} ms, backward {row['backward_ms']:.1f} (of {row['compute_from']}), AdamW on the GPU "
          f"{row['gpu_update_ms']:.1f}, on the CPU {row['cpu_update_ms']:.1f} ({row['cpu_update_alone_ms']:.1f} with nothing beside it; "
          f"in the steps {row['cpu_update_measured_ms']:.1f})")
    if "drive_rates" in row:
        drive = row["drive_rates"]
        busy = row["drive_measured_ms"]
        print(f"  drive {drive['read'] / 1e9:.2f} GB/s read, {drive['write'] / 1e9:.2f} written, {drive['mixed'] / 1e9:.2f} each of both at "
              f"once ({row['nvme_transport']}); a step reads {row['nvme_read_bytes'] / 1e9:.2f} GB and writes "
              f"{row['nvme_written_bytes'] / 1e9:.2f}: {row['drive_ms']:.0f} ms (busy in the steps: reading {busy['nvme_read']:.0f}, writing "
              f"{busy['nvme_write']:.0f}); window {row['nvme_window_bytes'] / 2**20:.0f} MiB, planned in host memory "
              f"{row['planned_host_bytes'] / 2**30:.2f} GiB")
    print(f"  {row['samples_per_s']:.1f} samples/s; loss {row['first_loss']:.3f}, {row['loss']:.3f}; driver "
          f"{row['driver_bytes_max'] / 2**30:.2f} GiB, host {row['host_bytes_max'] / 2**30:.2f} GiB")
    print(f"  formula {row['formula_ms']:.1f} ms, step {row['step_ms']:.1f} ms: {row['ratio']:.2f}{'' if row['ratio'] >= bar else ' !'}"
          f"   (with the rate of AdamW alone {row['ratio_adamw_alone']:.2f}; took {row['seconds']:.0f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}, or all")
    parser.add_argument("--json", action="store_true", help="one object a case on standard output")
    parser.add_argument("--bar", type=float, default=0.9)
    parser.add_argument("--logs", type=Path, help="where outputs and traces are kept")
    parser.add_argument("--profile", type=Path, help="of the machine, for the planner")
    parser.add_argument("--nvme-path", type=Path, help="a directory on the drive that takes states; the logs' by itself")
    for option in ("device", "shape", "dtype", "attention", "gpu_memory"):
        parser.add_argument(f"--{option.replace('_', '-')}")
    for option in ("batch", "length", "cores"):
        parser.add_argument(f"--{option}", type=int)
    arguments = parser.parse_args()
    names = list(CASES) if arguments.cases == ["all"] else arguments.cases or ["consumer-host"]
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]}: {', '.join(CASES)}, or all")
    replaced = {option: getattr(arguments, option)
                for option in ("device", "shape", "dtype", "attention", "gpu_memory", "batch", "length", "cores")
                if getattr(arguments, option) is not None}
    met = 0
    with tempfile.TemporaryDirectory() as scratch:
        logs = arguments.logs or Path(scratch)
        logs.mkdir(parents=True, exist_ok=True)
        runner = Runner(arguments.build, logs, arguments.profile, arguments.nvme_path)
        for name in names:
            try:
                row = measure(runner, name, replace(CASES[name], **replaced))
            except Failed as failed:
                print(json.dumps({"case": name, "failed": str(failed)}) if arguments.json else f"{name} failed: {failed}", flush=True)
                continue
            met += row["ratio"] >= arguments.bar
            if arguments.json:
                print(json.dumps(row), flush=True)
            else:
                show(row, arguments.bar)
    sys.exit(0 if met == len(names) else 1)


if __name__ == "__main__":
    main()

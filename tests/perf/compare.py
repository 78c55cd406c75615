#!/usr/bin/env python3
"""Ferry beside its peers on the same work, on this machine, in one run.

    tests/perf/compare.py STEP_BENCH [PROFILE] [--work NAME|all]... [--menu best|all] [--peer WORDS]...
                          [--deepspeed DIR]... [--steps 12] [--out DIR] [--limit 240] [--absolute]

Without --work: every work that has peers. The others run Ferry alone, beside figures of another kind:
llama-best-batch (tokens a second on one machine) and gpt2-13g-8 to -32 (118 GiB of host memory, some
minutes each). PROFILE is what `ferry bench all --output` wrote here: with it the planner knows times.
Without it, that is measured first, into DIR/machine.json, by the ferry of STEP_BENCH's build.

Prints a table: samples and tokens a second, GPU memory beyond an empty context, that context, host
memory of Ferry, energy by NVML, and Ferry's rate over each peer's beside the bar it is held to. Ferry
runs before and after the peers of a work, so that a machine that drifts shows. GPU memory is the
driver's count after a step, of both sides; --cap binds all that Ferry takes, and of peers what torch's
allocator takes. A peer whose package is missing is named and left out; so is one that is not done
after so many seconds. One that runs out of the memory that it is given holds nobody to a bar.
--peer "transformers" takes only the peers whose words have these. --menu best runs the settings that were
the best of their kind before, --menu all every one that experts name. A peer with a ~ does not do the same
work, the table says what is approximate; the others are exact, and the fastest of them is named below the
table, with its command. --deepspeed DIR, once for each version, is where pip put one with --target; without
it the one that Python finds. All that was printed is in DIR/compare.jsonl, tables to append to
tests/perf/RESULTS.md, with every command, in DIR/results.md, what formulas were worked out from in
DIR/formula/WORK.

Ferry fails where it takes more GPU memory than it was given, more host memory than it promised and a
twentieth or than it was given, is swapped out in part, skips a timed step, or, where a work says so,
where its loss does not fall. A work is met where Ferry did not fail, every bar was compared and none
was missed. Exits 1 where Ferry failed or missed a bar that was compared; a bar that holds for one
machine alone counts with --absolute.

Ragged rows are drawn by a seed, lengths as of questions with a paragraph: 64 to 503 tokens, 176 on
average; peers pad them to the longest of each micro-batch, or with --pad to 512. Each of the steps
comes twice before it is timed: what is recorded or compiled for a shape that comes again is no part
of a step. ragged_loss.py holds their loss to that of padded rows, in fp32, and in fp16 and bf16 with
flash attention.
"""
import argparse
import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from energy import Energy
from faults import faults_of
from results import Row, best_of, markdown
from works import (DEFAULT, MENUS, WORKS, approximation_of, batch_of, bytes_of, peers_of, ragged_lengths,
                   steps_of)

HERE = Path(__file__).resolve().parent
PEER = HERE / "peers" / "peer.py"
FORMULA = HERE / "gpu" / "against_formula.py"
RAGGED_LOSS = HERE / "ragged_loss.py"
NEEDS = {engine: ["torch", "transformers", *more] for engine, more in [
    ("transformers", []), ("plain", []), ("torchao", ["torchao"]), ("deepspeed2", ["deepspeed"]),
    ("deepspeed3", ["deepspeed"]), ("fsdp2", []), ("byhand", [])]}
OPTION_NEEDS = {"--liger": "liger_kernel", "flashadamw": "flashoptim", "adamw8bit": "torchao"}
SKIPPED = 77  # exit code of a program whose needs are not installed; its last line says which
PROFILE_S = 90  # that measuring the machine may take
WIDTH = 62  # of names
STEPS_LEAST = 10  # that a rate is told of
LIMIT_MOST_S = 1e6  # waiting for a program knows no longer ones


def lengths_file(args, work):
    file = args.out / "lengths.txt"
    file.write_text("".join(" ".join(map(str, step)) + "\n" for step in ragged_lengths(batch_of(work))))
    return ["--lengths", file]


def objects(text):
    """Of the lines those that are JSON objects; a warning can begin with a brace too."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return found


def output_of(words, limit_s, environment=None):
    """(standard output, exit code, what went wrong if anything did); no exit code: not done in time."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=environment)
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException as why:  # compilers that it started would live on and hold its pipes
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(why, subprocess.TimeoutExpired):
            raise
        return "", None, f"not done after {limit_s:g} s"
    code = process.returncode
    said = out.strip().splitlines()[-1:] if code == SKIPPED else []
    return out, code, said[0] if said else err.strip()[-300:] or f"exit {code}"


def measured(command, energy, limit_s):
    """The last JSON object that a command prints, with what the GPU took in the timed part."""
    words = [str(word) for word in command]
    out, _, error = output_of(words, limit_s)
    result = {key: value for found in objects(out) for key, value in found.items()}
    if not {"step_ms", "out_of_memory", "formula_ms", "failed", "met"} & set(result):
        result.setdefault("error", error)
    if "timed_from_s" in result:
        result["joules"] = energy.joules_between(result["timed_from_s"], result["timed_to_s"])
    return dict(result, command=" ".join(words))


def missing_of(peer, directories=()):
    """Packages that a peer needs and that are not installed. DeepSpeed's may lie in directories of its own."""
    engine, *options = peer.split()
    needs = NEEDS[engine] + [OPTION_NEEDS[word] for word in options if word in OPTION_NEEDS]
    return [name for name in needs
            if not (name == "deepspeed" and directories) and importlib.util.find_spec(name) is None]


def versions_of(args, peer):
    """Options for each version of the peer's package that is to be run."""
    return [f"--deepspeed {directory}" for directory in args.deepspeed or []
            ] if peer.startswith("deepspeed") and args.deepspeed else [""]


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


def peer_command(args, work, peer, version=""):
    engine, *options = peer.split()
    return [sys.executable, PEER, "--engine", engine, "--model", work["shape"],
            *common_words(args, work), *options, *version.split()]


def title_of(peer, result=None):
    """As the table and bars name a peer: ~ and what is approximate, the version where that is not torch's."""
    approximation = approximation_of(peer)
    version = (result or {}).get("version") if peer.startswith("deepspeed") else None
    return (("~ " if approximation else "") + peer + (f" [{version}]" if version else "") +
            (f" ({approximation})" if approximation else ""))


def build_of(args):
    """step_bench is in tests/perf of it."""
    return Path(args.step_bench, "..", "..", "..").resolve()


def measured_profile(args):
    """A file of this machine, by the same build; None where that cannot measure it."""
    build, file = build_of(args), args.out / "machine.json"
    ferry, trainer = build / "src/cli/ferry", build / "src/train/ferry-trainer"
    file.unlink(missing_ok=True)  # ferry overwrites nothing
    error = f"there is no {ferry}"
    if ferry.is_file():
        print(f"No PROFILE is given: measuring this machine into {file}", flush=True)
        environment = dict(os.environ, **({"FERRY_TRAINER": str(trainer)} if trainer.is_file() else {}))
        _, code, error = output_of([str(ferry), "bench", "all", "--output", str(file)], PROFILE_S,
                                   environment)
        if code == 0:
            return str(file)
    print(f"No machine profile, the planner knows no times: {error}\n", flush=True)
    return None


def formula_command(args, name, work, case, context_bytes):
    """Its memory is what the driver may count in all."""
    words = [sys.executable, FORMULA, build_of(args), case, "--json",
             "--gpu-memory", bytes_of(work["cap"]) + context_bytes, "--logs", args.out / "formula" / name]
    return words + (["--profile", args.profile] if args.profile else [])


def loss_command(args, work, dtype):
    return [sys.executable, RAGGED_LOSS, build_of(args) / "tests/parity/train_dump", "--dtype", dtype,
            "--shape", work["loss"], "--device", "cuda", "--batch", batch_of(work)]


def limit_of(work, limit_s):
    return max(limit_s, work.get("limit", 0))


def seconds_of(work, limit_s, menu="best"):
    """At most, of all that a work runs, with one version of each peer."""
    n_alone = (1 + len(work.get("variants", [])) + (2 if "own" in work else 0) + ("formula" in work) +
               3 * ("loss" in work))
    n_peers = len(peers_of(work, menu))
    return limit_of(work, limit_s) * (n_alone + n_peers + (n_peers > 0))


def row(name, result):
    """A line of the table: rates, memory, energy."""
    if "step_ms" not in result:
        said = "out of memory" if result.get("out_of_memory") else result.get("error", "?")
        return f"  {name:{WIDTH}} {said}"
    gpu, context = result["gpu_bytes_max"] / 2**30, result.get("context_bytes", 0) / 2**30
    joules = result.get("joules")
    energy = f"{joules / result['n_tokens'] * 1e6:7.0f}" if joules else "      -"
    host = f"{result['host_bytes_max'] / 2**30:6.2f}" if "host_bytes_max" in result else "     -"
    troubled = "".join(f"; {result[key]} {what} while timed" for key, what in
                       (("n_retries", "times memory was short"), ("n_recompiled", "times compiled")) if result.get(key))
    return (f"  {name:{WIDTH}} {result['samples_per_s']:9.1f} {result['tokens_per_s']:9.0f} "
            f"{gpu:6.2f} {context:7.2f} {host} {energy}{troubled}")


class Bars:
    """How many of a work's bars were compared, and which of these were met."""

    def __init__(self):
        self.met, self.n_unknown = [], 0

    def hold(self, said, bar, reached):
        """A comparison and its bar, if it has one; reached is None where nothing is known."""
        if bar is not None and reached is None:
            self.n_unknown += 1
        elif bar is not None:
            self.met.append(reached)
            said += f", bar {bar}: {'met' if reached else 'NOT met'}"
        if said:
            print(f"  {said}", flush=True)

    def beside(self, who, rate, peer, result, bar):
        if result.get("out_of_memory"):
            return
        # Of a peer that did not come to its end nothing is known.
        known = rate is not None and "samples_per_s" in result
        ratio = rate / result["samples_per_s"] if known else None
        self.hold(f"{who}{ratio:.2f} x {peer}" if known else "", bar, ratio >= bar if known and bar else None)

    def hold_best(self, rate, rows, bar):
        """Ferry's rate over that of the fastest exact peer. Not decided where one that could be faster did not run."""
        exact = [row for row in rows if not row.approximation]
        unknown = [row for row in exact if not (row.ran or row.result.get("out_of_memory"))]
        best = best_of(rows, exact=True)
        if rate is None or best is None:
            return self.hold("", bar, None)
        ratio = rate / best.rate
        reached = ratio >= bar if bar else None
        said = f"{ratio:.2f} x the best exact peer, {best.title}"
        if unknown:
            said += f" ({len(exact) - len(unknown)} of {len(exact)} ran)"
        # One that did not run can only lower it.
        self.hold(said, bar, None if reached and unknown else reached)
        print(f"    {best.result['command']}", flush=True)

    def summary(self):
        unknown = f", {self.n_unknown} could not be" if self.n_unknown else ""
        return f"{len(self.met)} bars compared, {sum(self.met)} met{unknown}"


def compare(args, name, work, energy, log, results=None):
    """Ferry, its peers, Ferry again. Whether it was met; None where there was nothing to compare. Appends the
    table to the file `results`."""
    print(f"{work['what']}\n  {'':{WIDTH}} {'samples/s':>9} {'tokens/s':>9} {'GiB':>6} {'context':>7} "
          f"{'host':>6} {'J/Mtok':>7}", flush=True)

    def noted(command):
        result = measured(command, energy, limit_of(work, args.limit))
        log.write(json.dumps(dict(result, work=name)) + "\n")
        log.flush()
        return result

    def run(title, command):
        result = noted(command)
        title = title(result) if callable(title) else title
        print(row(title, result), flush=True)
        rows.append(Row(title, result))
        return result

    def run_ferry(title, *variant):
        """And what was wrong with it, which is printed too."""
        result = run(f"Ferry {title}".rstrip(), ferry_command(args, work, *variant))
        faults = faults_of(work, result)
        for fault in faults:
            print(f"    Ferry FAILED: {fault}", flush=True)
        all_faults.extend(faults)
        return result

    def run_peer(peer):
        """The results of all its versions, the fastest first; empty where it was not run."""
        if args.peer and not any(words in peer for words in args.peer):
            return {}
        missing = missing_of(peer, args.deepspeed or ())
        if missing:
            print(f"  {title_of(peer):{WIDTH}} not installed: {', '.join(missing)}", flush=True)
            rows.append(Row(title_of(peer), {}, approximation_of(peer), is_peer=True))
            return {}
        found = []
        for version in versions_of(args, peer):
            found.append(run(lambda result: title_of(peer, result), peer_command(args, work, peer, version)))
            rows[-1].approximation, rows[-1].is_peer = approximation_of(peer), True
        return max(found, key=lambda result: result.get("samples_per_s", 0))

    all_faults, rows = [], []
    ferry = [run_ferry("")]
    peers = [(peer, bar, run_peer(peer)) for peer, bar in peers_of(work, args.menu)]
    variants = [(words, run_ferry(words, words), bars) for words, bars in work.get("variants", [])]
    own = run_ferry(work["own"][0], work["own"][0]) if "own" in work else None
    if peers:
        ferry.append(run_ferry("again"))

    bars = Bars()
    rates = [result["samples_per_s"] for result in ferry if "samples_per_s" in result]
    rate = statistics.mean(rates) if rates else None
    for peer, bar, result in peers:
        bars.beside("", rate, peer, result, bar)
    of_peers = [row for row in rows if row.is_peer]
    bars.hold_best(rate, of_peers, work.get("best"))
    for words, variant, bars_of in variants:
        best = best_of(of_peers, exact=False)
        if best and "samples_per_s" in variant:
            bars.hold(f"Ferry {words}: {variant['samples_per_s'] / best.rate:.2f} x {best.title}", None, None)
        for peer, _, result in peers:
            if peer in bars_of:
                bars.beside(f"Ferry {words}: ", variant.get("samples_per_s"), peer, result, bars_of[peer])
    if own and "loss" in own and own["micro_batch_size"] == ferry[0].get("micro_batch_size"):
        bars.hold(f"loss after the last step {ferry[0]['loss']!r}", f"the {own['loss']!r} of Ferry {work['own'][0]}",
                  ferry[0]["loss"] == own["loss"])
    def formula_of(case):
        return noted(formula_command(args, name, work, case, ferry[0]["context_bytes"]))
    if "formula" in work and rate:
        hold_formula(work, bars, formula_of)
    if own:
        hold_own(work, rate, own, bars, ferry[0].get("why"), formula_of)
    if "loss" in work:
        for dtype in ("fp32", "fp16", "bf16"):
            result = noted(loss_command(args, work, dtype))
            said = (f"in {dtype} loss off padded rows' by {result['relative_difference_max']:.1e} of itself"
                    if "relative_difference_max" in result else f"no loss of padded rows: {result['error']}")
            bars.hold(said, result.get("bar", "of the parity rule"), result.get("met"))
    if "absolute" in work and rate:
        tokens_per_s, where = work["absolute"]
        said = f"{ferry[0]['tokens_per_s']:.0f} tokens/s; on {where}"
        if args.absolute:
            bars.hold(said, tokens_per_s, ferry[0]["tokens_per_s"] >= tokens_per_s)
        else:
            bars.hold(f"{said} bar {tokens_per_s}, held with --absolute", None, None)
    if "published" in work:
        print(f"  published: {work['published']}")
    print(f"  {bars.summary()}{'; Ferry FAILED' if all_faults else ''}\n", flush=True)
    if results:
        results.write(markdown(name, work, rows, rate))
        results.flush()
    if all_faults or not all(bars.met):
        return False
    return True if bars.met and bars.n_unknown == 0 else None


def hold_own(work, rate, own, bars, why, formula_of):
    """Beside Ferry's own rate with other options; only where that is too high does the formula matter."""
    words, share, case = work["own"]
    other = own.get("samples_per_s")
    if not rate or not other:
        return bars.hold("", share, None)
    said = f"{rate / other:.2f} x Ferry {words}"
    if rate >= share * other:
        return bars.hold(said, share, True)
    result = formula_of(case)
    if "formula_ms" not in result:
        return bars.hold(f"{said}; no formula: {result.get('failed') or result['error']}", share, None)
    if result.get("why") != why:
        return bars.hold(f"{said}; the formula is of another plan: {result.get('why')}", share, None)
    formula = batch_of(work) / result["formula_ms"] * 1e3
    return bars.hold(f"{said}, {rate / formula:.2f} x the formula's {formula:.1f}", share,
                     rate >= share * min(other, formula))


def hold_formula(work, bars, formula_of):
    """Steps beside the formula whose rates were measured around them."""
    case, share = work["formula"]
    result = formula_of(case)
    if "ratio" not in result:
        return bars.hold(f"no formula: {result.get('failed') or result['error']}", share, None)
    bars.hold(f"{result['ratio']:.2f} x the formula's {batch_of(work) / result['formula_ms'] * 1e3:.1f}", share,
              result["ratio"] >= share)


def gpu_trouble():
    """Why CUDA has no GPU here; None where it has one. Of the driver, which this Python needs no torch for."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver, libcuda.so.1"
    n_gpus = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(n_gpus))
    if code:
        return f"the NVIDIA driver says error {code}"
    return None if n_gpus.value else "the NVIDIA driver has none"


def check(parser, args, names):
    """Ends with what is to be done where the words cannot be meant so. Makes --out."""
    if not (Path(args.step_bench).is_file() and os.access(args.step_bench, os.X_OK)):
        is_there = Path(args.step_bench).exists()
        parser.error(f"{args.step_bench} is no program that can be run" if is_there else
                     f"there is no {args.step_bench}; scripts/build --option tests=true all benchmarks "
                     "makes build/tests/perf/step_bench")
    if args.profile and not Path(args.profile).is_file():
        parser.error(f"there is no file {args.profile}; `ferry bench all --output {args.profile}` makes "
                     "it, and without PROFILE the machine is measured first")
    if args.steps < STEPS_LEAST:
        parser.error(f"--steps is {STEPS_LEAST} at least")
    if not 0 < args.limit <= LIMIT_MOST_S:  # nan neither
        parser.error(f"--limit is a number of seconds above 0, {LIMIT_MOST_S:.0f} at most")
    known = list(dict.fromkeys(peer for name in names for peer, _ in peers_of(WORKS[name], args.menu)))
    for directory in args.deepspeed or []:
        if not Path(directory, "deepspeed").is_dir():
            parser.error(f"there is no {directory}/deepspeed; pip install --no-deps --target {directory} "
                         "deepspeed==VERSION makes it")
    for words in args.peer or []:
        if not any(words in peer for peer in known):
            parser.error(f"--peer {words!r} is in no peer of these works; they have "
                         f"{'; '.join(known) or 'none: leave --peer out'}")
    trouble = gpu_trouble()
    if trouble:
        parser.error(f"both sides run on a GPU, and none can be used: {trouble}; see that nvidia-smi lists one "
                     "and CUDA_VISIBLE_DEVICES leaves it visible")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {args.out} can be no directory ({error.strerror}); name another")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step_bench", metavar="STEP_BENCH")
    parser.add_argument("profile", nargs="?", metavar="PROFILE",
                        help="of `ferry bench all --output PROFILE`; measured here by itself")
    parser.add_argument("--work", action="append", choices=[*sorted(WORKS), "all"], metavar="NAME",
                        help=f"{', '.join(WORKS)} or all; those with peers by itself")
    parser.add_argument("--peer", action="append", metavar="WORDS")
    parser.add_argument("--menu", choices=MENUS, default="best", help="of peers' settings; best by itself")
    parser.add_argument("--deepspeed", action="append", metavar="DIR",
                        help="of one version, put there by pip install --target; once for each")
    parser.add_argument("--steps", type=int, default=12, help=f"timed ones, {STEPS_LEAST} or more")
    parser.add_argument("--limit", type=float, default=240, help="seconds that one may take")
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR")
    parser.add_argument("--absolute", action="store_true", help="hold bars of one machine too")
    args = parser.parse_args()
    names = list(WORKS) if "all" in (args.work or []) else args.work or DEFAULT
    check(parser, args, names)
    # A name without a slash would be looked for in PATH.
    args.step_bench = os.path.abspath(args.step_bench)
    # What was started is ended first, as with Ctrl-C.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    args.profile = args.profile or measured_profile(args)
    energy = Energy()
    with (args.out / "compare.jsonl").open("w") as log, (args.out / "results.md").open("w") as results:
        ends = [compare(args, name, WORKS[name], energy, log, results) for name in names]
    energy.stop()
    print(f"{ends.count(True)} works met, {ends.count(False)} missed, "
          f"{ends.count(None)} not decided")
    sys.exit(1 if False in ends else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""compare.py without a GPU: energy between samples, what the table says of peers that fail, which works are met."""
import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock
from pathlib import Path

import compare
import energy
import faults
import works

WORK = {"what": "a small work", "model": "--batch 8 --length 16", "shape": "tiny", "cap": "11GiB",
        "peers": [("plain --micro 2", 1.5), ("transformers", 2.0), ("torchao", 9.0)]}
# Stands in for both sides, the formula, the loss and ferry: answers by the engine that it is asked for.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
if sys.argv[1:2] == ["bench"]:
    if "--output" not in sys.argv:
        sys.exit(print(json.dumps({"profile": {"host": {"adamw": [{"threads": 1, "alone": 1e9}]}}})))
    file = Path(sys.argv[sys.argv.index("--output") + 1])
    if os.environ.get("NO_GPU"):
        sys.exit("bench: no usable GPU")
    if file.exists():
        sys.exit(f"'{file}' is there already")
    copies = dict.fromkeys(["bytes", "h2d", "d2h", "h2d_beside_d2h", "d2h_beside_h2d"], 1e10)
    sys.exit(file.write_text(json.dumps({"gpu": {"copies": [copies]}, "trainer": os.environ.get("FERRY_TRAINER")})) == 0)
rates = {"plain": 100.0, "torchao": 180.0, "byhand": 140.0, "deepspeed2": 90.0 if "old" in "".join(sys.argv) else 95.0,
         None: 300.0 if "12GiB" in sys.argv else 210.0}
if "case" in sys.argv:
    print(json.dumps({"step_ms": 50.0, "formula_ms": 40.0, "ratio": 0.8, "why": "as asked for", "argv": sys.argv[1:]}))
    sys.exit(1)
if "no case" in sys.argv:
    sys.exit(print(json.dumps({"case": "no case", "failed": "no ferry"})))
def last(option, default):
    words = [word for option_before, word in zip(sys.argv, sys.argv[1:]) if option_before == option]
    return words[-1] if words else default
if any(word.endswith("train_dump") for word in sys.argv):
    if "without packages" in sys.argv:
        print("a word before\\nskipped: No module named 'transformers'")
        sys.exit(77)
    bad = "bad" in sys.argv
    print(json.dumps({"relative_difference_max": 2e-3 if bad else 2e-7, "bar": 1e-5, "met": not bad,
                      "argv": sys.argv[1:]}))
    sys.exit(bad)
engine = last("--engine", None)
if "--trace" in sys.argv:
    Path(last("--trace", "")).write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "forward", "tid": 0, "dur": 1e3, "args": {"block": 0, "step": step}} for step in (1, 2, 3)]}))
print(json.dumps({"promised": {"host_bytes": 2**32, "regions": [
    {"tag": tag, "place": place, "bytes": n_bytes} for tag, place, n_bytes in
    [("master", "host", int(last("--state-bytes", "1000"))), ("master", "device", 2**40), ("staging", "host", 2**20)]]}}))
if engine == "deepspeed3":
    Path(__file__).with_name("pid").write_text(str(os.getpid()))
    time.sleep(60)
if engine == "fsdp2":
    sys.exit(print("{'a warning': 1}"))
if engine == "transformers":
    print(json.dumps({"engine": engine, "out_of_memory": True}))
else:
    print(json.dumps({"step_ms": 1.0, "samples_per_s": rates[engine], "tokens_per_s": 1000.0,
                      "n_tokens": 10, "gpu_bytes_max": 2**31, "context_bytes": 2**29, "cap": last("--cap", "0"),
                      "host_bytes_max": float(last("--host", "4")) * 2**30, "host-memory": last("--host-memory", "0"),
                      "swapped_bytes": int(last("--swaps", "0")) * 2**20, "skipped_steps": int(last("--skips", "0")), "first_loss": 2.0,
                      "loss": float(last("--loss", "1.0")), "dtype": last("--dtype", "bf16"),
                      "clip": last("--clip", "1.0"), "optim": last("--optim", "adamw"), "master": last("--master", "fp32"),
                      "n_micro": int(last("--n-micro", "1")), "micro_batch_size": int(last("--micro", "8")),
                      "blocks": [{"place": place, "weights": place, "grads": place, "params": n, "trained": n}
                                 for place, n in [("host", 100), ("device", 1000)]],
                      "why": "as asked for", "attention_backend": "flash", "simd": "avx2", "n_workers": 1,
                      "update_alone_ms": 1.0, "version": "0.18" if "old" in "".join(sys.argv) else "0.19", "driver_bytes_max": 2**31, "argv": sys.argv[1:]}))
    print("{'a warning': 1}")
"""


@contextlib.contextmanager
def program_of_both_sides():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text("#!" + sys.executable + PROGRAM)
        program.chmod(0o755)
        yield program


@contextlib.contextmanager
def build_of_both_sides():
    """A build of step_bench, ferry and ferry-trainer; step_bench in it."""
    with program_of_both_sides() as program:
        build = program.parent / "build"
        for name in ("tests/perf/step_bench", "src/cli/ferry", "src/train/ferry-trainer"):
            (build / name).parent.mkdir(parents=True)
            (build / name).write_text(program.read_text())
            (build / name).chmod(0o755)
        yield build / "tests/perf/step_bench"


def arguments(program, **others):
    return argparse.Namespace(**{"step_bench": program, "profile": None, "peer": None, "steps": 12, "limit": 30,
                                 "out": program.parent, "absolute": False, "menu": "best", "deepspeed": None, **others})


NONE_MISSING = dict.fromkeys(["plain", "transformers", "torchao", "deepspeed2", "deepspeed3", "fsdp2", "byhand"], [])


def compared(program, work, needs=NONE_MISSING, **others):
    """(what it was, what was printed, what was logged)."""
    log = io.StringIO()
    with mock.patch.multiple(compare, PEER=program, FORMULA=program, NEEDS=needs), \
            contextlib.redirect_stdout(io.StringIO()) as out:
        met = compare.compare(arguments(program, **others), "small", work, compare.Energy(), log)
    return met, out.getvalue(), [json.loads(line) for line in log.getvalue().splitlines()]


def program_run(works, *words, peer=None, trouble=None):
    """(exit code, what was printed, what was said to be wrong) of compare.py with these words, as on a GPU that has no
    trouble."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.multiple(compare, PEER=peer, NEEDS=NONE_MISSING, WORKS=works,
                             gpu_trouble=lambda: trouble,
                             DEFAULT=[name for name in works if name != "alone"]), \
            mock.patch.object(sys, "argv", ["compare.py", *map(str, words)]), \
            mock.patch.object(signal, "signal"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            compare.main()
        except SystemExit as end:
            return end.code, out.getvalue(), err.getvalue()


class Nvml:
    """Notes which device it is asked for."""

    def __init__(self, name):
        self.asked = []

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, device):
        self.asked.append(index)
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, device):
        self.asked.append(uuid)
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, device, joules):
        return 1


class Driver:
    """libcuda of so many GPUs."""

    def __init__(self, init, n_gpus):
        self.init, self.n_gpus = init, n_gpus

    def cuInit(self, flags):
        return self.init

    def cuDeviceGetCount(self, count):
        count._obj.value = self.n_gpus
        return 0


class Compare(unittest.TestCase):
    def test_energy_is_that_of_the_first_visible_gpu(self):
        for visible, asked in [(None, [0]), ("3,1", [3]), ("GPU-12ab,0", [b"GPU-12ab"]), ("", []), ("-1", [])]:
            others = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
            environment = others if visible is None else dict(others, CUDA_VISIBLE_DEVICES=visible)
            with mock.patch.dict(os.environ, environment, clear=True), mock.patch("ctypes.CDLL", Nvml):
                sampler = compare.Energy()
                self.assertEqual(sampler.nvml.asked, asked, visible)
                self.assertEqual(sampler.thread.is_alive(), bool(asked), visible)
                sampler.stop()

    def test_energy_is_linear_between_samples(self):
        samples = [(0.0, 100.0), (1.0, 300.0), (3.0, 500.0)]
        self.assertAlmostEqual(energy.joules_between(samples, 0.5, 2.0), 400.0 - 200.0)
        self.assertAlmostEqual(energy.joules_between(samples, 0.0, 3.0), 400.0)
        self.assertIsNone(energy.joules_between(samples, 0.5, 3.5))
        self.assertIsNone(energy.joules_between([], 0.5, 3.5))

    def test_the_table_says_what_was_reached(self):
        with program_of_both_sides() as program:
            met, said, lines = compared(program, WORK, dict(NONE_MISSING, torchao=["no_such_package_here"]))
        self.assertIsNone(met, said)  # of torchao nothing is known
        self.assertIn("2.10 x plain --micro 2, bar 1.5: met", said)
        self.assertRegex(said, r"transformers +out of memory")
        self.assertIn("not installed: no_such_package_here", said)
        self.assertIn("  1 bars compared, 1 met, 1 could not be\n", said)
        self.assertRegex(said, r"samples/s +tokens/s +GiB +context +host +J/Mtok\n"
                               r"  Ferry +210.0 +1000 +2.00 +0.50 +4.00 ")
        self.assertEqual([line.get("engine") for line in lines], [None, None, "transformers", None])

    def test_who_runs_out_of_memory_holds_nobody_to_a_bar(self):
        with program_of_both_sides() as program:
            met, said, lines = compared(program, dict(WORK, peers=WORK["peers"][:2]))
        self.assertIs(met, True, said)
        self.assertIn("  1 bars compared, 1 met\n", said)
        for line in (lines[0], lines[1]):  # both have the same memory and the same steps
            words = line["argv"]
            self.assertEqual(words[words.index("--cap") + 1], "11GiB")
            self.assertEqual(words[words.index("--steps") + 1], "12")

    def test_without_a_bar_that_was_compared_nothing_is_met(self):
        with program_of_both_sides() as program:
            for work, others in [(WORK, {"needs": dict.fromkeys(NONE_MISSING, ["no_such_package_here"])}),
                                 (WORK, {"peer": ["no such words"]}),
                                 (dict(WORK, peers=[("plain", None)]), {})]:
                met, said, _ = compared(program, work, **others)
                self.assertIsNone(met, said)
                self.assertIn("  0 bars compared, 0 met", said)

    def test_where_ferry_fails_a_work_is_missed(self):
        with program_of_both_sides() as program:
            met, said, _ = compared(program, dict(WORK, peers=[], ferry="--engine fsdp2"))
        self.assertIs(met, False)
        self.assertIn("    Ferry FAILED: did not come to its end\n", said)
        self.assertIn("  0 bars compared, 0 met; Ferry FAILED\n", said)

    def test_ferry_fails_where_it_takes_more_than_it_may_or_learns_nothing(self):
        with program_of_both_sides() as program:
            for ferry, said_of in [("--cap 1GiB", "took 2.00 GiB of GPU memory, 1.00 are allowed"),
                                   ("--host 4.3", "took 4.30 GiB of host memory, 4.20 are allowed"),
                                   ("--host-memory 3GiB", "took 4.00 GiB of the host memory it was given, 3.00 are allowed"),
                                   ("--state-bytes 100000000000", "took 93.13 GiB of host memory for parameters, 0.00 are allowed"),
                                   ("--swaps 3", "3 MiB of it were swapped out"),
                                   ("--skips 2", "2 steps skipped"),
                                   ("--loss 2.0", "its loss went from 2.000 to 2.000"),
                                   ("--loss nan", "its loss went from 2.000 to nan")]:
                met, said, _ = compared(program, dict(WORK, peers=[("plain", 2.0)], learns=True, ferry=ferry))
                self.assertIs(met, False, said)
                self.assertIn(f"    Ferry FAILED: {said_of}\n", said)
                self.assertIn("  1 bars compared, 1 met; Ferry FAILED\n", said)
            for ferry in ("--cap 2GiB", "--host 4.19", "--host-memory 4GiB"):
                met, said, _ = compared(program, dict(WORK, peers=[("plain", 2.0)], learns=True, ferry=ferry))
                self.assertIs(met, True, said)
            met, said, _ = compared(program, dict(WORK, peers=[("plain", 2.0)], ferry="--loss 2.0"))
            self.assertIs(met, True, said)

    def test_parameters_take_the_bytes_of_their_formats(self):
        def block(states, weights, grads, trained, **more):
            return {"place": states, "weights": weights, "grads": grads, "trained": trained, **more}
        on_host = ["host"] * 3
        result = {"blocks": [block(*on_host, 10), block(*["device"] * 3, 1000)], "dtype": "bf16",
                  "clip": "1.0", "optim": "adamw", "master": "fp32", "n_micro": 1}
        for other, expected in [({}, 16), ({"clip": "0"}, 14), ({"n_micro": 2}, 18), ({"clip": "0", "n_micro": 4}, 18),
                                ({"optim": "adamw_8bit", "master": "split"}, 8), ({"optim": "adamw_bf16"}, 12),
                                ({"dtype": "fp16", "clip": "0"}, 16), ({"dtype": "fp32", "clip": "0"}, 16)]:
            self.assertEqual(faults.bytes_of_parameters({**result, **other}), 10 * expected, other)
        # A tied tensor of 10 has two sums of gradients, one with the block that borrows it.
        tied = [block(*on_host, 12, borrowed=0), block(*on_host, 2, borrowed=10)]
        self.assertEqual(faults.bytes_of_parameters({**result, "blocks": tied}), 14 * (6 + 8) + 4 * (12 + 12))
        # Each of the three has a place: states on the GPU alone, or weights there alone.
        for places, expected in [(("device", "host", "host"), 2 + 2), (("host", "device", "host"), 4 + 8 + 2),
                                 (("device", "host", "device"), 2), (("nvme", "host", "nvme"), 2)]:
            self.assertEqual(faults.bytes_of_parameters({**result, "blocks": [block(*places, 10)]}), 10 * expected, places)

    def test_steps_beside_the_formula(self):
        with program_of_both_sides() as program:
            for share, expected in [(0.8, True), (0.81, False)]:
                met, said, lines = compared(program, dict(WORK, peers=[], formula=("case", share)))
                self.assertIs(met, expected, said)
                self.assertIn(f"  0.80 x the formula's 200.0, bar {share}: ", said)
            met, said, _ = compared(program, dict(WORK, peers=[], formula=("no case", 0.8)))
            self.assertIsNone(met)
            self.assertIn("  no formula: no ferry\n", said)

    def test_with_more_memory_the_loss_is_the_same(self):
        with program_of_both_sides() as program:
            met, said, _ = compared(program, dict(WORK, peers=[], own=("--cap 12GiB --loss 1.5", 0.7, "case")))
            self.assertIs(met, False)
            self.assertIn("  loss after the last step 1.0, bar the 1.5 of Ferry --cap 12GiB --loss 1.5: NOT met\n", said)
            met, said, _ = compared(program, dict(WORK, peers=[], own=("--cap 12GiB --loss 1.5 --micro 4", 0.7, "case")))
            self.assertIs(met, True)

    def test_ragged_rows_have_the_loss_of_padded_ones(self):
        with program_of_both_sides() as program, mock.patch.object(compare, "RAGGED_LOSS", program):
            for shape, expected, line in [
                    ("small", True, "  in bf16 loss off padded rows' by 2.0e-07 of itself, bar 1e-05: met\n  4 bars compared, 4 met\n"),
                    ("bad", False, "  in fp32 loss off padded rows' by 2.0e-03 of itself, bar 1e-05: NOT met\n")]:
                met, said, lines = compared(program, dict(WORK, peers=[("plain", 2.0)], loss=shape))
                self.assertIs(met, expected, said)
                self.assertIn(line, said)
                self.assertEqual(lines[-1]["argv"][-2:], ["--batch", "8"])
            met, said, _ = compared(program, dict(WORK, peers=[], loss="without packages"))
            self.assertIsNone(met)
            self.assertIn("  no loss of padded rows: skipped: No module named 'transformers'\n", said)
            with mock.patch.object(compare, "RAGGED_LOSS", program.with_name("none")):
                met, said, _ = compared(program, dict(WORK, peers=[("plain", 2.0)], loss="small"))
            self.assertIsNone(met)
            self.assertIn("1 bars compared, 1 met, 3 could not be", said)

    def test_the_best_exact_peer_is_named_and_an_approximate_one_is_marked(self):
        work = dict(WORK, peers=[("plain --micro 2", None), ("torchao", None), ("byhand", None)], best=1.5)
        with program_of_both_sides() as program:
            met, said, _ = compared(program, work)
            self.assertIs(met, True, said)
            self.assertIn("  1.50 x the best exact peer, byhand, bar 1.5: met\n", said)
            self.assertIn(f"    {sys.executable} {program} --engine byhand --model tiny --batch 8", said)
            self.assertRegex(said, r"  ~ torchao \(16-bit weights and states, not clipped\) +180.0 ")
            met, said, _ = compared(program, dict(work, best=1.51))
            self.assertIs(met, False)
            # One that runs out of memory is no better; of one that is not installed nobody knows.
            more = [*work["peers"], ("transformers", None)]
            met, said, _ = compared(program, dict(work, peers=more))
            self.assertIs(met, True, said)
            met, said, _ = compared(program, work, dict(NONE_MISSING, plain=["no_such_package_here"]))
            self.assertIsNone(met, said)
            self.assertIn("byhand (1 of 2 ran)\n", said)
            self.assertIn("  0 bars compared, 0 met, 1 could not be\n", said)
            met, said, _ = compared(program, dict(work, best=1.51), dict(NONE_MISSING, plain=["no_such_package_here"]))
            self.assertIs(met, False, said)  # another one could only be faster

    def test_a_variant_is_set_beside_the_best_approximate_peer(self):
        work = dict(WORK, peers=[("plain", None), ("torchao", None)], variants=[("--optim adamw_8bit", {})])
        with program_of_both_sides() as program:
            _, said, _ = compared(program, work)
        self.assertIn("  Ferry --optim adamw_8bit: 1.17 x ~ torchao (16-bit weights and states, not clipped)\n", said)

    def test_what_is_approximate_goes_by_the_words(self):
        for peer, expected in [("plain --compile", ""), ("torchao", "16-bit weights and states, not clipped"),
                               ("torchao --exact", ""), ("plain --optim flashadamw", "8-bit states, masters of 24 bits"),
                               ("deepspeed2 --preset zenflow-bert", "most gradients up to 4 steps late"),
                               ("deepspeed2 --preset bert", "")]:
            self.assertEqual(works.approximation_of(peer), expected, peer)

    def test_more_of_the_menu_runs_when_asked_for(self):
        work = dict(WORK, peers=[("plain", None)], more=[("byhand", None)])
        with program_of_both_sides() as program:
            for menu, expected in [("best", ["plain"]), ("all", ["plain", "byhand"])]:
                lines = compared(program, work, menu=menu)[2]
                engines = [line["argv"][line["argv"].index("--engine") + 1] for line in lines if "--engine" in line["argv"]]
                self.assertEqual(engines, expected)

    def test_each_version_of_a_package_has_a_row(self):
        work = dict(WORK, peers=[("deepspeed2 --preset bert", None), ("plain", None)], best=2.0)
        with program_of_both_sides() as program:
            _, said, lines = compared(program, work, dict(NONE_MISSING, deepspeed2=["no_such_package_here", "deepspeed"]))
            self.assertIn("not installed: no_such_package_here, deepspeed\n", said)
            met, said, lines = compared(program, work, dict(NONE_MISSING, deepspeed2=["deepspeed"]), deepspeed=["/x/old", "/x/new"])
        self.assertIs(met, True, said)
        self.assertRegex(said, r"deepspeed2 --preset bert \[0.18\] +90.0 ")
        self.assertRegex(said, r"deepspeed2 --preset bert \[0.19\] +95.0 ")
        self.assertEqual([line["argv"][-1] for line in lines if "deepspeed2" in line["argv"]], ["/x/old", "/x/new"])

    def test_packages_that_an_option_needs_are_looked_for(self):
        with mock.patch.multiple(compare, NEEDS=NONE_MISSING, OPTION_NEEDS={"--liger": "no_such_package_here"}):
            self.assertEqual(compare.missing_of("byhand --liger"), ["no_such_package_here"])
            self.assertEqual(compare.missing_of("byhand --compile"), [])

    def test_rows_that_were_troubled_say_so(self):
        result = dict(step_ms=1.0, samples_per_s=1.0, tokens_per_s=2.0, gpu_bytes_max=0)
        self.assertNotIn(";", compare.row("a", dict(result, n_retries=0, n_recompiled=0)))
        self.assertTrue(compare.row("a", dict(result, n_retries=2, n_recompiled=1)).endswith(
            "; 2 times memory was short while timed; 1 times compiled while timed"))

    def test_a_table_with_all_commands_is_left_for_the_results_page(self):
        work = dict(WORK, peers=[("plain --micro 2", None), ("torchao", None), ("transformers", None)], best=1.5)
        with program_of_both_sides() as program:
            program_run({"one": work}, program, "--out", program.parent / "out", peer=program)
            text = (program.parent / "out/results.md").read_text()
        self.assertTrue(text.startswith("### a small work\n"), text)
        self.assertIn("`--work one`; a `~` marks", text)
        self.assertIn("| program | samples/s | Ferry's over it | GPU GiB | host GiB | kJ |\n|---|---|---|---|---|---|\n"
                      "| Ferry | 210.0 |  | 2.0 | 4.0 |  |\n| plain --micro 2 | 100.0 | **2.10** | 2.0 | 4.0 |  |\n"
                      "| ~ torchao (16-bit weights and states, not clipped) | 180.0 | 1.17 | 2.0 | 4.0 |  |\n"
                      "| transformers | out of memory | | | | |\n", text)
        self.assertEqual(text.count(f"    {program} --shape tiny"), 2)
        self.assertEqual(text.count("--engine"), 3)

    def test_a_variant_has_bars_of_its_own(self):
        with program_of_both_sides() as program:
            met, said, lines = compared(program, dict(WORK, peers=[("plain", 1.5)],
                                                      variants=[("--optim adamw_8bit", {"plain": 2.3})]))
        self.assertIs(met, False)
        self.assertIn("  2.10 x plain, bar 1.5: met\n", said)
        self.assertIn("  Ferry --optim adamw_8bit: 2.10 x plain, bar 2.3: NOT met\n", said)
        self.assertIn("  2 bars compared, 1 met\n", said)
        self.assertEqual(["adamw_8bit" in line["argv"] for line in lines], [False, False, True, False])

    def test_a_bar_of_one_machine_counts_when_asked_for(self):
        with program_of_both_sides() as program:
            work = {key: value for key, value in WORK.items() if key != "peers"}
            for bar, absolute, expected, line in [
                    (1001, False, None, "  1000 tokens/s; on a box bar 1001, held with --absolute\n"),
                    (1001, True, False, "  1000 tokens/s; on a box, bar 1001: NOT met\n"),
                    (1000, True, True, "  1000 tokens/s; on a box, bar 1000: met\n")]:
                met, said, lines = compared(program, dict(work, absolute=(bar, "a box"), published="24 in a README"),
                                            absolute=absolute)
                self.assertIs(met, expected, said)
                self.assertIn(line, said)
                self.assertIn("  published: 24 in a README\n", said)
                self.assertEqual(len(lines), 1)  # alone, Ferry runs once

    def test_ferry_beside_itself_with_more_memory(self):
        with program_of_both_sides() as program:
            work = dict(WORK, peers=[])
            met, said, lines = compared(program, dict(work, own=("--cap 12GiB", 0.7, "case")))
            self.assertIs(met, True)
            self.assertIn("  0.70 x Ferry --cap 12GiB, bar 0.7: met\n", said)
            self.assertEqual(len(lines), 2)  # the formula would not matter
            # 8 samples in 40 ms are 200 a second.
            met, said, lines = compared(program, dict(work, own=("--cap 12GiB", 0.85, "case")))
            self.assertIs(met, True)
            self.assertIn("  0.70 x Ferry --cap 12GiB, 1.05 x the formula's 200.0, bar 0.85: met\n", said)
            words = lines[2]["argv"]
            self.assertEqual(words[words.index("--gpu-memory") + 1], str(11 * 2**30 + 2**29))
            met, said, _ = compared(program, dict(work, own=("--cap 12GiB", 1.1, "case")))
            self.assertIs(met, False)
            self.assertIn("the formula's 200.0, bar 1.1: NOT met\n", said)
            met, said, _ = compared(program, dict(work, own=("--cap 12GiB", 0.85, "no case")))
            self.assertIsNone(met, said)
            self.assertIn("  0.70 x Ferry --cap 12GiB; no formula: no ferry\n  1 bars compared, 1 met, 1 could", said)

    def test_a_line_that_is_no_json_is_passed_over(self):
        with program_of_both_sides() as program:
            met, said, _ = compared(program, dict(WORK, peers=[("fsdp2", 2.0), ("plain", 2.0)]))
        self.assertIsNone(met)
        self.assertRegex(said, "fsdp2 +exit 0\n")
        self.assertIn("1 bars compared, 1 met, 1 could not be", said)

    def test_both_sides_have_the_same_ragged_rows(self):
        with program_of_both_sides() as program:
            _, said, lines = compared(program, dict(WORK, ragged=True, peers=[("plain", None)]))
            files = [line["argv"][line["argv"].index("--lengths") + 1] for line in lines]
            self.assertEqual(len(files), 3)
            self.assertEqual(len(set(files)), 1)
            steps = [list(map(int, line.split())) for line in Path(files[0]).read_text().splitlines()]
        self.assertIn("2.10 x plain\n", said)
        for line in lines:
            warmup, timed = (int(line["argv"][line["argv"].index(word) + 1]) for word in ("--warmup", "--steps"))
            self.assertEqual((warmup, timed), (2 * len(steps), len(steps)))
        self.assertTrue(all(len(step) == 8 for step in steps))
        of_32 = [length for step in works.ragged_lengths(32) for length in step]
        self.assertEqual((min(of_32), max(of_32)), (64, 503))
        self.assertAlmostEqual(sum(of_32) / len(of_32), 174, delta=6)

    def test_who_is_not_done_in_time_is_left_out(self):
        with program_of_both_sides() as program:
            met, said, _ = compared(program, dict(WORK, peers=[("deepspeed3", 2.0)]), limit=1)
        self.assertIsNone(met)
        self.assertRegex(said, "deepspeed3 +not done after 1 s")

    def test_the_whole_program_says_how_many_works_were_met(self):
        works = {"good": dict(WORK, peers=[("plain", 2.0)]), "bad": dict(WORK, peers=[("plain", 3.0)]),
                 "mute": dict(WORK, peers=[("plain", None)]), "alone": dict(WORK, peers=[])}
        with program_of_both_sides() as program:
            folder = program.parent / "a" / "b"
            for names, code, last in [(["good", "mute"], 0, "1 works met, 0 missed, 1 not decided"),
                                      (["good", "bad"], 1, "1 works met, 1 missed, 0 not decided"),
                                      ([], 1, "1 works met, 1 missed, 1 not decided")]:
                words = [word for name in names for word in ("--work", name)]
                ended, said, _ = program_run(works, program, "--out", folder, *words, peer=program)
                self.assertEqual(ended, code)
                self.assertEqual(said.splitlines()[-1], last)
                self.assertTrue((folder / "compare.jsonl").exists())

    def test_formulas_are_worked_out_as_often_as_wanted(self):
        work = dict(WORK, peers=[], formula=("gpt2-13g-8", 1e-3))
        with build_of_both_sides() as step_bench:  # the formula's own program, which runs ferry and step_bench
            out = step_bench.parent / "out"
            for _ in range(2):
                code, said, _ = program_run({"one": work, "other": work}, step_bench, "--out", out)
                self.assertEqual(said.splitlines()[-1], "2 works met, 0 missed, 0 not decided", said)
                self.assertEqual(code, 0)
            lines = [json.loads(line) for line in (out / "compare.jsonl").read_text().splitlines()]
            self.assertEqual([line["work"] for line in lines if "formula_ms" in line], ["one", "other"])
            for name in ("one", "other"):
                self.assertTrue((out / "formula" / name / "gpt2-13g-8.trace.json").exists())
                # Steps of the same plan: the planner knows what Ferry's own steps were planned with.
                self.assertIn(f"--profile {out}/machine.json", (out / "formula" / name / "gpt2-13g-8.log").read_text())

    def test_a_formula_of_another_plan_decides_nothing(self):
        with build_of_both_sides() as step_bench, mock.patch.object(compare, "bytes_of", lambda words: 0):
            work = dict(WORK, peers=[], own=("--cap 12GiB", 0.85, "bert-4gib"))
            for why, expected in [("as asked for", "x the formula's"), ("otherwise", "the formula is of another plan")]:
                step_bench.write_text(step_bench.read_text().replace('"as asked for"', f'"as asked for" if "--trace" in sys.argv else "{why}"'))
                _, said, _ = program_run({"one": work}, step_bench, "--out", step_bench.parent)
                self.assertIn(expected, said)

    def test_the_machine_is_measured_where_no_profile_is_given(self):
        works = {"one": dict(WORK, peers=[])}
        with build_of_both_sides() as step_bench:
            build, out = step_bench.parents[2], step_bench.parents[3]

            def profiles_of(*words):
                said = program_run(works, step_bench, *words, "--out", out)[1]
                argv = json.loads((out / "compare.jsonl").read_text())["argv"]
                return said, [after for word, after in zip(argv, argv[1:]) if word == "--profile"]
            for _ in range(2):
                said, profiles = profiles_of()
                self.assertTrue(said.startswith(f"No PROFILE is given: measuring this machine into {out}/machine.json\n"), said)
                self.assertEqual(profiles, [f"{out}/machine.json"])
                self.assertEqual(json.loads((out / "machine.json").read_text())["trainer"], f"{build}/src/train/ferry-trainer")
            given = out / "given.json"
            given.write_text("{}")
            said, profiles = profiles_of(given)
            self.assertNotIn("measuring", said)
            self.assertEqual(profiles, [str(given)])
            with mock.patch.dict(os.environ, NO_GPU="1"):
                said, profiles = profiles_of()
            self.assertIn("No machine profile, the planner knows no times: bench: no usable GPU\n", said)
            self.assertEqual(profiles, [])
            (build / "src/cli/ferry").unlink()
            said, profiles = profiles_of()
            self.assertIn(f"No machine profile, the planner knows no times: there is no {build}/src/cli/ferry\n", said)
            self.assertEqual(profiles, [])

    def test_words_that_cannot_be_meant_so_are_refused(self):
        works = {"one": dict(WORK, peers=[("plain --micro 2", 1.0)]), "alone": dict(WORK, peers=[])}
        with program_of_both_sides() as program:
            folder, text = program.parent, program.with_name("README.md")
            text.write_text("no program")
            for words, expected in [
                    ([folder / "none"], "scripts/build --option tests=true all benchmarks makes build/tests/perf/step_bench"),
                    ([text], "README.md is no program that can be run"),
                    ([folder], "is no program that can be run"),
                    ([program, folder / "none.json"], f"`ferry bench all --output {folder}/none.json` makes it"),
                    ([program, folder], f"there is no file {folder}"),
                    ([program, "--out", text], f"--out {text} can be no directory (File exists)"),
                    ([program, "--out", text / "below"], "can be no directory (Not a directory)"),
                    ([program, "--peer", "plain", "--peer", "torchoa"], "--peer 'torchoa' is in no peer of these works; they have plain --micro 2\n"),
                    ([program, "--deepspeed", folder], f"there is no {folder}/deepspeed; pip install --no-deps --target"),
                    ([program, "--peer", "plain", "--work", "alone"], "they have none: leave --peer out\n"),
                    *[([program, "--limit", limit], "--limit is a number of seconds above 0, 1000000 at most")
                      for limit in ("nan", "inf", "-5", "0", "1e300")],
                    ([program, "--steps", "9"], "--steps is 10 at least")]:
                code, said, wrong = program_run(works, "--out", folder, *words)
                self.assertEqual((code, said), (2, ""), words)
                self.assertIn(expected, wrong)
                self.assertEqual(wrong.count(": error: "), 1)

    def test_the_longest_limit_can_be_waited_for(self):
        self.assertEqual(compare.output_of([sys.executable, "-c", "print(1)"], compare.LIMIT_MOST_S)[:2], ("1\n", 0))

    def test_without_a_gpu_nothing_is_run(self):
        with program_of_both_sides() as program:
            out = program.parent / "out"
            code, said, wrong = program_run({"one": dict(WORK, peers=[])}, program, "--out", out, trouble="no driver")
            self.assertEqual((code, said), (2, ""))
            self.assertIn("none can be used: no driver; see that nvidia-smi lists one", wrong)
            self.assertFalse(out.exists())

    def test_the_driver_says_whether_there_is_a_gpu(self):
        for init, n_gpus, expected in [(0, 1, None), (0, 2, None), (0, 0, "the NVIDIA driver has none"),
                                       (100, 0, "the NVIDIA driver says error 100")]:
            with mock.patch("ctypes.CDLL", lambda name: Driver(init, n_gpus)):
                self.assertEqual(compare.gpu_trouble(), expected)
        with mock.patch("ctypes.CDLL", side_effect=OSError):
            self.assertEqual(compare.gpu_trouble(), "there is no NVIDIA driver, libcuda.so.1")

    def test_a_program_of_the_folder_one_is_in_needs_no_slash(self):
        with program_of_both_sides() as program, contextlib.chdir(program.parent):
            code, said, _ = program_run({"one": dict(WORK, peers=[("plain", 2.0)])}, program.name, peer=program)
        self.assertEqual(code, 0, said)

    def test_peers_need_torch(self):
        self.assertTrue(all("torch" in needs for needs in compare.NEEDS.values()))

    def test_works_of_ferry_alone_are_not_run_unasked(self):
        self.assertEqual(set(compare.WORKS) - set(compare.DEFAULT),
                         {"llama-best-batch", "gpt2-13g-8", "gpt2-13g-16", "gpt2-13g-24", "gpt2-13g-32"})
        for name, work in compare.WORKS.items():
            peers = [peer for peer, _ in works.peers_of(work, "all")]
            self.assertLessEqual({peer.split()[0] for peer in peers}, set(compare.NEEDS))
            self.assertEqual(len(peers), len(set(peers)), name)
            self.assertTrue("best" not in work or any(not works.approximation_of(peer) for peer, _ in work["peers"]), name)
            for _, bars in work.get("variants", []):
                self.assertLessEqual(set(bars), {peer for peer, _ in work["peers"]}, name)

    def test_who_is_told_to_stop_ends_what_was_started(self):
        with program_of_both_sides() as program:
            code = ("import compare, sys; from pathlib import Path; compare.PEER = Path(sys.argv[1]);"
                    "compare.gpu_trouble = lambda: None; compare.NEEDS = {'deepspeed3': []}; compare.main()")
            for signal_number, expected in [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)]:
                process = subprocess.Popen([sys.executable, "-c", code, program, "--work", "llama",
                                            "--menu", "all", "--peer", "deepspeed3", "--out", program.parent],
                                           cwd=Path(compare.__file__).parent, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                pid = program.with_name("pid")
                while not (pid.exists() and pid.read_text()):
                    self.assertIsNone(process.poll())
                    time.sleep(0.02)
                process.send_signal(signal_number)
                self.assertEqual(process.wait(timeout=20), expected)
                with self.assertRaises(ProcessLookupError):
                    os.kill(int(pid.read_text()), 0)
                pid.unlink()


if __name__ == "__main__":
    unittest.main()

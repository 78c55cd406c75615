#!/usr/bin/env python3
"""Tries out each measuring program with small work, without a GPU: programs that nothing runs rot.

    tests/perf/smoke_test.py PROFILE STEP_BENCH OPS_BENCH SIMD_BENCH STORE_BENCH TOKENIZER_BENCH LAYER_BENCH

Figures are not judged. A program must end well and print what those who call it read.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = "step_bench ops_bench simd_bench store_bench tokenizer_bench layer_bench".split()
programs, profile = {}, ""


def output_of(*words, code=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def lines_of(*words):
    return [json.loads(line) for line in output_of(*words).splitlines() if line.startswith("{")]


class StepBench(unittest.TestCase):
    SMALL = ["--shape", "minilm", "--layers", 2, "--batch", 4, "--length", 16, "--dtype", "fp32", "--warmup", 1,
             "--steps", 3]

    def steps(self, *words):
        promised, was = lines_of(programs["step_bench"], *self.SMALL, *words)
        self.assertGreater(was["samples_per_s"], 0)
        self.assertEqual(was["skipped_steps"], 0)
        return promised["promised"], was

    def test_every_device_takes_the_same_steps(self):
        losses = set()
        for words in [("--device", "cpu"), ("--device", "simulated"),
                      ("--device", "simulated", "--placement", "host", "--slots", 2),
                      ("--device", "simulated", "--states-on-gpu", 2)]:
            promised, was = self.steps(*words, "--profile", profile) if "cpu" not in words else self.steps(*words)
            losses.add(was["loss"])
        self.assertEqual(len(losses), 1, losses)

    def test_a_plan_that_is_refused_runs_where_it_is_forced(self):
        for words in [(), ("--profile", profile)]:
            promised, was = self.steps("--device", "simulated", "--gpu-memory", "1MiB", "--force", "on", *words)
            self.assertGreater(promised["gpu_bytes"], 2 ** 20)
            self.assertLessEqual(was["driver_bytes_max"], promised["gpu_bytes"])
        output_of(programs["step_bench"], *self.SMALL, "--device", "simulated", "--gpu-memory", "1MiB", code=3)

    def test_traces_and_states_on_a_drive(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            _, was = self.steps("--device", "simulated", "--placement", "nvme", "--nvme-path", folder, "--trace", trace)
            self.assertTrue(json.loads(trace.read_text())["traceEvents"])
            self.assertGreater(was["nvme_written_bytes"], 0)

    def test_plan_grid(self):
        with tempfile.TemporaryDirectory() as folder:
            said = output_of(sys.executable, HERE / "gpu/plan_grid.py", programs["step_bench"], profile, "--smoke",
                             "--out", folder)
            self.assertIn("2 of 2 within all bars", said)
            self.assertIn("1 of 1 refused where they really do not fit", said)
            self.assertIn("host memory within 3 %: ", said)

    def test_plan_sweep(self):
        machine = json.loads(Path(profile).read_text())
        machine["gpu"]["adamw_params_per_s"] = 1e6  # so slow that micro-batches make no difference
        for rate in machine["host"]["adamw"]:
            rate.update(alone=1e5, beside_copies=1e5)
        with tempfile.TemporaryDirectory() as folder:
            slow = Path(folder) / "slow.json"
            slow.write_text(json.dumps(machine))
            said = output_of(sys.executable, HERE / "gpu/plan_sweep.py", programs["step_bench"], slow, "--smoke",
                             "--shape", "llama-tiny", "--batch", 2, "--length", 16, "--dtype", "fp32", "--plans", 1,
                             "--out", folder)
            self.assertEqual(said.count("forced: "), 1)
            self.assertIn("best of 1 forced plans", said)
            first = json.loads((Path(folder) / "plan_sweep.jsonl").read_text().splitlines()[0])
        promised, was = first["lines"]
        tried = promised["promised"]["tried"]
        self.assertGreaterEqual(len(tried), 2)
        taken = min(tried, key=lambda rival: rival["step_ms"])
        self.assertEqual(taken["why"], was["why"])
        self.assertAlmostEqual(promised["promised"]["step_ms"], taken["step_ms"])


    def test_pinned_limit(self):
        said = output_of(sys.executable, HERE / "gpu/pinned_limit.py", programs["step_bench"], profile, "--smoke")
        self.assertIn("the same bits", said)
        self.assertIn("all held", said)


class Others(unittest.TestCase):
    def test_ops_bench(self):
        found = lines_of(programs["ops_bench"], "--device", "cpu", "--dtype", "fp32", "--tokens", 32, "--length", 16,
                         "--params", 8192, "--steps", 1, "--only", "norm", "--json")
        self.assertTrue(found)

    def test_simd_bench(self):
        said = output_of(programs["simd_bench"], "--threads", 1, "--params", 65536, "--rounds", 1, "--json")
        self.assertTrue(json.loads(said))

    def test_store_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(output_of(programs["store_bench"], Path(folder) / "file", "0.0625"))

    def test_tokenizer_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
            (Path(folder) / "config.json").write_text('{"model_type": "bert"}')
            text = Path(folder) / "text"
            text.write_text("a b\nb a\n")
            found = lines_of(programs["tokenizer_bench"], folder, 2, 8, 1, text)
            self.assertEqual(len(found), 1)

    def test_layer_bench(self):
        self.assertTrue(output_of(programs["layer_bench"], 2, 16, 32, 2, 64, 2, 100, 1))


if __name__ == "__main__":
    profile, *paths = sys.argv[1:]
    programs = dict(zip(PROGRAMS, paths, strict=True))
    unittest.main(argv=sys.argv[:1])

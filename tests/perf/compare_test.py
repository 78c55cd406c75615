#!/usr/bin/env python3
"""compare.py without a GPU: energy between samples, and what the table says of peers that fail."""
import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

import compare

WORK = {"what": "a small work", "model": "--batch 8 --length 16", "shape": "tiny", "cap": "11GiB",
        "peers": [("plain --micro 2", 1.5), ("transformers", 2.0), ("torchao", 9.0)]}
# Stands in for both sides: answers by the engine that it is asked for.
PROGRAM = """
import json, sys, time
rates = {"plain": 100.0, None: 210.0}
engine = sys.argv[sys.argv.index("--engine") + 1] if "--engine" in sys.argv else None
print(json.dumps({"promised": {}}))
if engine == "deepspeed3":
    time.sleep(60)
if engine == "transformers":
    print(json.dumps({"engine": engine, "out_of_memory": True}))
else:
    print(json.dumps({"step_ms": 1.0, "samples_per_s": rates[engine], "tokens_per_s": 1.0,
                      "n_tokens": 10, "gpu_bytes_max": 2**31, "argv": sys.argv[1:]}))
"""


@contextlib.contextmanager
def program_of_both_sides():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text("#!" + sys.executable + PROGRAM)
        program.chmod(0o755)
        yield program


def arguments(program, **others):
    return argparse.Namespace(**{"step_bench": program, "profile": None, "peer": None, "steps": 12, "limit": 30,
                                 "out": program.parent, **others})


class Compare(unittest.TestCase):
    def test_energy_is_linear_between_samples(self):
        samples = [(0.0, 100.0), (1.0, 300.0), (3.0, 500.0)]
        self.assertAlmostEqual(compare.joules_between(samples, 0.5, 2.0), 400.0 - 200.0)
        self.assertAlmostEqual(compare.joules_between(samples, 0.0, 3.0), 400.0)
        self.assertIsNone(compare.joules_between(samples, 0.5, 3.5))
        self.assertIsNone(compare.joules_between([], 0.5, 3.5))

    def test_the_table_says_what_was_reached(self):
        with program_of_both_sides() as program:
            compare.PEER, compare.NEEDS = program, {"plain": [], "transformers": [],
                                                    "torchao": ["no_such_package_here"]}
            args = arguments(program)
            out, log = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out):
                met = compare.compare(args, "small", WORK, compare.Energy(), log)
        said = out.getvalue()
        self.assertFalse(met, said)  # of torchao nothing is known
        self.assertIn("2.10 x plain --micro 2, bar 1.5: met", said)
        self.assertRegex(said, r"transformers +out of memory")
        self.assertIn("not installed: no_such_package_here", said)
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        self.assertEqual([line.get("engine") for line in lines], [None, None, "transformers", None])
        for line in (lines[0], lines[1]):  # both have the same memory and the same steps
            words = line["argv"]
            self.assertEqual(words[words.index("--cap") + 1], "11GiB")
            self.assertEqual(words[words.index("--steps") + 1], "12")

    def test_a_variant_has_bars_of_its_own(self):
        with program_of_both_sides() as program:
            compare.PEER, compare.NEEDS = program, {"plain": []}
            work = dict(WORK, peers=[("plain", 1.5)], variants=[("--optim adamw_8bit", {"plain": 2.3})])
            log = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                met = compare.compare(arguments(program), "small", work, compare.Energy(), log)
        self.assertFalse(met)
        self.assertIn("  2.10 x plain, bar 1.5: met\n", out.getvalue())
        self.assertIn("  Ferry --optim adamw_8bit: 2.10 x plain, bar 2.3: NOT met\n", out.getvalue())
        lines = [json.loads(line)["argv"] for line in log.getvalue().splitlines()]
        self.assertEqual(["adamw_8bit" in words for words in lines], [False, False, True, False])

    def test_a_bar_that_is_missed_is_said(self):
        with program_of_both_sides() as program:
            compare.PEER, compare.NEEDS = program, {"plain": []}
            args = arguments(program, profile="p.json")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                met = compare.compare(args, "small", dict(WORK, peers=[("plain", 2.2)]),
                                      compare.Energy(), io.StringIO())
        self.assertFalse(met)
        self.assertIn("bar 2.2: NOT met", out.getvalue())

    def test_both_sides_have_the_same_ragged_rows(self):
        with program_of_both_sides() as program:
            compare.PEER, compare.NEEDS = program, {"plain": []}
            log = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                compare.compare(arguments(program), "ragged",
                                dict(WORK, ragged=True, peers=[("plain", None)]),
                                compare.Energy(), log)
            files = [line["argv"][line["argv"].index("--lengths") + 1]
                     for line in map(json.loads, log.getvalue().splitlines())]
            self.assertEqual(len(files), 3)
            self.assertEqual(len(set(files)), 1)
            steps = [list(map(int, line.split())) for line in Path(files[0]).read_text().splitlines()]
        self.assertIn("2.10 x plain\n", out.getvalue())
        self.assertTrue(all(len(step) == 8 for step in steps))
        of_32 = [length for step in compare.ragged_lengths(32) for length in step]
        self.assertEqual((min(of_32), max(of_32)), (64, 503))
        self.assertAlmostEqual(sum(of_32) / len(of_32), 174, delta=6)

    def test_who_is_not_done_in_time_is_left_out(self):
        with program_of_both_sides() as program:
            compare.PEER, compare.NEEDS = program, {"deepspeed3": []}
            with contextlib.redirect_stdout(io.StringIO()) as out:
                met = compare.compare(arguments(program, limit=1), "slow",
                                      dict(WORK, peers=[("deepspeed3", 2.0)]), compare.Energy(),
                                      io.StringIO())
        self.assertFalse(met)
        self.assertRegex(out.getvalue(), "deepspeed3 +not done after 1 s")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The formula of against_formula.py, on figures small enough to work out by hand."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import check_and_measure
import against_formula
from against_formula import CASES, Case, Runner, compute_times, formula, rate_in_place, recomputed_blocks, reference_of

# 1 M parameters a millisecond alone, 0.5 M beside copies both ways; 2 bytes a parameter: 0.1 ms a M parameters each way alone.
RATES = {"adamw": 1e9, "adamw_beside_copies": 0.5e9, "h2d": 2e10, "d2h": 2e10, "h2d_beside_d2h": 1e10, "d2h_beside_h2d": 1e10}
TIMES = {"forward_ms": 30.0, "backward_ms": 60.0, "last_forward_ms": 0.5, "gpu_update_ms": 0.0}
HOST = [{"name": name, "place": "host", "params": n, "trained": n} for name, n in
        (("embeddings", 20_000_000), ("layer.0", 40_000_000), ("head", 40_000_000))]


def events_of(*of_a_step):
    """(verb, block, ms) of each of the three traced steps."""
    return [{"cat": verb, "tid": against_formula.HOST_QUEUE, "dur": ms * 1e3, "args": {"block": block, "step": step}} for step in (1, 2, 3) for verb, block, ms in of_a_step]


# As ferry does it, it overwrites nothing.
FERRY = """
import json, sys
from pathlib import Path
file = Path(sys.argv[sys.argv.index("--output") + 1])
if file.exists():
    sys.exit(f"'{file}' is there already")
copies = dict.fromkeys(["bytes", "h2d", "d2h", "h2d_beside_d2h", "d2h_beside_h2d"], 1e10)
file.write_text(json.dumps({"gpu": {"copies": [copies]}}))
"""


@contextlib.contextmanager
def build_of_ferry():
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        ferry = build / "src/cli/ferry"
        ferry.parent.mkdir(parents=True)
        ferry.write_text(f"#!{sys.executable}{FERRY}")
        ferry.chmod(0o755)
        yield build


def resident(blocks, n):
    return [dict(block, place="device" if i < n else "host") for i, block in enumerate(blocks)]


class Formula(unittest.TestCase):
    def test_a_drive_is_one_more_resource_beside_the_update(self):
        rates = {"read": 2e9, "write": 3e9, "mixed": 1e9}
        self.assertEqual(against_formula.drive_ms({}, rates), 0)
        # 2 GB each way at once, and 1 GB more is read alone.
        moved = against_formula.drive_ms({"nvme_read_bytes": 3_000_000_000, "nvme_written_bytes": 2_000_000_000}, rates)
        self.assertAlmostEqual(moved, 2000 + 500)
        on_drive = [dict(block, place="nvme") for block in HOST]
        in_memory, paced = formula(Case(), HOST, TIMES, RATES), formula(Case(), on_drive, TIMES, RATES, moved)
        self.assertEqual(paced["cpu_update_ms"], in_memory["cpu_update_ms"])
        self.assertAlmostEqual(paced["formula_ms"], 60 + moved + paced["edges_ms"])

    def test_clipping_hides_the_update_under_the_forward_only(self):
        said = formula(Case(), HOST, TIMES, RATES)
        # Copies to the GPU take 10 ms, in which AdamW does 0.775 of what it does alone: 100 + 10 * 0.225.
        self.assertAlmostEqual(said["cpu_update_ms"], 102.25)
        self.assertAlmostEqual(said["edges_ms"], 20 + 2 + 0.5)
        self.assertAlmostEqual(said["formula_ms"], 60 + 102.25 + 22.5)
        self.assertAlmostEqual(said["formula_adamw_alone_ms"], 60 + 100 + 22.5)

    def test_loss_scaling_waits_as_clipping_does(self):
        said = formula(Case(dtype="fp16", clip=0), HOST, TIMES, RATES)
        self.assertAlmostEqual(said["formula_ms"], formula(Case(), HOST, TIMES, RATES)["formula_ms"])

    def test_without_clipping_the_slowest_resource_counts(self):
        said = formula(Case(clip=0), HOST, TIMES, RATES)
        # 40 ms of copies each way to the GPU, AdamW at half its rate meanwhile.
        self.assertAlmostEqual(said["cpu_update_ms"], 120)
        self.assertAlmostEqual(said["formula_ms"], 120 + 22.5)
        self.assertAlmostEqual(formula(Case(clip=0), HOST, dict(TIMES, forward_ms=80), RATES)["formula_ms"], 140 + 22.5)

    def test_copies_bind_where_the_link_is_slow(self):
        slow = dict(RATES, h2d=1e9, d2h=1e9, h2d_beside_d2h=1e9, d2h_beside_h2d=1e9)
        said = formula(Case(), HOST, TIMES, slow)
        self.assertAlmostEqual(said["formula_ms"], 200 + 200 + said["edges_ms"])

    def test_blocks_on_the_gpu_are_neither_copied_nor_updated_by_the_cpu(self):
        times = dict(TIMES, gpu_update_ms=2.0)
        said = formula(Case(), resident(HOST, 2), times, RATES)
        self.assertAlmostEqual(said["cpu_update_alone_ms"], 40)
        self.assertAlmostEqual(said["edges_ms"], 0.5)  # the first block waits for no copy
        said = formula(Case(), resident(HOST, 3), times, RATES)
        self.assertAlmostEqual(said["formula_ms"], 60 + 30 + 2)

    def test_frozen_parameters_are_copied_to_the_gpu_and_nothing_else(self):
        # 100 M parameters, of which 20 M of the layer and 10 M of the head are trained.
        blocks = [dict(block, trained=n) for block, n in zip(HOST, (0, 20_000_000, 10_000_000))]
        said = formula(Case(), blocks, TIMES, RATES)
        self.assertAlmostEqual(said["cpu_update_ms"], 30 + 10 * 0.225)  # beside the copies of all for 10 ms
        self.assertAlmostEqual(said["edges_ms"], 20 + 4 + 0.5)  # the layer is the first that waits for an update
        self.assertAlmostEqual(said["formula_ms"], 60 + 32.25 + 24.5)
        slow = dict(RATES, h2d=1e9, d2h=1e9, h2d_beside_d2h=1e9, d2h_beside_h2d=1e9)
        said = formula(Case(), blocks, TIMES, slow)
        # Backward: 80 M parameters, since the embeddings have none; gradients of 30 M take less.
        self.assertAlmostEqual(said["formula_ms"], 160 + 200 + said["edges_ms"])
        said = formula(Case(clip=0), blocks, TIMES, slow)
        self.assertAlmostEqual(said["formula_ms"], 360 + said["edges_ms"])

    def test_reduced_states_move_fewer_bytes(self):
        def update_ms(**case):
            return formula(Case(**case), HOST, TIMES, RATES)["cpu_update_alone_ms"]
        self.assertAlmostEqual(update_ms(), 100)  # 28 bytes a parameter
        self.assertAlmostEqual(update_ms(optim="adamw_bf16"), 100 * 20 / 28)
        self.assertAlmostEqual(update_ms(optim="adamw_8bit"), 100 * 16 / 28)
        self.assertAlmostEqual(update_ms(optim="adamw_8bit", master="split"), 100 * 14 / 28)

    def test_a_rate_in_place_is_that_of_the_blocks_in_host_memory(self):
        result = {"blocks": resident(HOST, 1), "update_alone_ms": 40.0}
        self.assertAlmostEqual(rate_in_place(Case(), result), 2e9)  # 80 M parameters
        self.assertAlmostEqual(rate_in_place(Case(optim="adamw_8bit", master="split"), result), 1e9)
        self.assertIsNone(rate_in_place(Case(), dict(result, blocks=resident(HOST, 3))))

    def test_fp32_moves_the_master_and_wide_gradients(self):
        said = formula(Case(dtype="fp32"), HOST, TIMES, RATES)
        self.assertAlmostEqual(said["cpu_update_alone_ms"], 100)
        self.assertAlmostEqual(said["edges_ms"], 20 + 4 + 0.5)

    def test_times_are_of_one_step(self):
        times = compute_times(resident(HOST, 1), [], HOST, events_of(
            ("forward", 0, 1), ("forward", 2, 2), ("backward", 0, 3), ("update", 0, 5), ("fetch_weights", 0, 9)))
        self.assertAlmostEqual(times["forward_ms"], 3)
        self.assertAlmostEqual(times["last_forward_ms"], 2)
        self.assertAlmostEqual(times["backward_ms"], 3)
        self.assertAlmostEqual(times["gpu_update_ms"], 1)  # a fifth of the parameters stays there

    def test_a_layer_of_a_shorter_model_stands_for_all(self):
        ten = [HOST[0], *[HOST[1]] * 10, HOST[2]]
        timed = events_of(("forward", 0, 1), ("forward", 1, 4), ("forward", 2, 6), ("forward", 3, 2),
                          ("recompute", 1, 4), ("recompute", 2, 6), ("backward", 0, 1), ("backward", 1, 9), ("backward", 2, 11),
                          ("backward", 3, 3), ("update", 1, 14))
        short = [HOST[0], HOST[1], HOST[1], HOST[2]]
        times = compute_times(resident(ten, 2), [1, 2, 3], short, timed)
        self.assertAlmostEqual(times["forward_ms"], 1 + 10 * 5 + 2)
        self.assertAlmostEqual(times["backward_ms"], 1 + 10 * 10 + 3 + 3 * 5)  # three layers are recomputed
        self.assertAlmostEqual(times["last_forward_ms"], 2)
        self.assertAlmostEqual(times["gpu_update_ms"], 14 * 60 / 140)

    def test_which_blocks_are_recomputed_is_the_plan_of_the_steps(self):
        self.assertEqual(recomputed_blocks(events_of(("recompute", 4, 1), ("forward", 1, 1), ("recompute", 2, 7))), [2, 4])
        reference = reference_of(CASES["gpt2-13g-8"], [2])
        self.assertEqual((reference.placement, reference.gpu_memory, reference.layers, reference.activations, reference.micro),
                         ("gpu", "0", 3, "recompute", 8))
        self.assertEqual(reference_of(CASES["bert-4gib"], []).activations, "keep")

    def test_no_rate_comes_from_the_steps_that_are_judged(self):
        """Steps that are five times as slow have the same formula."""
        def result_of(ms):
            return {"blocks": HOST, "why": "", "attention_backend": "flash", "simd": "avx2", "n_workers": 1, "step_ms": ms,
                    "samples_per_s": 1, "first_loss": 2, "loss": 1, "host_bytes_max": 1, "driver_bytes_max": 1,
                    "update_alone_ms": ms}
        found = []
        for slower in (1, 5):
            runner = mock.Mock()
            runner.rates_of.return_value = {key: rate for key, rate in RATES.items() if "adamw" not in key}
            runner.adamw_rates.return_value = {key: rate for key, rate in RATES.items() if "adamw" in key}
            resident_events = events_of(("forward", 1, 30), ("backward", 1, 60))
            runner.steps.side_effect = [(result_of(180 * slower), events_of(("forward", 1, 30 * slower), ("update", 1, 9 * slower))),
                                        (result_of(90), resident_events)]
            found.append(against_formula.measure(runner, "case", Case()))
        self.assertAlmostEqual(found[0]["formula_ms"], found[1]["formula_ms"])
        self.assertAlmostEqual(found[0]["ratio"], 5 * found[1]["ratio"])
        self.assertAlmostEqual(found[0]["rates"]["adamw"], RATES["adamw"])

    def test_a_machine_is_measured_anew_where_an_earlier_profile_lies(self):
        with build_of_ferry() as build:
            for _ in range(2):
                self.assertEqual(Runner(build, build).rates_of(Case())["h2d"], 1e10)
            with mock.patch.dict(os.environ), contextlib.redirect_stdout(io.StringIO()) as said:
                for _ in range(2):
                    check_and_measure.measure_profile(build, build, None)
        self.assertEqual(check_and_measure.not_well, [], said.getvalue())

    def test_a_case_beside_planned_steps_asks_for_what_they_ask_for(self):
        with tempfile.TemporaryDirectory() as logs, mock.patch.object(Runner, "run", side_effect=InterruptedError) as run:
            def words_of(case, *planned_with):
                with contextlib.suppress(InterruptedError):
                    Runner(Path("build"), Path(logs), *planned_with).steps(case, "name", 10)
                words = [str(word) for word in run.call_args.args[2]]
                return dict(zip(words[1::2], words[2::2]))
            planned = words_of(CASES["bert-4gib"], Path("given.json"))
            for option, value in [("--micro", "0"), ("--activations", "auto"), ("--placement", "auto"), ("--order", "auto"),
                                  ("--profile", "given.json")]:
                self.assertEqual(planned[option], value)
                self.assertEqual(words_of(CASES["host-clip"])["--micro"], "32")
            self.assertEqual(words_of(CASES["host-clip"])["--profile"], f"{logs}/machine-0-best.json")

    def test_a_case_is_replaced_in_part(self):
        case = replace(CASES["consumer-host"], device="cpu", length=32)
        self.assertEqual((case.cores, case.simd, case.dtype), (6, "avx2", "fp16"))


if __name__ == "__main__":
    unittest.main()

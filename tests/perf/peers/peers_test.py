#!/usr/bin/env python3
"""Peers on a CPU, tiny: words, exactness of the updates, and a few steps of each engine that needs no GPU.

Exits 77 where torch or transformers is not installed.
"""
import contextlib
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

if not all(importlib.util.find_spec(name) for name in ("torch", "transformers")):
    print("skipped: torch or transformers is not installed")
    sys.exit(77)

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import byhand  # noqa: E402
import compare  # noqa: E402
import packed  # noqa: E402
import peer  # noqa: E402
import offloaded  # noqa: E402
import update  # noqa: E402
import works  # noqa: E402
import zero  # noqa: E402
from task import Task  # noqa: E402
from update import LR, LossScale, MasterUpdate  # noqa: E402

TINY = "--batch 4 --length 16 --device cpu --steps 3 --warmup 1"


def refusal_of(words):
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.suppress(SystemExit):
        peer.arguments(words.split())
    return said.getvalue()


def measured(words):
    """Without dropout, so that engines can be set beside each other."""
    build = Task.build

    def without_dropout(task, *args, **words):
        model = build(task, *args, **words)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        return model
    # Steps so long that a wrong gradient shows in the loss.
    with mock.patch.object(Task, "build", without_dropout), mock.patch.object(byhand, "LR", 3e-3), \
            mock.patch.object(update, "LR", 3e-3), mock.patch.object(offloaded, "LR", 3e-3):
        return peer.measure(peer.arguments(f"{words} {TINY}".split()))


class Words(unittest.TestCase):
    def test_every_peer_of_the_table_can_be_meant_so(self):
        import argparse
        args = argparse.Namespace(steps=12, out=Path(tempfile.gettempdir()))
        for name, work in works.WORKS.items():
            with mock.patch.object(compare, "lengths_file", lambda *_: ["--lengths", "file"]):
                for words, _ in works.peers_of(work, "all"):
                    command = compare.peer_command(args, work, words, "--deepspeed dir" if "deepspeed" in words else "")
                    parsed = peer.arguments([str(word) for word in command[2:]])
                    self.assertEqual(parsed.engine, words.split()[0])
                    if parsed.engine.startswith("deepspeed"):
                        zero.config_of(parsed, int(parsed.engine[-1]), "llama" in parsed.model, (0, 19))

    def test_what_an_engine_does_not_know_is_refused(self):
        for words, why in [("--engine plain --model tiny --stream", "--stream is for byhand"),
                           ("--engine byhand --model tiny --preset bert", "--preset is for deepspeed2 and deepspeed3"),
                           ("--engine plain --model tiny-llama --packed", "--packed is for BERT"),
                           ("--engine plain --model tiny --liger", "--liger is for Llama"),
                           ("--engine plain --model tiny --budget 0.8", "are for --compile"),
                           ("--engine plain --model tiny --compile --budget 0.8 --checkpoint", "takes the place of"),
                           ("--engine fsdp2 --model tiny --compile whole", "--compile whole is for"),
                           ("--engine plain --model tiny --graph --lengths f", "--graph is for rows of one length"),
                           ("--engine deepspeed3 --model tiny-llama --preset llama-nvme", "--nvme-path go together"),
                           ("--engine plain --model tiny --micro 3", "--micro divides --batch")]:
            self.assertIn(why, refusal_of(f"{words} --batch 4"), words)
        self.assertEqual(refusal_of("--engine byhand --model tiny --batch 4 --stream"), "")

    def test_states_on_a_drive_go_where_they_are_told_to(self):
        parsed = peer.arguments("--engine deepspeed3 --model tiny-llama --batch 4 --preset llama-nvme --nvme-path /mnt/drive".split())
        config = zero.config_of(parsed, 3, True, (0, 19))
        self.assertEqual(config["zero_optimization"]["offload_optimizer"]["nvme_path"], "/mnt/drive")
        self.assertEqual(config["zero_optimization"]["offload_param"], zero.PINNED)
        self.assertEqual(config["aio"], zero.AIO)

    def test_a_preset_is_of_its_stage(self):
        self.assertEqual(zero.zero_of(3, "bert", False)["leaf_module"]["classes"], [zero.LAYERS[False]])
        self.assertEqual(zero.zero_of(3, "llama", True)["leaf_module"]["classes"], [zero.LAYERS[True]])
        self.assertNotIn("leaf", zero.zero_of(3, "bert", False))
        self.assertEqual(zero.zero_of(3, "bert-twin", False)["offload_optimizer"]["ratio"], 0.5)
        self.assertEqual(zero.PINNED, {"device": "cpu", "pin_memory": True})
        with self.assertRaises(KeyError):
            zero.zero_of(2, "bert-twin", False)


def parameters(dtype):
    torch.manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape).to(dtype)) for shape in [(40, 8), (8,), (16, 16), (5,)]]


def reference_of(params, steps):
    """torch's clipping and AdamW on fp32 copies."""
    masters = [p.detach().float().clone().requires_grad_() for p in params]
    optimizer = torch.optim.AdamW(masters, lr=LR)
    for gradients in steps:
        for master, gradient in zip(masters, gradients):
            master.grad = gradient.float()
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
    return masters


def gradients_of(params, n_steps, scale=1.0):
    torch.manual_seed(2)
    return [[(torch.randn(p.shape) * scale).to(p.dtype) for p in params] for _ in range(n_steps)]


class Updates(unittest.TestCase):
    def assert_like(self, some, others):
        for one, other in zip(some, others):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)

    def test_masters_are_those_of_clipping_and_adamw(self):
        for scale in (1.0, 1e-3):  # clipped, and not
            params = parameters(torch.bfloat16)
            steps = gradients_of(params, 3, scale)
            expected = reference_of(params, steps)
            ours = MasterUpdate(params, LossScale(False, "cpu"))
            for gradients in steps:
                for param, gradient in zip(params, gradients):
                    param.grad = gradient
                ours.step()
            masters = [master for _, chunk, _ in ours.chunks for master in chunk]
            self.assert_like(masters, expected)
            self.assert_like([p.detach() for p in params], [m.detach().to(torch.bfloat16) for m in expected])

    def test_a_loss_scale_is_divided_out_and_an_overflow_changes_nothing(self):
        params = parameters(torch.float16)
        steps = gradients_of(params, 2, 1e-2)
        expected = reference_of(params, steps)
        scale = LossScale(True, "cpu")
        scale.scale.fill_(1024.0)
        ours = MasterUpdate(params, scale)
        for gradients in [steps[0], None, steps[1]]:
            for i, param in enumerate(params):
                param.grad = torch.full_like(param, float("inf")) if gradients is None else gradients[i] * scale.scale
            ours.step()
        self.assertEqual(scale.scale.item(), 512.0)
        for master, other in zip([m for _, chunk, _ in ours.chunks for m in chunk], expected):
            torch.testing.assert_close(master, other, rtol=1e-5, atol=1e-6)

    def test_the_offload_by_hand_is_exact(self):
        params = parameters(torch.float32)
        expected = [p.detach().clone().requires_grad_() for p in params]
        optimizer = torch.optim.AdamW(expected, lr=LR)
        blocks = [byhand.Block(params[:2], pin=False), byhand.Block(params[2:], pin=False)]
        updater = byhand.Updater("cpu", blocks, 2)
        for step in range(3):
            torch.manual_seed(step)
            factors = [torch.randn(p.shape) for p in params]
            for tensors, is_ours in ((params, True), (expected, False)):
                for micro in range(2):  # gradients of both are one sum
                    updater.is_last = micro == 1
                    if is_ours:
                        for block in blocks:
                            updater.wait_for(block)
                    sum((p * f * (micro + 1)).sum() for p, f in zip(tensors, factors)).backward()
            updater.begin()
            self.assertTrue(all(p.grad is None for p in params))
            torch.nn.utils.clip_grad_norm_(expected, 1.0)
            optimizer.step()
            optimizer.zero_grad()
        updater.thread.join()
        self.assert_like([p.detach() for p in params], [p.detach() for p in expected])

    def test_a_failure_beside_the_forward_is_told(self):
        params = parameters(torch.float32)
        block = byhand.Block(params, pin=False)
        updater = byhand.Updater("cpu", [block], 1)
        block.update = mock.Mock(side_effect=ZeroDivisionError)
        updater.is_last = True
        sum(p.sum() for p in params).backward()
        updater.begin()
        with self.assertRaises(ZeroDivisionError):
            updater.wait_for(block)


class Rows(unittest.TestCase):
    def test_rows_end_to_end_are_filled_up_to_a_multiple(self):
        for lengths, round_to, n_tokens, n_rows in [([3, 5], None, 8, 2), ([3, 5], 16, 16, 3), ([3, 5], 8, 8, 3),
                                                    ([512, 1], 1024, 1024, 4)]:
            batch = packed.batch(lengths, round_to, torch.Generator())
            self.assertEqual(batch["input_ids"].shape, (1, n_tokens))
            self.assertEqual(batch["position_ids"].shape, (1, n_tokens))
            starts = batch["cu_seq_lens_q"].tolist()
            self.assertEqual((len(starts) - 1, starts[-1]), (n_rows, n_tokens))
            self.assertLess(int(batch["position_ids"].max()), 512)
            self.assertEqual(batch["labels"].shape, (len(lengths),))

    def test_packed_rows_have_the_loss_of_padded_ones(self):
        lengths = [5, 9, 16, 12]
        words = "--engine plain --model tiny --batch 4 --length 16 --device cpu"
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(" ".join(map(str, lengths)) + "\n")
            file.flush()
            losses = []
            for more in ("", "--packed", "--packed --round-to 32"):
                torch.manual_seed(0)
                task = Task(peer.arguments(f"{words} --lengths {file.name} {more}".split()))
                model = task.build().eval()
                batch = task.steps[0][0]
                rows = torch.arange(4 * 16).view(4, 16) + 5
                if more:
                    flat = torch.cat([row[:n] for row, n in zip(rows, lengths)])
                    batch["input_ids"][0, :len(flat)] = flat
                else:
                    batch["input_ids"] = rows
                batch["labels"] = torch.tensor([0, 1, 1, 0])
                losses.append(float(model(**batch).loss.detach()))
        self.assertAlmostEqual(losses[0], losses[1], places=6)
        self.assertAlmostEqual(losses[0], losses[2], places=6)

    def test_sorted_rows_are_the_same_rows(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("16 3 15 4\n")
            file.flush()
            args = peer.arguments(f"--engine plain --model tiny --lengths {file.name} --batch 4 --micro 2 --sort "
                                  "--length 16 --round-to 8 --device cpu".split())
            shapes = [tuple(batch["input_ids"].shape) for batch in Task(args).steps[0]]
        self.assertEqual(shapes, [(2, 8), (2, 16)])


class Engines(unittest.TestCase):
    def test_exact_engines_have_the_same_losses(self):
        for model, micro, others in [("tiny", "--micro 2", ["byhand", "byhand --stream", "fsdp2 --tuned"]),
                                     ("tiny-llama", "", ["byhand --stream", "byhand --checkpoint"])]:
            expected = measured(f"--engine plain --model {model} {micro}")
            learned = expected["first_loss"] - expected["loss"]
            self.assertGreater(learned, 0.02)
            for words in others:
                found = measured(f"--engine {words} --model {model} {micro}")
                self.assertAlmostEqual(found["first_loss"], expected["first_loss"], delta=0.1 * learned, msg=words)
                self.assertAlmostEqual(found["loss"], expected["loss"], delta=0.1 * learned, msg=words)
                self.assertEqual(found["params"], expected["params"], words)

    def test_a_peer_that_breaks_is_a_row(self):
        with mock.patch.object(sys, "argv", f"peer --engine byhand --model tiny --dtype fp16 {TINY}".split()), \
                mock.patch("os._exit"), contextlib.redirect_stdout(io.StringIO()) as out:
            peer.main()
        self.assertIn("byhand scales no loss", json.loads(out.getvalue())["error"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()

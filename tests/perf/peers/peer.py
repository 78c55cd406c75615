#!/usr/bin/env python3
"""Steps of full fine-tuning by one of Ferry's peers, as one JSON object on standard output.

    tests/perf/peers/peer.py --engine NAME --model NAME --batch 32 --length 512 [--micro N] [--cap 11GiB] ...

Engines: transformers (autocast, AdamW in fp32 on the GPU, as its Trainer does), plain (16-bit weights, fp32 master
and states on the GPU, by hand), torchao (CPUOffloadOptimizer with gradients: 16-bit weights and states, no clipping;
with --exact neither), deepspeed2, deepspeed3 (ZeRO with CPU Adam, stage 3 with the weights on the host), fsdp2
(fully_shard with CPUOffloadPolicy), byhand (an offload written by hand). Weights are random from a seed. All clip
gradients at 1.0 but torchao's as published, which cannot. torchrun starts fsdp2, deepspeed2 and deepspeed3 on several
GPUs: --batch is each GPU's, rates are those of all.

--cap is what torch's allocator may take of the GPU. gpu_bytes_max is counted as Ferry's is, by the
driver after each step, beyond the empty context, which is measured first: what a step gave back to
torch's cache is in it, and so are kernels loaded and libraries' memory, which --cap does not bind.
reserved_bytes_max is the allocator's own peak. n_retries are the times that it had to give memory back and ask
again, n_recompiled what was compiled while steps were timed: rows with one of them are not that peer's best.
"""
import argparse
import json
import os
import sys
import time

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # states on the host in huge pages; read as torch starts

import torch  # noqa: E402

import byhand  # noqa: E402
import offloaded  # noqa: E402
import resident  # noqa: E402
import zero  # noqa: E402
from task import GIB, SHAPES, Task, rank, world  # noqa: E402

# Each returns (model, step(micro_batches) -> loss), and calls start() where the cap begins to hold.
ENGINES = {"transformers": resident.transformers_engine, "plain": resident.plain_engine,
           "torchao": offloaded.torchao_engine, "fsdp2": offloaded.fsdp2_engine,
           "deepspeed2": zero.engine_of(2), "deepspeed3": zero.engine_of(3), "byhand": byhand.byhand_engine}
# What only some engines know; others refuse it rather than leave it out.
ONLY = {"graph": ["plain"], "optim": ["plain"], "exact": ["torchao"], "minimal_size": ["torchao"],
        "tuned": ["fsdp2"], "resident": ["fsdp2"], "preset": ["deepspeed2", "deepspeed3"], "deepspeed": ["deepspeed2", "deepspeed3"],
        "stream": ["byhand"]}
WHOLE = ["transformers", "plain"]
SEVERAL = ["fsdp2", "deepspeed2", "deepspeed3"]


def parser_of_words():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, choices=sorted(ENGINES))
    parser.add_argument("--model", required=True, choices=sorted(SHAPES))
    parser.add_argument("--batch", type=int, required=True, help="samples of an optimizer step, on each GPU")
    parser.add_argument("--micro", type=int, help="samples at a time; all of them by itself")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--lengths", help="a file: each line the lengths of one step's samples")
    parser.add_argument("--pad", action="store_true", help="pad all to --length, not to the longest")
    parser.add_argument("--sort", action="store_true",
                        help="micro-batches of like lengths; a step's rows stay the same ones")
    parser.add_argument("--packed", action="store_true", help="rows end to end without padding; BERT")
    parser.add_argument("--round-to", type=int, metavar="N",
                        help="pad the longest row, or fill all tokens of --packed, up to a multiple of N")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--checkpoint", action="store_true", help="recompute every layer")
    parser.add_argument("--checkpoint-layers", type=int, default=0, help="recompute the first N layers")
    parser.add_argument("--compile", nargs="?", const="layers", choices=["layers", "whole"],
                        help="torch.compile each layer, or the whole model")
    parser.add_argument("--compile-mode", choices=["reduce-overhead", "max-autotune-no-cudagraphs"])
    parser.add_argument("--budget", type=float, metavar="SHARE",
                        help="of activations that what is compiled may keep; it recomputes the cheapest")
    parser.add_argument("--liger", action="store_true", help="Liger's kernels and loss; Llama")
    parser.add_argument("--graph", action="store_true",
                        help="plain: a micro-batch's forward and backward as one CUDA graph for each size")
    parser.add_argument("--optim", choices=["flashadamw", "adamw8bit"], help="plain: approximate states")
    parser.add_argument("--exact", action="store_true", help="torchao: fp32 weights and states, clipped")
    parser.add_argument("--minimal-size", type=int, help="torchao: smaller tensors stay on the GPU; 4096")
    parser.add_argument("--tuned", action="store_true",
                        help="fsdp2: prefetched layers, weights kept for backward, a plain optimizer")
    parser.add_argument("--resident", action="store_true", help="fsdp2: nothing is offloaded")
    parser.add_argument("--preset", choices=sorted(zero.PRESETS), help="deepspeed: settings of its experts")
    parser.add_argument("--nvme-path", metavar="DIR", help="deepspeed3: where --preset llama-nvme keeps its states")
    parser.add_argument("--deepspeed", metavar="DIR", help="where pip put that version with --target")
    parser.add_argument("--stream", action="store_true",
                        help="byhand: layers' weights in host memory, fetched one ahead")
    parser.add_argument("--expandable", action="store_true",
                        help="an allocator that does not break up as sizes change")
    parser.add_argument("--cap", help="GiB, as 11GiB; nothing: no cap")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    return parser


def arguments(words=None):
    """Ends with what is wrong with words that cannot be meant so."""
    parser = parser_of_words()
    args = parser.parse_args(words)
    causal = "llama" in args.model
    for option, engines in ONLY.items():
        if getattr(args, option) not in (None, False) and args.engine not in engines:
            parser.error(f"--{option.replace('_', '-')} is for {' and '.join(engines)}")
    wrong = [
        (args.graph and (args.device != "cuda" or args.lengths and not args.packed),
         "--graph is for rows of one length, or --packed, on a GPU"),
        (args.packed and causal, "--packed is for BERT"),
        (args.packed and args.engine not in WHOLE, f"--packed is for {' and '.join(WHOLE)}"),
        (args.packed and (args.pad or args.sort), "--packed pads nothing: leave --pad and --sort out"),
        (args.liger and not causal, "--liger is for Llama"),
        (args.compile == "whole" and args.engine not in WHOLE, f"--compile whole is for {' and '.join(WHOLE)}"),
        (not args.compile and (args.budget is not None or args.compile_mode),
         "--budget and --compile-mode are for --compile"),
        (args.budget is not None and (args.checkpoint or args.checkpoint_layers),
         "--budget takes the place of --checkpoint"),
        (args.resident and args.tuned, "--resident or --tuned, not both"),
        (args.checkpoint and args.checkpoint_layers, "--checkpoint or --checkpoint-layers, not both"),
        (bool(args.nvme_path) != (args.preset == "llama-nvme"), "--preset llama-nvme and --nvme-path go together"),
        (world() > 1 and args.engine not in SEVERAL, f"several GPUs are for {', '.join(SEVERAL)}"),
        (args.batch % (args.micro or args.batch), "--micro divides --batch")]
    for is_wrong, why in wrong:
        if is_wrong:
            parser.error(why)
    args.preset = args.preset or "plain"
    args.minimal_size = args.minimal_size or 4096
    return args


# --- measuring ------------------------------------------------------------------------------------

def used_bytes():
    free, total = torch.cuda.mem_get_info()
    return total - free


def peak_host_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def n_compiled():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"] if "torch._dynamo.utils" in sys.modules else 0


def typical_of(args, seconds):
    """Rows of one length: the median step. Steps that are not alike, ragged or updated late: their mean."""
    if args.lengths or args.preset.startswith("zenflow"):
        return sum(seconds) / len(seconds)
    return sorted(seconds)[len(seconds) // 2]


def measure(args):
    cuda = args.device == "cuda"
    torch.manual_seed(0)
    context = driver_max = 0
    if cuda:
        if args.expandable:
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        torch.zeros(1, device="cuda")
        context = used_bytes()
    task = Task(args)

    def start():
        """From here on the cap holds, and the peak counts: what was only passing is given back."""
        if not cuda:
            return
        torch.cuda.empty_cache()
        if args.cap:
            cap = float(args.cap.removesuffix("GiB")) * GIB
            total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
            torch.cuda.set_per_process_memory_fraction(cap / total)
        torch.cuda.reset_peak_memory_stats()

    model, step = ENGINES[args.engine](task, start)
    n_params = sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters())
    wait = torch.cuda.synchronize if cuda else lambda: None

    def n_retries():
        return torch.cuda.memory_stats()["num_alloc_retries"] if cuda else 0
    losses, seconds, n_tokens = [], [], 0
    for i in range(args.warmup + args.steps):
        batches = task.steps[i % len(task.steps)]
        wait()
        if i == args.warmup:
            timed_from = time.monotonic()
            before_timed = n_retries(), n_compiled()
        before = time.monotonic()
        loss = step(batches)
        wait()
        if i >= args.warmup:
            seconds.append(time.monotonic() - before)
            n_tokens += task.n_tokens[i % len(task.steps)]
        losses.append(float(loss.detach()))
        if cuda:
            driver_max = max(driver_max, used_bytes())
    timed_to = time.monotonic()
    typical = typical_of(args, seconds)
    reserved = torch.cuda.max_memory_reserved() if cuda else 0
    return {"params": n_params, "step_ms": 1e3 * typical,
            "samples_per_s": world() * args.batch / typical,
            "tokens_per_s": world() * n_tokens / len(seconds) / typical, "n_tokens": n_tokens,
            "timed_from_s": timed_from, "timed_to_s": timed_to, "context_bytes": context,
            "gpu_bytes_max": max(driver_max - context, reserved), "reserved_bytes_max": reserved,
            "host_bytes_max": peak_host_bytes(), "loss": losses[-1], "first_loss": losses[0],
            "n_retries": n_retries() - before_timed[0], "n_recompiled": n_compiled() - before_timed[1],
            "version": getattr(step, "version", torch.__version__)}


def main():
    args = arguments()
    result = {"engine": args.engine}
    try:
        result.update(measure(args))
    except torch.OutOfMemoryError:
        result["out_of_memory"] = True
    except Exception as error:  # a peer that breaks is a row that says so, not the end of the table
        result["error"] = repr(error)[:400]
    has_failed = "error" in result or "out_of_memory" in result
    if rank() == 0 or has_failed:
        print(json.dumps(result), flush=True)
    sys.stdout.flush()
    # Some engines leave threads that never end. torchrun ends the other ranks where one fails.
    os._exit(1 if has_failed and world() > 1 else 0)


if __name__ == "__main__":
    main()

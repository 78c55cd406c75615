#!/usr/bin/env python3
"""One peer at one piece of work, in a process of its own; prints one JSON object.

    tests/perf/peers/peer.py --engine deepspeed3 --model bert-large --batch 32 --cap 11GiB

Engines: transformers (autocast, fp32 weights and states on the GPU), plain (16-bit weights, fp32
master and states on the GPU, by hand), torchao (CPUOffloadOptimizer with gradients: 16-bit weights
and states, no clipping), deepspeed2, deepspeed3 (ZeRO with CPU Adam, stage 3 with the weights on the
host), fsdp2 (fully_shard with CPUOffloadPolicy). Weights are random from a seed. All clip gradients
at 1.0 but torchao's, which cannot.

--cap is what torch's allocator may take of the GPU. gpu_bytes_max is counted as Ferry's is, by the
driver after each step, beyond the empty context, which is measured first: what a step gave back to
torch's cache is in it, and so are kernels loaded and libraries' memory, which --cap does not bind.
reserved_bytes_max is the allocator's own peak.
"""
import argparse
import json
import os
import sys
import time

import torch

SHAPES = {  # width, layers, heads, ffn
    "bert-large": (1024, 24, 16, 4096), "tiny": (64, 2, 2, 128),
    "llama-3g": (3072, 28, 24, 8192), "tiny-llama": (64, 2, 4, 128)}
GIB = 2**30


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, choices=sorted(ENGINES))
    parser.add_argument("--model", required=True, choices=sorted(SHAPES))
    parser.add_argument("--batch", type=int, required=True, help="samples of an optimizer step")
    parser.add_argument("--micro", type=int, help="samples at a time; all of them by itself")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--lengths", help="a file: each line the lengths of one step's samples")
    parser.add_argument("--pad", action="store_true", help="pad all to --length, not to the longest")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--checkpoint", action="store_true", help="recompute every layer")
    parser.add_argument("--checkpoint-layers", type=int, default=0, help="recompute the first N layers")
    parser.add_argument("--compile", action="store_true", help="torch.compile each layer")
    parser.add_argument("--graph", action="store_true",
                        help="plain: a micro-batch's forward and backward as one CUDA graph")
    parser.add_argument("--expandable", action="store_true",
                        help="an allocator that does not break up as sizes change")
    parser.add_argument("--cap", help="GiB, as 11GiB; nothing: no cap")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    args = parser.parse_args()
    if args.graph and (args.engine != "plain" or args.lengths or args.device != "cuda"):
        parser.error("--graph is for the plain engine and rows of one length on a GPU")
    return args


class Work:
    """The model's constructor and the batches: `steps` of micro-batches of keyword arguments."""

    def __init__(self, args):
        self.args = args
        self.causal = "llama" in args.model
        micro = args.micro or args.batch
        generator = torch.Generator().manual_seed(3)
        self.steps = []
        for lengths in self.lengths():
            step = []
            for first in range(0, len(lengths), micro):
                some = lengths[first:first + micro]
                longest = self.args.length if self.args.pad else max(some)
                ids = torch.randint(5, 30000, (len(some), longest), generator=generator)
                batch = {"input_ids": ids}
                if min(some) < longest:
                    places = torch.arange(longest)[None]
                    batch["attention_mask"] = (places < torch.tensor(some)[:, None]).long()
                batch["labels"] = ids if self.causal else torch.randint(
                    0, 2, (len(some),), generator=generator)
                step.append({key: value.to(args.device) for key, value in batch.items()})
            self.steps.append(step)
        self.n_tokens = [sum(lengths) for lengths in self.lengths()]

    def lengths(self):
        if not self.args.lengths:
            return [[self.args.length] * self.args.batch]
        with open(self.args.lengths) as lines:
            return [[int(word) for word in line.split()] for line in lines]

    def build(self):
        width, layers, heads, ffn = SHAPES[self.args.model]
        common = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
                  "intermediate_size": ffn, "attn_implementation": "sdpa"}
        if self.causal:
            from transformers import LlamaConfig, LlamaForCausalLM
            model = LlamaForCausalLM(LlamaConfig(
                vocab_size=32000, num_key_value_heads=max(1, heads // 3), use_cache=False, **common))
        else:
            from transformers import BertConfig, BertForSequenceClassification
            model = BertForSequenceClassification(BertConfig(num_labels=2, **common))
        if self.args.checkpoint or self.args.checkpoint_layers:
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False})
            if not self.args.checkpoint:
                for layer in self.layers_of(model)[self.args.checkpoint_layers:]:
                    layer.gradient_checkpointing = False
        return model.train()

    def layers_of(self, model):
        return model.model.layers if self.causal else model.bert.encoder.layer

    @property
    def dtype(self):
        return {"bf16": torch.bfloat16, "fp16": torch.float16}[self.args.dtype]


def compile_layers(work, model):
    layers = work.layers_of(model)
    if work.args.compile:
        for i in range(len(layers)):
            layers[i] = torch.compile(layers[i])


def graph_of(run, batch):
    """`run` for batches of this one's shape as one CUDA graph: launching some 4,000 kernels one by one
    takes a slow CPU longer than a GPU takes to run them."""
    batch = {key: value.clone() for key, value in batch.items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries set themselves up, gradients come to be
            run(batch)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = run(batch)

    def replay(other):
        for key, value in batch.items():
            value.copy_(other[key])
        graph.replay()
        return loss
    return replay


# --- engines: each returns step(micro_batches) -> loss --------------------------------------------

def transformers_engine(work, start):
    model = work.build().to(work.args.device)
    compile_layers(work, model)
    start()
    fused = work.args.device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=fused)
    scaler = torch.amp.GradScaler(work.args.device, enabled=work.args.dtype == "fp16")

    def step(micro_batches):
        for batch in micro_batches:
            with torch.autocast(work.args.device, work.dtype):
                loss = model(**batch).loss / len(micro_batches)
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss * len(micro_batches)
    return model, step


def plain_engine(work, start):
    model = work.build().to(work.args.device, work.dtype)
    compile_layers(work, model)
    start()
    params = list(model.parameters())
    masters = [p.detach().float().clone().requires_grad_() for p in params]
    optimizer = torch.optim.AdamW(masters, lr=2e-5, fused=work.args.device == "cuda")
    n_micro = len(work.steps[0])

    def pass_both_ways(batch):
        loss = model(**batch).loss / n_micro
        loss.backward()
        return loss.detach()
    if work.args.graph:
        pass_both_ways = graph_of(pass_both_ways, work.steps[0][0])
        model.zero_grad(set_to_none=False)

    def step(micro_batches):
        for batch in micro_batches:
            loss = pass_both_ways(batch)
        for master, param in zip(masters, params):
            master.grad = param.grad.float()
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        torch._foreach_copy_([p.data for p in params], [m.data for m in masters])
        for master in masters:
            master.grad = None
        model.zero_grad(set_to_none=not work.args.graph)  # a graph adds to gradients where they lie
        return loss * n_micro
    return model, step


def torchao_engine(work, start):
    from torchao.optim import CPUOffloadOptimizer
    model = work.build().to("cuda", work.dtype)
    start()
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients=True,
                                    lr=2e-5, fused=True)

    def step(micro_batches):
        (batch,) = micro_batches  # gradients that are offloaded do not accumulate
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, step


def deepspeed_engine(stage):
    def engine(work, start):
        import deepspeed
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        become_only_rank()
        model = work.build().to("cpu", work.dtype)
        zero = {"stage": stage, "offload_optimizer": {"device": "cpu", "pin_memory": True},
                "overlap_comm": True, "contiguous_gradients": True}
        if stage == 3:
            zero["offload_param"] = {"device": "cpu", "pin_memory": True}
        micro = work.args.micro or work.args.batch
        config = {"train_micro_batch_size_per_gpu": micro, work.args.dtype: {"enabled": True},
                  "gradient_accumulation_steps": work.args.batch // micro,
                  "gradient_clipping": 1.0, "zero_optimization": zero}
        start()
        runner, *_ = deepspeed.initialize(
            model=model, optimizer=DeepSpeedCPUAdam(model.parameters(), lr=2e-5), config=config)

        def step(micro_batches):
            for batch in micro_batches:
                loss = runner(**batch).loss
                runner.backward(loss)
                runner.step()
            return loss
        return model, step
    return engine


def fsdp2_engine(work, start):
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
    become_only_rank()
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl")
    model = work.build()
    options = {"offload_policy": CPUOffloadPolicy(pin_memory=True),
               "mp_policy": MixedPrecisionPolicy(param_dtype=work.dtype, reduce_dtype=work.dtype)}
    for layer in work.layers_of(model):
        fully_shard(layer, **options)
    fully_shard(model, **options)
    start()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)

    def step(micro_batches):
        for batch in micro_batches:
            loss = model(**batch).loss / len(micro_batches)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss * len(micro_batches)
    return model, step


ENGINES = {"transformers": transformers_engine, "plain": plain_engine, "torchao": torchao_engine,
           "deepspeed2": deepspeed_engine(2), "deepspeed3": deepspeed_engine(3),
           "fsdp2": fsdp2_engine}


def become_only_rank():
    for key, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29000 + os.getpid() % 999),
                       "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(key, value)


# --- measuring ------------------------------------------------------------------------------------

def used_bytes():
    free, total = torch.cuda.mem_get_info()
    return total - free


def peak_host_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def measure(args):
    cuda = args.device == "cuda"
    torch.manual_seed(0)
    context = driver_max = 0
    if cuda:
        if args.expandable:
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        context = used_bytes()
    work = Work(args)

    def start():
        """From here on the cap holds, and the peak counts: what was only passing is given back."""
        if not cuda:
            return
        torch.cuda.empty_cache()
        if args.cap:
            cap = float(args.cap.removesuffix("GiB")) * GIB
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(cap / total)
        torch.cuda.reset_peak_memory_stats()

    model, step = ENGINES[args.engine](work, start)
    wait = torch.cuda.synchronize if cuda else lambda: None
    losses, seconds, n_tokens = [], [], 0
    for i in range(args.warmup + args.steps):
        batches = work.steps[i % len(work.steps)]
        wait()
        if i == args.warmup:
            timed_from = time.monotonic()
        before = time.monotonic()
        loss = step(batches)
        wait()
        if i >= args.warmup:
            seconds.append(time.monotonic() - before)
            n_tokens += work.n_tokens[i % len(work.steps)]
        losses.append(float(loss.detach()))
        if cuda:
            driver_max = max(driver_max, used_bytes())
    timed_to = time.monotonic()
    # Rows of one length: the median step. Ragged rows: all steps, which are not alike.
    median = sorted(seconds)[len(seconds) // 2]
    typical = median if not args.lengths else sum(seconds) / len(seconds)
    reserved = torch.cuda.max_memory_reserved() if cuda else 0
    return {"params": sum(p.numel() for p in model.parameters()), "step_ms": 1e3 * typical,
            "samples_per_s": args.batch / typical,
            "tokens_per_s": n_tokens / len(seconds) / typical, "n_tokens": n_tokens,
            "timed_from_s": timed_from, "timed_to_s": timed_to, "context_bytes": context,
            "gpu_bytes_max": max(driver_max - context, reserved), "reserved_bytes_max": reserved,
            "host_bytes_max": peak_host_bytes(), "loss": losses[-1], "first_loss": losses[0]}


def main():
    args = arguments()
    result = {"engine": args.engine}
    try:
        result.update(measure(args))
    except torch.OutOfMemoryError:
        result["out_of_memory"] = True
    except Exception as error:  # a peer that breaks is a row that says so, not the end of the table
        result["error"] = repr(error)[:400]
    print(json.dumps(result), flush=True)
    sys.stdout.flush()
    os._exit(0)  # some engines leave threads that never end


if __name__ == "__main__":
    main()

"""Peers that keep states on the host by a library: torchao's optimizer and FSDP2's offloading."""
from contextlib import nullcontext

import torch

from task import become_rank, world
from update import LR, clip_in_step, norm_of

N_AHEAD = 2  # layers whose weights are fetched before they are asked for


def torchao_engine(task, start):
    """As published, weights and states of 16 bits and no clipping. --exact: all of it in fp32 under autocast, and
    clipped by what fused AdamW divides gradients by; then they stay on the GPU until the norm is known."""
    from torchao.optim import CPUOffloadOptimizer
    args = task.args
    model = task.build(dtype=torch.float32 if args.exact else task.dtype)
    runner = task.compile(model)
    start()
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients=not args.exact,
                                    minimal_size=args.minimal_size, lr=LR, fused=True)

    def clip():
        divisor = norm_of([p.grad for p in model.parameters()]).clamp(min=1.0)
        if optimizer.d_opt:
            clip_in_step(optimizer.d_opt, divisor, torch.zeros_like(divisor))
        divisor = divisor.cpu()
        for each in optimizer.optim_dict.values():
            clip_in_step(each, divisor, torch.zeros_like(divisor))

    def step(micro_batches):
        if not args.exact and len(micro_batches) > 1:
            raise ValueError("gradients that are offloaded do not accumulate: leave --micro out")
        for batch in micro_batches:
            with torch.autocast(args.device, task.dtype) if args.exact else nullcontext():
                loss = runner(**batch).loss / len(micro_batches)
            loss.backward()
        if args.exact:
            clip()
        optimizer.step()
        optimizer.zero_grad()
        return loss * len(micro_batches)
    return model, step


class LocalUpdate:
    """AdamW over the tensors of this rank's shards, which are plain: those are faster than distributed ones. Clips in
    AdamW's own pass, by the norm of all ranks."""

    def __init__(self, model):
        self.sharded = list(model.parameters())
        self.local = [torch.nn.Parameter(p.to_local().detach()) for p in self.sharded]
        self.optimizer = torch.optim.AdamW(self.local, lr=LR, fused=True)

    @torch.no_grad()
    def step(self):
        for local, sharded in zip(self.local, self.sharded):
            local.grad = sharded.grad.to_local()
        norm = norm_of([p.grad for p in self.local])
        if world() > 1:
            square = norm.square()
            torch.distributed.all_reduce(square)
            norm = square.sqrt()
        divisor = norm.clamp(min=1.0)
        clip_in_step(self.optimizer, divisor, torch.zeros_like(divisor))
        self.optimizer.step()
        for local, sharded in zip(self.local, self.sharded):
            local.grad = sharded.grad = None


def fsdp2_engine(task, start):
    """fully_shard with CPUOffloadPolicy over pinned memory. --tuned: layers ahead fetched in advance, weights kept
    on the GPU between forward and backward, and LocalUpdate. --resident: nothing is offloaded."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
    args = task.args
    cuda = args.device == "cuda"
    become_rank()
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    model = task.build(args.device if args.resident else "cpu")
    task.compile(model)
    options = {"mp_policy": MixedPrecisionPolicy(param_dtype=task.dtype, reduce_dtype=task.dtype)}
    if not args.resident:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=cuda)
    if args.tuned:
        options["reshard_after_forward"] = False
    if not cuda:
        options["mesh"] = torch.distributed.init_device_mesh("cpu", (world(),))
    layers = task.layers_of(model)
    for layer in layers:
        fully_shard(layer, **options)
    if args.tuned:
        fully_shard(model.model.embed_tokens if task.causal else model.bert.embeddings, **options)
        for i, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(list(layers[i + 1:i + 1 + N_AHEAD]))
            layer.set_modules_to_backward_prefetch(list(layers[max(0, i - N_AHEAD):i])[::-1])
    fully_shard(model, **options)
    start()
    optimizer = None if args.tuned else torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
    local = []

    def step(micro_batches):
        for batch in micro_batches:
            loss = model(**batch).loss / len(micro_batches)
            loss.backward()
        if args.tuned:
            if not local:  # the first forward settles where the weights lie
                local.append(LocalUpdate(model))
            local[0].step()
        else:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss * len(micro_batches)
    return model, step

"""Peers that keep weights and states on the GPU: transformers as its Trainer runs it, and plain PyTorch by hand."""
import torch

from update import LR, LossScale, MasterUpdate, norm_of


def graph_of(run, batch, pool):
    """`run` for batches of this one's shape as one CUDA graph: launching some 4,000 kernels one by one
    takes a slow CPU longer than a GPU takes to run them."""
    batch = {key: value.clone() if torch.is_tensor(value) else value for key, value in batch.items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries set themselves up, gradients come to be
            run(batch)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.empty_cache()  # what the side stream's runs took, the graph takes again
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        loss = run(batch)

    def replay(other):
        for key, value in batch.items():
            if torch.is_tensor(value):
                value.copy_(other[key])
        graph.replay()
        return loss
    return replay


def shape_key(batch):
    return tuple(value.shape for value in batch.values() if torch.is_tensor(value))


def graphs_of(run, steps):
    """`run` by one graph for each size there is. They run one after another, in the same memory."""
    pool, graphs = torch.cuda.graph_pool_handle(), {}
    batches = [batch for step in steps for batch in step]
    for batch in sorted(batches, key=lambda batch: -batch["input_ids"].numel()):
        if shape_key(batch) not in graphs:
            graphs[shape_key(batch)] = graph_of(run, batch, pool)
    return lambda batch: graphs[shape_key(batch)](batch)


def transformers_engine(task, start):
    args = task.args
    model = task.build()
    runner = task.compile(model)
    start()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
    scaler = torch.amp.GradScaler(args.device, enabled=args.dtype == "fp16")

    def step(micro_batches):
        for batch in micro_batches:
            with torch.autocast(args.device, task.dtype):
                loss = runner(**batch).loss / len(micro_batches)
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss * len(micro_batches)
    return model, step


class ReducedUpdate:
    """Approximate AdamW on the 16-bit weights themselves, by a package's optimizer; clipped before it."""

    def __init__(self, params, optimizer):
        self.params, self.optimizer = params, optimizer

    @torch.no_grad()
    def step(self):
        coefficient = 1 / torch.clamp(norm_of([p.grad for p in self.params]), min=1.0)
        torch._foreach_mul_([p.grad for p in self.params], coefficient)
        self.optimizer.step()


def update_of(args, params, scale):
    """What --optim names."""
    if args.optim == "flashadamw":
        from flashoptim import FlashAdamW
        return ReducedUpdate(params, FlashAdamW(params, lr=LR, fused=True, master_weight_bits=24, quantize=True))
    if args.optim == "adamw8bit":
        from torchao.optim import AdamW8bit
        return ReducedUpdate(params, AdamW8bit(params, lr=LR, bf16_stochastic_round=True))
    return MasterUpdate(params, scale)


def plain_engine(task, start):
    args = task.args
    model = task.build(dtype=task.dtype)
    runner = task.compile(model)
    start()
    params = list(model.parameters())
    scale = LossScale(args.dtype == "fp16", args.device)
    update = update_of(args, params, scale)

    def pass_both_ways(batch):
        loss = runner(**batch).loss / task.n_micro
        (loss * scale.scale if scale.enabled else loss).backward()
        return loss.detach()
    if args.graph:
        pass_both_ways = graphs_of(pass_both_ways, task.steps)
        model.zero_grad(set_to_none=False)

    def step(micro_batches):
        for batch in micro_batches:
            loss = pass_both_ways(batch)
        update.step()
        model.zero_grad(set_to_none=not args.graph)  # a graph adds to gradients where they lie
        return loss * task.n_micro
    return model, step

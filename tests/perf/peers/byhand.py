"""The offloading that an expert writes by hand, the rival where states or weights live in host memory.

fp32 masters, moments and gradients of a block (a layer, the embeddings, the head) are one flat tensor each, of
pinned host memory where they are copied. Gradients leave in fp32 on a stream of their own as backward makes them;
the norm is taken on the GPU on the way. Then a thread runs LibTorch's fused CPU AdamW block by block in the order
of the next forward, which waits for no more than the block it is at. Clipping is AdamW's own division. Exact.

16-bit weights stay on the GPU; with --stream those of the layers live in pinned host memory, two at a time are on
the GPU, the next one is fetched beside the one that computes, and all layers are recomputed.
"""
import threading
from contextlib import nullcontext

import torch
from torch.utils.checkpoint import checkpoint

from update import LR

N_SLOTS = 2


class Lane:
    """A CUDA stream beside the main one. On the CPU there is none, and all is done in order."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream() if device == "cuda" else None

    def __call__(self):
        return torch.cuda.stream(self.stream) if self.stream else nullcontext()

    def after_main(self):
        """What comes next here waits for what the main stream has been given."""
        if self.stream:
            self.stream.wait_stream(torch.cuda.current_stream())

    def mark(self):
        return self.stream.record_event() if self.stream else None

    def synchronize(self):
        if self.stream:
            self.stream.synchronize()


def main_waits_for(event):
    if event is not None:
        torch.cuda.current_stream().wait_event(event)


def views_of(flat, params):
    """The flat tensor's parts, shaped as the parameters."""
    sizes = [p.numel() for p in params]
    return [part.view(p.shape) for part, p in zip(flat.split(sizes), params)]


class Block:
    """Parameters that are updated together, and where the host keeps what belongs to them."""

    def __init__(self, params, pin):
        self.params = params
        n = sum(p.numel() for p in params)
        self.master = torch.empty(n, pin_memory=pin)
        self.gradient = torch.empty(n, pin_memory=pin)
        for part, p in zip(views_of(self.master, params), params):
            part.copy_(p.detach())
        self.gradients = views_of(self.gradient, params)
        self.moments = torch.zeros(n), torch.zeros(n)
        self.n_steps = torch.zeros(())
        self.weights = None  # in pinned host memory, of a layer that is streamed
        self.updated, self.on_gpu = threading.Event(), None
        self.updated.set()

    @torch.no_grad()
    def update(self, divisor):
        """One step of AdamW; gradients are divided by `divisor`, which clips them."""
        self.n_steps += 1
        torch._fused_adamw_(
            [self.master], [self.gradient], [self.moments[0]], [self.moments[1]], [], [self.n_steps], lr=LR,
            beta1=0.9, beta2=0.999, weight_decay=1e-2, eps=1e-8, amsgrad=False, maximize=False,
            grad_scale=divisor, found_inf=torch.zeros(()))


class Updater:
    """Sends gradients to the host, updates there, and sends weights back."""

    def __init__(self, device, blocks, n_micro):
        self.blocks, self.n_micro, self.device = blocks, n_micro, device
        self.down, self.up = Lane(device), Lane(device)
        self.norms, self.is_last, self.thread, self.failure = [], False, None, None
        staged = max(block.master.numel() for block in blocks if block.weights is None)
        self.staging = torch.empty(staged, device=device)
        for block in blocks:
            for param, place in zip(block.params, block.gradients):
                param.register_post_accumulate_grad_hook(lambda p, place=place: self.send(p, place))

    @torch.no_grad()
    def send(self, param, place):
        """The sum of all micro-batches' gradients, once it is whole."""
        if not self.is_last:
            return
        self.down.after_main()
        with self.down():
            wide = param.grad.float()
            self.norms.append(torch.linalg.vector_norm(wide))
            place.copy_(wide, non_blocking=True)
            if self.down.stream:
                param.grad.record_stream(self.down.stream)
        param.grad = None

    def begin(self):
        """After the last backward of a step: the rest goes on beside the next forward."""
        with self.down():
            norm = torch.linalg.vector_norm(torch.stack(self.norms)).item()  # waits for every gradient
        self.down.synchronize()
        self.norms = []
        divisor = torch.tensor(max(1.0, norm))
        for block in self.blocks:
            block.updated.clear()
        self.up.after_main()
        self.thread = threading.Thread(target=self.run, args=(divisor,), daemon=True)
        self.thread.start()

    @torch.no_grad()
    def run(self, divisor):
        try:
            for block in self.blocks:
                block.update(divisor)
                self.publish(block)
        except BaseException as failure:  # the main thread tells
            self.failure = failure
        finally:
            for block in self.blocks:
                block.updated.set()

    def publish(self, block):
        """New weights, where forward reads them."""
        if block.weights is not None:
            block.weights.copy_(block.master)
        else:
            with self.up():
                staged = self.staging[:block.master.numel()]
                staged.copy_(block.master, non_blocking=True)
                torch._foreach_copy_([p.data for p in block.params], views_of(staged, block.params))
                block.on_gpu = self.up.mark()
        block.updated.set()

    def wait_for(self, block):
        """Before this block computes with its weights."""
        block.updated.wait()
        if self.failure:
            raise self.failure
        main_waits_for(block.on_gpu)


class Slots:
    """GPU memory of the layers that compute or come next; all layers are alike, layer i lies in slot i % 2."""

    def __init__(self, device, blocks, updater):
        self.blocks, self.updater, self.lane = blocks, updater, Lane(device)
        n = blocks[0].master.numel()
        dtype = blocks[0].params[0].dtype
        self.flat = [torch.empty(n, device=device, dtype=dtype) for _ in range(N_SLOTS)]
        self.held, self.arrived = [None] * N_SLOTS, [None] * N_SLOTS
        for i, block in enumerate(blocks):
            for param, view in zip(block.params, views_of(self.flat[i % N_SLOTS], block.params)):
                param.data = view

    @torch.no_grad()
    def fetch(self, i):
        """Layer i into its slot, whose last layer's work the main stream has already been given."""
        slot = i % N_SLOTS
        if not 0 <= i < len(self.blocks) or self.held[slot] == i:
            return
        block = self.blocks[i]
        block.updated.wait()
        self.lane.after_main()
        with self.lane():
            self.flat[slot].copy_(block.weights, non_blocking=True)
            self.arrived[slot] = self.lane.mark()
        self.held[slot] = i

    def enter(self, i, is_backward):
        """Layer i is to compute: it is there, and the next one is on its way."""
        self.updater.wait_for(self.blocks[i])
        self.fetch(i)
        main_waits_for(self.arrived[i % N_SLOTS])
        self.fetch_after(i, -1 if is_backward else 1)

    def fetch_after(self, i, direction):
        """Does not wait for an update that is under way: the layer itself will."""
        following = i + direction
        if 0 <= following < len(self.blocks) and self.blocks[following].updated.is_set():
            self.fetch(following)

    def forget(self):
        """Weights have changed."""
        self.held = [None] * N_SLOTS


class StreamedLayer(torch.nn.Module):
    """A layer whose weights are fetched before it computes and before it is recomputed."""

    def __init__(self, layer, i, slots):
        super().__init__()
        self.layer, self.i, self.slots, self.in_backward = layer, i, slots, False

    def run(self, *args, **words):
        self.slots.enter(self.i, self.in_backward)
        self.in_backward = not self.in_backward
        return self.layer(*args, **words)

    def forward(self, *args, **words):
        self.in_backward = False
        return checkpoint(self.run, *args, use_reentrant=False, **words)


def blocks_of(task, model, pin):
    """(first, layers, last): what forward uses in this order, and the modules that begin each."""
    layers = task.layers_of(model)
    in_layers = {id(p) for p in layers.parameters()}
    first_module = model.model.embed_tokens if task.causal else model.bert.embeddings
    last_module = model.model.norm if task.causal else model.bert.pooler
    first = list(first_module.parameters())
    taken = in_layers | {id(p) for p in first}
    last = [p for p in model.parameters() if id(p) not in taken]
    return ((first_module, Block(first, pin)), [(layer, Block(list(layer.parameters()), pin)) for layer in layers],
            (last_module, Block(last, pin)))


def byhand_engine(task, start):
    args = task.args
    if args.dtype != "bf16":
        raise ValueError("byhand scales no loss: --dtype bf16")
    if args.stream and (args.checkpoint or args.checkpoint_layers):
        raise ValueError("--stream recomputes all layers by itself")
    model = task.build(dtype=task.dtype)
    first, middle, last = blocks_of(task, model, args.device == "cuda")
    task.compile(model)
    layers = task.layers_of(model)
    if args.stream:
        for _, block in middle:
            block.weights = torch.empty(block.master.numel(), dtype=task.dtype, pin_memory=args.device == "cuda")
            block.weights.copy_(block.master)
    updater = Updater(args.device, [block for _, block in (first, *middle, last)], task.n_micro)
    slots = None
    if args.stream:
        slots = Slots(args.device, [block for _, block in middle], updater)
        for i in range(len(layers)):
            layers[i] = StreamedLayer(layers[i], i, slots)
    else:
        for layer, (_, block) in zip(layers, middle):
            layer.register_forward_pre_hook(lambda *_, block=block: updater.wait_for(block))
    for module, block in (first, last):
        module.register_forward_pre_hook(lambda *_, block=block: updater.wait_for(block))
    start()

    def step(micro_batches):
        for i, batch in enumerate(micro_batches):
            updater.is_last = i == len(micro_batches) - 1
            loss = model(**batch).loss / len(micro_batches)
            loss.backward()
        if updater.thread:
            updater.thread.join()  # long done: forward waited for each of its blocks
        updater.begin()
        if slots:
            slots.forget()
        return loss * len(micro_batches)
    return model, step

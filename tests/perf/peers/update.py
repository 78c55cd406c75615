"""AdamW in fp32 for weights of 16 bits, clipped at 1.0, without another pass over all gradients."""
import torch

LR = 2e-5
N_CHUNKS = 8  # gradients are fp32 for one of them at a time


def norm_of(gradients):
    """fp32 on their device, of all of them together."""
    norms = torch._foreach_norm(gradients, 2, dtype=torch.float32)
    return torch.linalg.vector_norm(torch.stack(norms))


def clip_in_step(optimizer, divisor, overflowed):
    """Fused AdamW divides gradients as it reads them, and leaves all as it is where `overflowed` is 1."""
    optimizer.grad_scale, optimizer.found_inf = divisor, overflowed


class LossScale:
    """fp16's, dynamic, on the device: nobody waits for it. One that stays 1 for bf16."""

    def __init__(self, enabled, device):
        self.enabled = enabled
        self.scale = torch.full((), 2.0**16 if enabled else 1.0, device=device)
        self.growth = torch.zeros((), dtype=torch.int32, device=device)

    def divisor(self, norm):
        """(what gradients are divided by, for a norm of 1.0 at most, 1.0 where they overflowed)."""
        overflowed = (~torch.isfinite(norm)).float()
        return self.scale * torch.clamp(norm / self.scale, min=1.0).nan_to_num(1.0, 1.0), overflowed

    def update(self, overflowed):
        if self.enabled:
            torch._amp_update_scale_(self.scale, self.growth, overflowed, 2.0, 0.5, 2000)


class MasterUpdate:
    """fp32 masters and states of 16-bit parameters; exact AdamW with exact clipping."""

    def __init__(self, params, scale):
        self.scale = scale
        self.chunks = []
        per_chunk = sum(p.numel() for p in params) / N_CHUNKS
        chunk, n = [], 0
        for param in params:
            chunk.append(param)
            n += param.numel()
            if n >= per_chunk:
                self.add(chunk)
                chunk, n = [], 0
        if chunk:
            self.add(chunk)
        self.params = params

    def add(self, params):
        masters = [p.detach().float().clone().requires_grad_() for p in params]
        self.chunks.append((params, masters, torch.optim.AdamW(masters, lr=LR, fused=True)))

    @torch.no_grad()
    def step(self):
        """Of the gradients of the parameters, which it leaves as they are."""
        divisor, overflowed = self.scale.divisor(norm_of([p.grad for p in self.params]))
        for params, masters, optimizer in self.chunks:
            for master, param in zip(masters, params):
                master.grad = param.grad.float()
            clip_in_step(optimizer, divisor, overflowed)
            optimizer.step()
            torch._foreach_copy_(params, masters)
            for master in masters:
                master.grad = None
        self.scale.update(overflowed)

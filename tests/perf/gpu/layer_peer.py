"""The layers of layer_spike under transformers: eager and torch.compile, forward and backward, bf16, no padding, no optimizer."""
import argparse, json, time, torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

ap = argparse.ArgumentParser()
ap.add_argument("--layers", type=int, default=24)
ap.add_argument("--seqs", type=int, default=16)
ap.add_argument("--length", type=int, default=512)
ap.add_argument("--iterations", type=int, default=9)
a = ap.parse_args()
cfg = BertConfig(hidden_size=1024, num_hidden_layers=a.layers, num_attention_heads=16, intermediate_size=4096, attn_implementation="sdpa")
x0 = torch.randn(a.seqs, a.length, 1024, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x0) * 1e-3


def measure(name, compiled, deterministic):
    torch.use_deterministic_algorithms(deterministic)
    torch.manual_seed(0)
    stack = torch.nn.ModuleList([BertLayer(cfg) for _ in range(a.layers)]).cuda().bfloat16().train()
    layers = [torch.compile(layer) if compiled else layer for layer in stack]

    def step():
        x = x0.detach().requires_grad_()
        for layer in layers:
            y = layer(x)
            x = y[0] if isinstance(y, tuple) else y
        x.backward(dy)
        stack.zero_grad(set_to_none=True)

    for _ in range(4): step()
    torch.cuda.synchronize()
    ts = []
    for _ in range(a.iterations):
        t = time.perf_counter(); step(); torch.cuda.synchronize(); ts.append(time.perf_counter() - t)
    ms = sorted(ts)[len(ts) // 2] * 1e3
    print(json.dumps(dict(peer=name, ms=round(ms, 2), samples_s=round(a.seqs / ms * 1e3, 1), deterministic=deterministic, peak_gib=round(torch.cuda.max_memory_allocated() / 2**30, 2))), flush=True)


measure("compiled", True, False)
measure("eager", False, False)

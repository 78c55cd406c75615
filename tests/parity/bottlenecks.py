"""The formulas of adapters with a bottleneck (OpenDelta's) on transformers' models, for adapters.py: two small maps behind the
attention's projection and the feed-forward's last map, or beside both branches."""
import torch

SIZE, SCALE, DIVISION, STD = 8, 2.5, 4, 0.2
KINDS = {
    "adapter": dict(adapter_size=str(SIZE)),
    "parallel_adapter": dict(adapter_size=str(SIZE), adapter_scale=str(SCALE)),
    "low_rank_adapter": dict(adapter_size=str(SIZE)),
    "compacter": dict(adapter_size=str(SIZE), compacter_division=str(DIVISION)),
}
# By family: the first and the last linear map of each branch.
BRANCHES = {
    "bert": [("attention.self.query", "attention.output.dense"), ("intermediate.dense", "output.dense")],
    "gpt2": [("attn.c_attn", "attn.c_proj"), ("mlp.c_fc", "mlp.c_proj")],
    "gpt_neox": [("attention.query_key_value", "attention.dense"), ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")],
    "llama": [("self_attn.q_proj", "self_attn.o_proj"), ("mlp.gate_proj", "mlp.down_proj")],
    "granite": [("self_attn.q_proj", "self_attn.o_proj"), ("mlp.gate_proj", "mlp.down_proj")],
}


def branches(model, family):
    """(name of the last map, first, last) of every branch of the layers."""
    modules = dict(model.named_modules())
    found = []
    for name in modules:
        layer, dot, index = name.rpartition(".")
        if not index.isdigit():
            continue
        found += [(f"{name}.{last}", modules[f"{name}.{first}"], modules[f"{name}.{last}"])
                  for first, last in BRANCHES[family] if f"{name}.{last}" in modules]
    return found


def shapes(kind, part, width):
    """The tensors of one map by name; D leads to SIZE columns, U back."""
    columns, rows = (width, SIZE) if part == "down" else (SIZE, width)
    if kind == "low_rank_adapter":
        matrix = dict(left=(columns, 1), right=(1, rows))
    elif kind == "compacter":
        matrix = dict(phm_rule=(DIVISION,) * 3, left=(DIVISION, columns // DIVISION, 1), right=(DIVISION, 1, rows // DIVISION))
    else:
        matrix = dict(weight=(rows, columns))
    return matrix | dict(bias=(rows,))


def make(model, family, kind, prefix):
    generator = torch.Generator().manual_seed(9)
    width = model.config.hidden_size
    return {f"{prefix}{name}.adapter.{part}.{what}": STD * torch.randn(shape, generator=generator)
            for name, _, _ in branches(model, family) for part in ("down", "up")
            for what, shape in shapes(kind, part, width).items()}


def mapped(kind, tensors, x):
    """x by one map."""
    if kind == "low_rank_adapter":
        matrix = tensors["left"] @ tensors["right"]
    elif kind == "compacter":
        matrix = sum(torch.kron(rule, left @ right) for rule, left, right in zip(tensors["phm_rule"], tensors["left"], tensors["right"]))
    else:
        matrix = tensors["weight"].T
    return x @ matrix + tensors["bias"]


def add(model, family, kind, trained, prefix):
    """Gives the model the adapters, which `trained` has by name."""
    for name, first, last in branches(model, family):
        maps = {part: {what: trained[f"{prefix}{name}.adapter.{part}.{what}"] for what in shapes(kind, part, 8)} for part in ("down", "up")}
        read = {}
        first.register_forward_pre_hook(lambda module, inputs, read=read: read.update(x=inputs[0]))

        def adapted(module, inputs, out, maps=maps, read=read):
            x = read["x"] if kind == "parallel_adapter" else out
            z = mapped(kind, maps["down"], x)
            active = torch.relu(z) if kind == "compacter" else torch.nn.functional.gelu(z, approximate="tanh")
            return out + (SCALE if kind == "parallel_adapter" else 1) * mapped(kind, maps["up"], active)
        last.register_forward_hook(adapted)

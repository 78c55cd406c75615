"""Adapters of Ferry's engine (streamed, recomputed, two micro-batches) beside LoRA's and DoRA's formulas on transformers' models, or
beside PEFT where it is installed, and adapters with a bottleneck beside theirs: ten steps of torch.optim.AdamW in fp32 from the same weights, adapters and rows. Losses, gradient norms and
every tensor of the adapter; that both adapt the same modules. Bars are those of compare_steps.py.

    adapters.py TRAIN_DUMP_PROGRAM [NAME]     NAME: a class of transformers, or a kind of adapter

Prints one line a case, a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, pathlib, re, subprocess, sys, tempfile

try:
    import numpy, torch, transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
try:
    import peft
except ImportError:
    peft = None

import bottlenecks, compare_steps, families, small
from compare_steps import BAR, DECAY, MAX_NORM, N_WARMUP, RATE

PREFIX, RANK, ALPHA = "base_model.model.", 3, 6.0
HEADS = ("classifier", "score", "qa_outputs", "pooler", "pre_classifier")
# One head of each family, and the other kinds of a family of each kind.
CASES = [small.cases_of(name)[0] for name in small.TABLE] + small.cases_of("roberta")[1:] + small.cases_of("llama")[1:2]
LORA = dict(lora_r=str(RANK), lora_alpha=str(ALPHA))
OPTIONS = dict(lora=dict(tuning="lora") | LORA, dora=dict(tuning="lora", use_dora="true") | LORA) | {
    kind: dict(tuning=kind) | options for kind, options in bottlenecks.KINDS.items()}
# Matrices that are fused, turned round, have biases of their own or a factor behind them.
SOME = ["llama", "gpt2", "gpt_neox", "bert", "granite"]


def is_head(name):
    return any(part in HEADS for part in name.split("."))


def linear_modules(model):
    """As PEFT's all-linear: all but the output embedding and heads that are trained whole."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    words = model.get_output_embeddings()
    return {name: module for name, module in model.named_modules()
            if isinstance(module, kinds) and module is not words and not is_head(name)}


def sizes(module):
    """(out, in); Conv1D has its matrix the other way round."""
    shape = tuple(module.weight.shape)
    return shape[::-1] if isinstance(module, transformers.pytorch_utils.Conv1D) else shape


def row_norms(module, a, b):
    matrix = module.weight.T if isinstance(module, transformers.pytorch_utils.Conv1D) else module.weight
    return (matrix + ALPHA / RANK * b @ a).norm(dim=1).detach()


def make_adapter(model, kind):
    """The tensors of an adapter, none of them zero, and of heads that are trained whole."""
    generator = torch.Generator().manual_seed(9)
    tensors = {} if kind in ("lora", "dora") else bottlenecks.make(model, small_name(model), kind, PREFIX)
    for name, module in linear_modules(model).items() if not tensors else ():
        rows, columns = sizes(module)
        tensors[f"{PREFIX}{name}.lora_A.weight"] = torch.randn(RANK, columns, generator=generator) / columns ** 0.5
        tensors[f"{PREFIX}{name}.lora_B.weight"] = 0.1 * torch.randn(rows, RANK, generator=generator)
        if kind == "dora":
            a, b = (tensors[f"{PREFIX}{name}.lora_{part}.weight"] for part in "AB")
            tensors[f"{PREFIX}{name}.lora_magnitude_vector"] = row_norms(module, a, b) * (0.8 + 0.4 * torch.rand(rows, generator=generator))
    has_new_head = model.get_output_embeddings() is None
    for name, p in model.named_parameters():
        if has_new_head and is_head(name):
            tensors[PREFIX + name] = p.detach().clone()
    return tensors


def small_name(model):
    return model.config.model_type


def by_formula(model, tensors, kind):
    """Gives the model the adapter; its trained tensors by name."""
    model.requires_grad_(False)
    named = dict(model.named_parameters())
    trained = {}
    for name, value in tensors.items():
        is_added = ".lora_" in name or ".adapter." in name
        trained[name] = value.clone() if is_added else named[name.removeprefix(PREFIX)]
        trained[name].requires_grad_(True)
    if kind in bottlenecks.KINDS:
        bottlenecks.add(model, small_name(model), kind, trained, PREFIX)
        return model, trained
    for name, module in linear_modules(model).items():
        a, b = (trained[f"{PREFIX}{name}.lora_{part}.weight"] for part in "AB")
        m = trained.get(f"{PREFIX}{name}.lora_magnitude_vector")

        def adapted(module, inputs, out, a=a, b=b, m=m):
            more = ALPHA / RANK * (inputs[0] @ a.T) @ b.T
            if m is None:
                return out + more
            bias = 0 if module.bias is None else module.bias
            return m / row_norms(module, a, b) * (out - bias + more) + bias
        module.register_forward_hook(adapted)
    return model, trained


def by_peft(model, directory):
    wrapped = peft.PeftModel.from_pretrained(model, directory, is_trainable=True)
    short = lambda name: re.sub(r"(lora_magnitude_vector)\.weight$", r"\1", name.replace(".default", "").replace(".modules_to_save", ""))
    trained = {short(name): p
               for name, p in wrapped.named_parameters() if p.requires_grad}
    return wrapped, trained


def run_case(program, class_name, config_name, keys, kind="lora"):
    loss, n_labels = next(value for suffix, value in families.LOSSES.items() if class_name.endswith(suffix))
    model, least_id = families.model_of(class_name, config_name, keys, n_labels)
    steps = compare_steps.make_steps(model.config.vocab_size, loss, n_labels, 64, least_id)
    tensors = make_adapter(model, kind)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        model.save_pretrained(directory / "model")
        (directory / "adapter").mkdir()
        save_file(tensors, directory / "adapter/adapter_model.safetensors", metadata=dict(format="pt"))
        transposed = any(isinstance(m, transformers.pytorch_utils.Conv1D) for m in linear_modules(model).values())
        (directory / "adapter/adapter_config.json").write_text(json.dumps(dict(
            peft_type="LORA", use_dora=kind == "dora", r=RANK, lora_alpha=ALPHA, target_modules=list(linear_modules(model)), fan_in_fan_out=transposed,
            modules_to_save=sorted({name.removeprefix(PREFIX).rpartition(".")[0] for name in tensors if ".lora_" not in name}) or None)))
        (directory / "steps.json").write_text(json.dumps(dict(
            loss=loss, n_labels=n_labels, max_length=64, steps=steps, learning_rate=RATE, n_warmup_steps=N_WARMUP, weight_decay=DECAY,
            max_grad_norm=MAX_NORM, options=OPTIONS[kind])))
        subprocess.run([program, str(directory)], check=True)
        ours = load_file(directory / "trained/adapter_model.safetensors")
        losses = json.loads((directory / "losses.json").read_text())["steps"]
        has_peft = peft and kind in ("lora", "dora")
        adapted, trained = by_peft(model, directory / "adapter") if has_peft else by_formula(model, tensors, kind)
    adapted.eval()
    problems = [f"names: {sorted(set(ours) ^ set(trained))[:6]}"] if set(ours) != set(trained) else []

    groups = [dict(params=[p], lr=RATE, weight_decay=DECAY if p.dim() > 1 else 0.0) for p in trained.values()]
    _, _, worst_loss, worst_norm, more = compare_steps.ten_steps(adapted, groups, steps, loss, losses)
    problems += more
    worst = 0.0
    median = float(numpy.median([p.detach().norm().item() for p in trained.values()]))
    for name in sorted(set(ours) & set(trained)):
        theirs = trained[name].detach()
        if loss == "question_answering" and name.endswith("qa_outputs.bias"):
            continue  # its gradient is exactly zero
        error = (ours[name] - theirs).norm().item() / max(theirs.norm().item(), 1e-3 * median)
        worst = max(worst, error)
        if not error <= BAR:
            problems.append(f"{name} {error:.1e}")
    print(f"{'FAIL' if problems else 'PASS'} {class_name}, {kind} beside {'PEFT' if has_peft else 'the formula'}: tensors {worst:.1e}, "
          f"loss {worst_loss:.1e}, norm {worst_norm:.1e}" + ("; " + "; ".join(problems[:6]) if problems else ""), flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    cases = [(*case, "lora") for case in CASES] + [(*small.cases_of(name)[0], kind) for kind in OPTIONS if kind != "lora" for name in SOME]
    results = [run_case(sys.argv[1], *case) for case in cases if len(sys.argv) < 3 or sys.argv[2] in (case[3], case[0])]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

"""The made models (tests/models/made_models.h) beside transformers in fp32: logits, loss and every gradient of one micro-batch, and
ten optimizer steps with the engine (streamed, recomputed, two micro-batches). A T5 whose layers share a bias, of ids and of rows of
numbers, and a Mixtral of four experts with a balance loss in each layer. Bars are those of compare.py and compare_steps.py.

    made.py MADE_DUMP_PROGRAM [DIR]     DIR keeps what the program reads and writes
    made.py - DIR                       compares what it has written there on another machine

Prints a line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, pathlib, subprocess, sys, tempfile

try:
    import numpy, torch, transformers
    from safetensors.torch import load_file, save_file
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from compare import BAR, randomise

VOCAB, WIDTH, LAYERS, HEADS, INNER, BALANCE = 211, 64, 2, 4, 96, 0.02
RATE, N_WARMUP, DECAY, MAX_NORM, N_STEPS = 1e-4, 3, 0.01, 1.0, 10
MODELS = ("encoder_decoder", "encoder_decoder_of_features", "experts")


def build(name):
    if name == "experts":
        model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
            vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=2,
            intermediate_size=INNER, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128, rms_norm_eps=1e-6,
            rope_theta=1e6, sliding_window=None, tie_word_embeddings=False, attn_implementation="eager"))
    else:
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            vocab_size=VOCAB, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=INNER, num_layers=LAYERS, num_heads=HEADS,
            relative_attention_num_buckets=8, relative_attention_max_distance=20, dropout_rate=0, feed_forward_proj="relu",
            layer_norm_epsilon=1e-6, attn_implementation="eager"))
        model.config.scale_decoder_outputs = False  # T5 1.1
    randomise(model, 5)
    return model.eval().float()


def by_file_name(tensors):
    """Mixtral's experts apart, as its files have them."""
    out = {}
    for name, x in tensors.items():
        stem = name.replace("mlp.", "block_sparse_moe.").rsplit(".", 1)[0]
        for e in range(len(x) if ".experts." in name else 0):
            if name.endswith("gate_up_proj"):
                out[f"{stem}.{e}.w1.weight"], out[f"{stem}.{e}.w3.weight"] = x[e].chunk(2)
            else:
                out[f"{stem}.{e}.w2.weight"] = x[e]
        if ".experts." not in name:
            out[name.replace("mlp.gate.weight", "block_sparse_moe.gate.weight")] = x
    return {name: x.detach().clone() for name, x in out.items()}


def parameters(model):
    return {name: p for name, p in model.named_parameters() if "embed_tokens" not in name or "model." in name}


def make_steps(name):
    generator = torch.Generator().manual_seed(4)

    def rows(least, most):
        lengths = torch.randint(least, most, (3,), generator=generator).tolist()
        return [torch.randint(1, VOCAB, (n,), generator=generator).tolist() for n in lengths]

    steps = []
    for _ in range(N_STEPS):
        step = []
        for _ in range(2):
            if name == "experts":
                micro = dict(tokens=rows(2, 40))
                micro["labels"] = [label for row in micro["tokens"] for label in row[1:] + [-100]]
            else:
                micro = dict(source=rows(1, 40), target=rows(1, 30))
                if name.endswith("features"):
                    micro["source"] = [torch.randn(len(row) * WIDTH, generator=generator).tolist() for row in micro["source"]]
                micro["labels"] = torch.randint(0, VOCAB, (sum(map(len, micro["target"])),), generator=generator).tolist()
                micro["labels"][0] = -100
            step.append(micro)
        steps.append(step)
    return steps


def padded(rows, columns=0):
    lengths = [len(row) // max(columns, 1) for row in rows]
    out = torch.zeros(len(rows), max(lengths), columns) if columns else torch.zeros(len(rows), max(lengths), dtype=torch.long)
    mask = torch.zeros(len(rows), max(lengths), dtype=torch.long)
    for i, (row, n) in enumerate(zip(rows, lengths)):
        out[i, :n] = torch.tensor(row).view(n, columns) if columns else torch.tensor(row)
        mask[i, :n] = 1
    return out, mask


def part_of_loss(model, micro, n_labels, n_tokens):
    """A micro-batch's part of the step's loss, and its logits, rows end to end."""
    if "tokens" in micro:
        ids, mask = padded(micro["tokens"])
        out = model(input_ids=ids, attention_mask=mask, output_router_logits=True)
        rows = micro["tokens"]
        balance = sum(load_balancing_loss_func((gate,), 4, 2, mask) for gate in out.router_logits)
        extra = BALANCE * balance * sum(map(len, rows)) / n_tokens
    else:
        columns = WIDTH if isinstance(micro["source"][0][0], float) else 0
        source, mask = padded(micro["source"], columns)
        ids, seen = padded(micro["target"])
        given = dict(inputs_embeds=source) if columns else dict(input_ids=source)
        out = model(**given, attention_mask=mask, decoder_input_ids=ids, decoder_attention_mask=seen, use_cache=False)
        rows, extra = micro["target"], 0.0
    logits = torch.cat([out.logits[i, :len(row)] for i, row in enumerate(rows)])
    labels = torch.tensor(micro["labels"])
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum", ignore_index=-100) / n_labels + extra, logits


def step_loss(model, step):
    n_labels = sum(label >= 0 for micro in step for label in micro["labels"])
    n_tokens = sum(len(row) for micro in step for row in micro.get("tokens", micro.get("target")))
    total = 0.0
    for micro in step:
        part, _ = part_of_loss(model, micro, n_labels, n_tokens)
        part.backward()
        total += part.item()
    return total


def worst_of(theirs, ours, problems, what=""):
    """The largest difference in norm, each by its tensor's norm or the median's thousandth."""
    median = float(numpy.median([x.norm().item() for x in theirs.values()]))
    worst = 0.0
    for name, x in theirs.items():
        error = (ours[what + name] - x).norm().item() / max(x.norm().item(), 1e-3 * median)
        worst = max(worst, error)
        if not error <= BAR:
            problems.append(f"{what}{name} {error:.1e}")
    return worst


def run_case(program, name, directory):
    model, steps = build(name), make_steps(name)
    directory.mkdir(parents=True, exist_ok=True)
    save_file(by_file_name(parameters(model)), directory / "model.safetensors")
    (directory / "made.json").write_text(json.dumps(dict(
        model=name, steps=steps, learning_rate=RATE, n_warmup_steps=N_WARMUP, weight_decay=DECAY, max_grad_norm=MAX_NORM)))
    for part in ("gradients", "steps") if program != "-" else ():
        subprocess.run([program, str(directory), part], check=True)
    ours = load_file(directory / "gradients.safetensors")
    trained = load_file(directory / "trained" / "model.safetensors")
    losses = json.loads((directory / "losses.json").read_text())

    problems, first = [], steps[0][0]
    loss, logits = part_of_loss(model, first, sum(label >= 0 for label in first["labels"]), sum(map(len, first.get("tokens", first.get("target")))))
    loss.backward()
    grads = by_file_name({n: p.grad for n, p in parameters(model).items() if p.grad is not None})
    figures = {"logits": ((ours["logits"][:len(logits)] - logits).norm() / logits.norm()).item(),
               "loss": abs(ours["loss"].item() - loss.item()) / loss.item(),
               "evaluation": abs(losses["evaluation"] - loss.item()) / loss.item()}
    problems += [f"{what} {error:.1e}" for what, error in figures.items() if not error <= BAR]
    if {n[5:] for n in ours if n.startswith("grad.")} != set(grads):
        problems.append(f"names differ: {sorted({n[5:] for n in ours if n.startswith('grad.')} ^ set(grads))}")
    figures["gradient"] = worst_of(grads, ours, problems, "grad.")

    optimizer = torch.optim.AdamW([dict(params=[p], weight_decay=DECAY if p.dim() > 1 else 0.0) for p in parameters(model).values()], lr=RATE)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, N_WARMUP, N_STEPS)
    for step, ours_step in zip(steps, losses["steps"], strict=True):
        optimizer.zero_grad()
        value = step_loss(model, step)
        norm = torch.nn.utils.clip_grad_norm_(list(parameters(model).values()), MAX_NORM).item()
        optimizer.step()
        schedule.step()
        for what, mine, theirs, bar in (("step's loss", ours_step["loss"], value, BAR), ("norm", ours_step["grad_norm"], norm, 10 * BAR)):
            figures[what] = max(figures.get(what, 0.0), abs(mine - theirs) / theirs)
            if not abs(mine - theirs) <= bar * theirs:
                problems.append(what)
    figures["weights"] = worst_of(by_file_name(parameters(model)), trained, problems)
    print(f"{'FAIL' if problems else 'PASS'} {name}: " + ", ".join(f"{k} {v:.1e}" for k, v in figures.items())
          + ("; " + "; ".join(problems[:8]) if problems else ""), flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as made:
        kept = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else made)
        results = [run_case(sys.argv[1], name, kept / name) for name in MODELS]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

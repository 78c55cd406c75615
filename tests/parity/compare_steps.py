"""Ten optimizer steps of Ferry's engine (streamed, recomputed, two micro-batches) against transformers with
torch.optim.AdamW, in fp32, from the same weights on the same rows: losses, gradient norms and every weight. Before them the
loss and logits of an evaluation; after them that transformers loads what was saved, no weight missing or left over.

Then the same with frozen parameters, groups of their own rates and decays, and layer-wise rates.

    compare_steps.py TRAIN_DUMP_PROGRAM

A tensor's difference in norm must be at most 1e-5 x max(its norm, 1e-3 x the median norm); where its gradient is exactly zero
(key biases; in question answering the head's bias and the last norm's), at most the sum of the learning rates x
sqrt(elements). Dropout off; no weight decay on biases and norms.
Prints one line a case, a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, math, pathlib, subprocess, sys, tempfile

try:
    import numpy, torch, transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from compare import last_norm_bias, minilm_directory, parameters, randomise, small_config, span_loss

BAR, N_STEPS, RATE, N_WARMUP, DECAY, MAX_NORM = 1e-5, 10, 1e-4, 3, 0.01, 1.0


def make_steps(vocab, loss, n_labels, max_length, least_id=1):
    generator = torch.Generator().manual_seed(4)
    steps = []
    for _ in range(N_STEPS):
        step = []
        for _ in range(2):
            rows, labels = [], []
            for length in torch.randint(3, max_length + 1, (4,), generator=generator).tolist():
                rows.append(torch.randint(least_id, vocab, (length,), generator=generator).tolist())
                if loss == "masked_lm":
                    chosen = torch.rand(length, generator=generator) < 0.2
                    targets = torch.randint(0, vocab, (length,), generator=generator)
                    labels += torch.where(chosen, targets, torch.full_like(targets, -100)).tolist()
                elif loss == "causal_lm":  # each token's label is the next one
                    labels += rows[-1][1:] + [-100]
                elif loss == "token_classification":  # short rows have no label
                    targets = torch.randint(-1, n_labels, (length,), generator=generator)
                    labels += [-100 if target < 0 or length < 20 else target for target in targets.tolist()]
                elif loss == "question_answering":  # some lie before or behind the row
                    labels += torch.randint(-2, length + 3, (2,), generator=generator).tolist()
            if loss == "cross_entropy":
                labels = torch.randint(0, n_labels, (len(rows),), generator=generator).tolist()
            step.append(dict(rows=rows, labels=labels))
        steps.append(step)
    return steps


def forward(model, rows):
    width = max(map(len, rows))
    ids, mask = (torch.zeros(len(rows), width, dtype=torch.long, device=model.device) for _ in range(2))
    for i, row in enumerate(rows):
        ids[i, :len(row)], mask[i, :len(row)] = torch.tensor(row, device=model.device), 1
    return model(input_ids=ids, attention_mask=mask)


def logits_of(out, rows, loss):
    """As Ferry lays them out: a row a sequence, or a row a token."""
    if loss == "cross_entropy":
        return out.logits
    logits = torch.stack([out.start_logits, out.end_logits], -1) if loss == "question_answering" else out.logits
    return torch.cat([logits[i, :len(row)] for i, row in enumerate(rows)])


def step_loss(model, step, loss):
    """The mean over all label items of the step, gradients added up: micro-batch by micro-batch but for question answering,
    where the starts and the ends of the whole step have a mean each."""
    if loss == "question_answering":
        outs = [forward(model, micro["rows"]) for micro in step]
        starts, ends = ([row for out in outs for row in out[which]] for which in ("start_logits", "end_logits"))
        pad = torch.nn.utils.rnn.pad_sequence
        value = span_loss(pad(starts, batch_first=True), pad(ends, batch_first=True),
                          [len(row) for micro in step for row in micro["rows"]],
                          torch.tensor([label for micro in step for label in micro["labels"]]).view(-1, 2))
        value.backward()
        return value.item()
    items = sum(sum(label >= 0 for label in micro["labels"]) for micro in step)
    total = 0.0
    for micro in step:
        logits = logits_of(forward(model, micro["rows"]), micro["rows"], loss)
        part = torch.nn.functional.cross_entropy(logits, torch.tensor(micro["labels"]), reduction="sum", ignore_index=-100) / items
        part.backward()
        total += part.item()
    return total


def evaluation_problems(model, micro, loss, ours):
    """Loss and logits of rows before any step; a language model's evaluation keeps no logits."""
    problems = []
    with torch.no_grad():
        logits = logits_of(forward(model, micro["rows"]), micro["rows"], loss).flatten()
    if loss not in ("masked_lm", "causal_lm"):
        mine = torch.tensor(ours["logits"])
        if len(mine) != len(logits) or not (mine - logits).norm() <= BAR * logits.norm():
            problems.append("logits of the evaluation")
    value = step_loss(model, [micro], loss)
    model.zero_grad()
    if not abs(ours["loss"] - value) <= BAR * abs(value):
        problems.append("loss of the evaluation")
    return problems


def loading_problems(model, directory):
    _, report = type(model).from_pretrained(directory, output_loading_info=True)
    problems = [f"{kind}: {sorted(map(str, names))}" for kind, names in report.items() if names]
    architectures = json.loads((directory / "config.json").read_text())["architectures"]
    return problems + ([] if architectures == [type(model).__name__] else [f"architectures {architectures}"])


HEADS = dict(cross_entropy="classifier", token_classification="classifier", masked_lm="cls", question_answering="qa_outputs")
GROUP_OPTIONS = dict(freeze="bert.embeddings.*,bert.encoder.layer.0.*", layerwise_lr_decay="0.8", param_groups=
                     "bert.encoder.layer.1.output.*.bias:lr=3e-4,decay=0.1; HEAD.*:factor=5,decay=0")


def parameter_groups(model, options):
    """torch's groups for GROUP_OPTIONS, or the plain two; what is frozen needs no gradient."""
    groups, n_layers = [], model.config.num_hidden_layers
    for name, p in model.named_parameters():
        decay = DECAY if p.dim() > 1 else 0.0
        if not options:
            groups.append(dict(params=[p], lr=RATE, weight_decay=decay))
            continue
        layer = int(name.split(".")[3]) if name.startswith("bert.encoder.layer.") else None
        p.grad = None
        p.requires_grad_(not name.startswith("bert.embeddings.") and layer != 0)
        rate = RATE * 0.8 ** (n_layers - layer) if layer is not None else RATE * 0.8 ** (n_layers + 1) if ".embeddings." in name else RATE
        if ".layer.1.output." in name and name.endswith("bias"):
            rate, decay = 3e-4, 0.1
        if name.startswith(tuple(f"{head}." for head in HEADS.values())):
            rate, decay = 5 * RATE, 0.0
        if p.requires_grad:
            groups.append(dict(params=[p], lr=rate, weight_decay=decay))
    return groups


def ten_steps(model, groups, steps, loss, ours):
    """torch's steps beside ours: the rates, how many were clipped, the worst loss and norm, and what is wrong."""
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    trained = [p for group in groups for p in group["params"]]
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, N_WARMUP, N_STEPS)
    base = transformers.get_linear_schedule_with_warmup(torch.optim.SGD([torch.zeros(1)], lr=RATE), N_WARMUP, N_STEPS)
    rates, n_clipped, worst_loss, worst_norm, problems = [], 0, 0.0, 0.0, []
    for step, ours_step in zip(steps, ours, strict=True):
        optimizer.zero_grad()
        value = step_loss(model, step, loss)
        norm = torch.nn.utils.clip_grad_norm_(trained, MAX_NORM).item()
        rates.append(base.get_last_lr()[0])
        optimizer.step()
        schedule.step()
        base.optimizer.step()
        base.step()
        n_clipped += norm > MAX_NORM
        worst_loss = max(worst_loss, abs(ours_step["loss"] - value) / abs(value))
        worst_norm = max(worst_norm, abs(ours_step["grad_norm"] - norm) / norm)
        if not math.isclose(ours_step["rate"], rates[-1], rel_tol=1e-12, abs_tol=1e-18):
            problems.append(f"rate {ours_step['rate']} and {rates[-1]}")
    if not worst_loss <= BAR or not worst_norm <= 10 * BAR:
        problems.append("loss or norm")
    return rates, n_clipped, worst_loss, worst_norm, problems


def run_case(program, name, model, loss, n_labels, max_length, options={}, least_id=1, zeros={}, keys={}):
    """`zeros`: by name the elements whose gradient is exactly zero, so that rounding alone decides how Adam moves them.
    `keys`: more of steps.json."""
    steps = make_steps(model.config.vocab_size, loss, n_labels, max_length, least_id)
    before = {n: p.detach().clone() for n, p in parameters(model).items()}
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        model.save_pretrained(directory / "model")
        config = directory / "model/config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | dict(architectures=["BertModel"])))
        (directory / "steps.json").write_text(json.dumps(dict(
            loss=loss, n_labels=n_labels, max_length=max_length, steps=steps, learning_rate=RATE, n_warmup_steps=N_WARMUP,
            weight_decay=DECAY, max_grad_norm=MAX_NORM, options=options) | keys))
        subprocess.run([program, str(directory)], check=True)
        ours, losses = load_file(directory / "trained/model.safetensors"), json.loads((directory / "losses.json").read_text())
        problems = loading_problems(model, directory / "trained")
    problems += evaluation_problems(model, steps[0][0], loss, losses["evaluation"])

    named = parameters(model)
    rates, n_clipped, worst_loss, worst_norm, more = ten_steps(model, parameter_groups(model, options), steps, loss, losses["steps"])
    problems += more
    theirs = {n: p.detach() for n, p in named.items()}
    if set(theirs) - set(ours):
        problems.append(f"missing: {sorted(set(theirs) - set(ours))}")
    median = float(numpy.median([p.norm().item() for p in theirs.values()]))
    worst = 0.0
    problems += [f"{n} was not frozen" for n, p in named.items() if not p.requires_grad and not torch.equal(ours[n], before[n])]
    for n in sorted(set(theirs) & set(ours)):
        difference = ours[n] - theirs[n]
        if n in zeros:
            if not difference[zeros[n]].abs().max() <= 2 * sum(rates):
                problems.append(f"{n} moved too far")
            difference[zeros[n]] = 0
        error = difference.norm().item()
        if n.endswith("key.bias") or loss == "question_answering" and n in ("qa_outputs.bias", last_norm_bias(model)):
            if not error <= sum(rates) * math.sqrt(theirs[n].numel()):
                problems.append(f"{n} {error:.1e}")
            continue
        error /= max(theirs[n].norm().item(), 1e-3 * median)
        worst = max(worst, error)
        if not error <= BAR:
            problems.append(f"{n} {error:.1e}")
    print(f"{'FAIL' if problems else 'PASS'} {name}: weights {worst:.1e}, loss {worst_loss:.1e}, norm {worst_norm:.1e}, "
          f"{n_clipped} of {N_STEPS} steps clipped" + ("; " + "; ".join(problems[:8]) if problems else ""), flush=True)
    return not problems


def models_with_many_words():
    """Their table of words has three pieces: tied, and a head's of its own."""
    n_words = 2 * 4096 + 61
    tied = transformers.BertForMaskedLM(small_config(vocab_size=n_words, hidden_size=48, attn_implementation="eager"))
    untied = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=n_words, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
        max_position_embeddings=64, attn_implementation="eager"))
    for name, model, loss in (("masked lm", tied, "masked_lm"), ("llama", untied, "causal_lm")):
        randomise(model, 7)
        yield name, model.eval().float(), loss


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    directory = minilm_directory()
    if directory is not None:
        model = transformers.BertForSequenceClassification.from_pretrained(directory, num_labels=5, attn_implementation="eager")
        results.append(run_case(sys.argv[1], "minilm classification", model.eval().float(), "cross_entropy", 5, 64))
    for name, head, loss, labels in (("classification", transformers.BertForSequenceClassification, "cross_entropy", dict(num_labels=3)),
                                     ("masked lm", transformers.BertForMaskedLM, "masked_lm", {}),
                                     ("token classification", transformers.BertForTokenClassification, "token_classification",
                                      dict(num_labels=9)),
                                     ("question answering", transformers.BertForQuestionAnswering, "question_answering", {})):
        model = head(small_config(attn_implementation="eager", **labels))
        randomise(model, 5)
        results.append(run_case(sys.argv[1], name, model.eval().float(), loss, labels.get("num_labels", 1), 64))
        randomise(model, 6)
        options = {k: v.replace("HEAD", HEADS[loss]) for k, v in GROUP_OPTIONS.items()}
        results.append(run_case(sys.argv[1], f"{name}, frozen and grouped", model, loss, labels.get("num_labels", 1), 64, options))
    results += [run_case(sys.argv[1], f"{name}, words in pieces", model, loss, 1, 40, keys=dict(piece_elements_max=1))
                for name, model, loss in models_with_many_words()]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

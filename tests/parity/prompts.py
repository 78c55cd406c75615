"""Prompts of Ferry's engine (streamed, recomputed, two micro-batches) beside the formulas of OpenPrompt (ManualVerbalizer, SoftVerbalizer,
MixedTemplate) on transformers' models, and virtual tokens beside PEFT's PROMPT_TUNING, or its formula where PEFT is not there: ten steps of torch.optim.AdamW in fp32 from the same weights on the same rows. Logits of an
evaluation, losses, gradient norms and every weight. Bars are those of compare_steps.py.

    prompts.py TRAIN_DUMP_PROGRAM [NAME]

Prints one line a case, a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, pathlib, subprocess, sys, tempfile

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

import compare_steps, families, small
from compare import parameters, randomise
from compare_steps import BAR, DECAY, MAX_NORM, N_STEPS, N_WARMUP, RATE

MAX_LENGTH = 64
WORDS = [[[7], [9, 11, 30]], [[12], [13], [7, 40]], [[21, 22]]]  # of each label: its words' tokens
SOFT = [[5], [], [6, 8], []]  # of each soft token: the tokens whose rows it starts as the mean of
# Row of the table of small models, handler of several tokens, verbalizer, soft tokens.
CASES = [("bert", "first", "manual", False), ("bert", "max", "manual", False), ("roberta", "mean", "manual", False),
         ("distilbert", "mean", "soft", False), ("bert", "first", "manual", True), ("llama", "mean", "manual", False),
         ("gpt2", "max", "manual", True), ("gemma2", "mean", "manual", False), ("opt", "first", "soft", True),
         ("granite", "mean", "manual", False)]


def make_steps(vocab, n_soft, is_decoder):
    generator = torch.Generator().manual_seed(4)
    draw = lambda low, high, n: torch.randint(low, high, (n,), generator=generator).tolist()
    steps = []
    for _ in range(N_STEPS):
        step = []
        for n in (4, 3):
            micro = dict(rows=[], labels=draw(0, len(WORDS), n), asked=[])
            for _ in range(n):
                row = draw(2, vocab, draw(3, MAX_LENGTH, 1)[0])
                for soft in range(n_soft):  # one of them stands twice
                    for _ in range(2 if soft == 1 else 1):
                        row.insert(draw(0, len(row), 1)[0], vocab + soft)
                row = row[:MAX_LENGTH]
                micro["rows"].append(row)
                micro["asked"].append(len(row) - 1 if is_decoder else draw(0, len(row), 1)[0])
            step.append(micro)
        steps.append(step)
    return steps


def pooled(logits, handler):
    """Logits (rows, vocabulary) of the mask as those of the labels, and what OpenPrompt's normalize() takes away."""
    words, labels = [], []
    for of_label in WORDS:
        for tokens in of_label:
            its = logits[:, tokens]
            words.append(its[:, 0] if handler == "first" else its.mean(-1) if handler == "mean" else its.max(-1).values)
        labels.append(slice(len(words) - len(of_label), len(words)))
    log_p = torch.stack(words, -1).log_softmax(-1)
    return torch.stack([log_p[:, of_label].mean(-1) for of_label in labels], -1)


class Prompted(torch.nn.Module):
    """A language model with soft tokens and a verbalizer."""

    def __init__(self, plain, handler, is_soft, soft_tokens):
        super().__init__()
        self.plain, self.handler = plain, handler
        table = plain.get_input_embeddings().weight.detach()
        self.soft = torch.nn.Parameter(soft_tokens) if soft_tokens is not None else None
        head = plain.get_output_embeddings().weight.detach()
        mean = lambda of_label: head[[token for word in of_label for token in word]].mean(0)
        self.labels = torch.nn.Parameter(torch.stack([mean(of_label) for of_label in WORDS])) if is_soft else None
        self.vocab = table.shape[0]

    def forward(self, micro):
        rows = micro["rows"]
        width = max(map(len, rows))
        ids, mask = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(2))
        for i, row in enumerate(rows):
            ids[i, :len(row)], mask[i, :len(row)] = torch.tensor(row), 1
        words = self.plain.get_input_embeddings()(ids.clamp(max=self.vocab - 1))
        given = dict(input_ids=ids)
        if self.soft is not None:
            soft = self.soft[(ids - self.vocab).clamp(min=0)]
            given = dict(inputs_embeds=torch.where((ids >= self.vocab)[..., None], soft, words))
            if self.plain.config.model_type == "roberta":  # transformers counts positions by ids where it has some
                given["position_ids"] = self.plain.config.pad_token_id + 1 + torch.arange(width)[None].expand(len(rows), -1)
        at = (torch.arange(len(rows)), torch.tensor(micro["asked"]))
        seen = []
        decoder = self.plain.get_output_embeddings()
        handle = decoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        logits = self.plain(attention_mask=mask, **given).logits
        handle.remove()
        if self.labels is not None:
            return seen[0][at] @ self.labels.T
        return pooled(logits[at], self.handler)


def step_loss(model, step, _loss):
    items = sum(len(micro["rows"]) for micro in step)
    total = 0.0
    for micro in step:
        part = torch.nn.functional.cross_entropy(model(micro), torch.tensor(micro["labels"]), reduction="sum") / items
        part.backward()
        total += part.item()
    return total


def names_of(model):
    plain = {id(p): name for name, p in parameters(model.plain).items()}
    special = {id(p): name for p, name in ((model.soft, "soft_tokens.weight"), (model.labels, "verbalizer.weight")) if p is not None}
    return {(plain | special)[id(p)]: p for p in model.parameters() if id(p) in plain | special}


def run_case(program, name, handler, verbalizer, has_soft):
    is_decoder = small.class_of(name, "ForMaskedLM") is None
    class_name = small.class_of(name, "ForCausalLM" if is_decoder else "ForMaskedLM")
    plain, _ = families.model_of(class_name, small.config_class(name), small.keys_of(name), len(WORDS))
    vocab = plain.config.vocab_size
    is_soft = verbalizer == "soft"
    steps = make_steps(vocab, len(SOFT) if has_soft else 0, is_decoder)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        plain.save_pretrained(directory / "model")
        file = directory / "model/config.json"
        written = json.loads(file.read_text())
        written["id2label"] = {str(i): f"L{i}" for i in range(len(WORDS))}
        written["label2id"] = {f"L{i}": i for i in range(len(WORDS))}
        written["ferry_prompt"] = dict(template="", verbalizer_type=verbalizer, multi_token_handler=handler,
                                       label_words=[["w"]] * len(WORDS), label_tokens=WORDS) | (dict(soft_tokens=SOFT) if has_soft else {})
        file.write_text(json.dumps(written))
        (directory / "steps.json").write_text(json.dumps(dict(
            loss="prompt", n_labels=len(WORDS), max_length=MAX_LENGTH, steps=steps, learning_rate=RATE, n_warmup_steps=N_WARMUP,
            weight_decay=DECAY, max_grad_norm=MAX_NORM)))
        subprocess.run([program, str(directory)], check=True)
        start = load_file(directory / "started/model.safetensors")
        ours, losses = load_file(directory / "trained/model.safetensors"), json.loads((directory / "losses.json").read_text())
    soft = start["soft_tokens.weight"] if has_soft else None
    problems = []
    if has_soft:
        table = plain.get_input_embeddings().weight.detach()
        for row, tokens in zip(soft, SOFT):
            is_right = (row - table[tokens].mean(0)).abs().max() < 1e-6 if tokens else row.abs().max() <= 0.5 and row.abs().max() > 0.1
            problems += [] if is_right else [f"the start of the soft token of {tokens}"]
    model = Prompted(plain, handler, is_soft, soft)
    with torch.no_grad():
        logits = model(steps[0][0]).flatten()
    told = torch.tensor(losses["evaluation"]["logits"])
    if not (told - logits).norm() <= BAR * logits.norm():
        problems.append(f"logits of the evaluation: {told[:3]} and {logits[:3]}")
    groups = [dict(params=[p], lr=RATE, weight_decay=DECAY if p.dim() > 1 else 0.0) for p in names_of(model).values()]
    before = compare_steps.step_loss
    compare_steps.step_loss = step_loss
    try:
        _, _, worst_loss, worst_norm, more = compare_steps.ten_steps(model, groups, steps, "prompt", losses["steps"])
    finally:
        compare_steps.step_loss = before
    problems += more
    theirs = {key: p.detach() for key, p in names_of(model).items()}
    if set(theirs) - set(ours):
        problems.append(f"missing: {sorted(set(theirs) - set(ours))}")
    median = float(numpy.median([p.norm().item() for p in theirs.values()]))
    worst = 0.0
    for key in sorted(set(theirs) & set(ours)):
        if key.endswith((".key.bias", ".k_lin.bias", ".k_proj.bias")):
            continue  # its gradient is exactly zero
        difference = ours[key] - theirs[key]
        if key.endswith("c_attn.bias"):
            difference.chunk(3)[1].zero_()  # the keys' part of it
        error = difference.norm().item() / max(theirs[key].norm().item(), 1e-3 * median)
        worst = max(worst, error)
        if not error <= BAR:
            problems.append(f"{key} {error:.1e}")
    print(f"{'FAIL' if problems else 'PASS'} {class_name}, {verbalizer} verbalizer, {handler}{', soft tokens' if has_soft else ''}: "
          f"weights {worst:.1e}, loss {worst_loss:.1e}, norm {worst_norm:.1e}" + ("; " + "; ".join(problems[:6]) if problems else ""), flush=True)
    return not problems


N_VIRTUAL = 5
VIRTUAL_CASES = ["llama", "gpt2", "opt"]


class WithVirtualTokens(torch.nn.Module):
    """Rows stand before the embeddings of each text."""

    def __init__(self, plain, rows):
        super().__init__()
        self.plain, self.rows = plain.requires_grad_(False), torch.nn.Parameter(rows)

    def forward(self, input_ids, attention_mask):
        words = self.plain.get_input_embeddings()(input_ids)
        ones = torch.ones(len(input_ids), len(self.rows), dtype=attention_mask.dtype)
        return self.plain(inputs_embeds=torch.cat([self.rows[None].expand(len(words), -1, -1), words], 1),
                          attention_mask=torch.cat([ones, attention_mask], 1))


def virtual_loss(model, step, _loss):
    """Each token of a text is learnt, the first one from the last virtual token."""
    items = sum(len(row) - N_VIRTUAL for micro in step for row in micro["rows"])
    total = 0.0
    for micro in step:
        texts = [row[N_VIRTUAL:] for row in micro["rows"]]
        width = max(map(len, texts))
        ids, mask = (torch.zeros(len(texts), width, dtype=torch.long) for _ in range(2))
        for i, text in enumerate(texts):
            ids[i, :len(text)], mask[i, :len(text)] = torch.tensor(text), 1
        logits = model(input_ids=ids, attention_mask=mask).logits[:, N_VIRTUAL - 1:-1]
        part = torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.where(mask > 0, ids, -100), reduction="sum") / items
        part.backward()
        total += part.item()
    return total


def run_virtual_case(program, name):
    class_name = small.class_of(name, "ForCausalLM")
    plain = getattr(transformers, class_name)(getattr(transformers, small.config_class(name))(**small.keys_of(name)))
    randomise(plain, 8)
    plain = plain.eval().float()
    vocab = plain.config.vocab_size
    rows = 0.3 * torch.randn(N_VIRTUAL, plain.get_input_embeddings().weight.shape[1], generator=torch.Generator().manual_seed(3))
    steps = compare_steps.make_steps(vocab, "causal_lm", 1, MAX_LENGTH - N_VIRTUAL, 2)
    for micro in (micro for step in steps for micro in step):
        micro["rows"] = [[vocab + i for i in range(N_VIRTUAL)] + row for row in micro["rows"]]
        micro["labels"] = [label for row in micro["rows"] for label in [-100] * (N_VIRTUAL - 1) + row[N_VIRTUAL:] + [-100]]
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        plain.save_pretrained(directory / "model")
        (directory / "adapter").mkdir()
        save_file(dict(prompt_embeddings=rows), directory / "adapter/adapter_model.safetensors", metadata=dict(format="pt"))
        (directory / "adapter/adapter_config.json").write_text(json.dumps(dict(
            peft_type="PROMPT_TUNING", task_type="CAUSAL_LM", num_virtual_tokens=N_VIRTUAL, token_dim=rows.shape[1],
            num_layers=plain.config.num_hidden_layers, num_attention_heads=plain.config.num_attention_heads, num_transformer_submodules=1)))
        (directory / "steps.json").write_text(json.dumps(dict(
            loss="causal_lm", n_labels=1, max_length=MAX_LENGTH, steps=steps, learning_rate=RATE, n_warmup_steps=N_WARMUP, weight_decay=DECAY,
            max_grad_norm=MAX_NORM, options=dict(tuning="soft_prompt", num_virtual_tokens=str(N_VIRTUAL)))))
        subprocess.run([program, str(directory)], check=True)
        ours, losses = load_file(directory / "trained/adapter_model.safetensors"), json.loads((directory / "losses.json").read_text())["steps"]
        model = peft.PeftModel.from_pretrained(plain, directory / "adapter") if peft else WithVirtualTokens(plain, rows.clone())
    model.eval()
    if peft:  # it trains no prompt that it has loaded, unless it is told so
        model.prompt_encoder.requires_grad_(True)
    trained = [p for p in model.parameters() if p.requires_grad]
    before = compare_steps.step_loss
    compare_steps.step_loss = virtual_loss
    try:
        groups = [dict(params=trained, lr=RATE, weight_decay=DECAY)]
        _, _, worst_loss, worst_norm, problems = compare_steps.ten_steps(model, groups, steps, "causal_lm", losses)
    finally:
        compare_steps.step_loss = before
    problems += [] if list(ours) == ["prompt_embeddings"] and len(trained) == 1 else [f"tensors {list(ours)}"]
    theirs = trained[0].detach()
    error = (ours["prompt_embeddings"] - theirs).norm().item() / theirs.norm().item()
    problems += [] if error <= BAR and not torch.equal(theirs, rows) else [f"rows {error:.1e}"]
    print(f"{'FAIL' if problems else 'PASS'} {class_name}, virtual tokens beside {'PEFT' if peft else 'the formula'}: rows {error:.1e}, "
          f"loss {worst_loss:.1e}, norm {worst_norm:.1e}" + ("; " + "; ".join(problems[:6]) if problems else ""), flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    results = [run_case(sys.argv[1], *case) for case in CASES if wanted in case[0]]
    results += [run_virtual_case(sys.argv[1], name) for name in VIRTUAL_CASES if wanted in name]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

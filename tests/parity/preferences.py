"""Losses of pairs of answers by Ferry's engine (streamed, recomputed, two micro-batches) beside the formulas of TRL 1.16 (DPO, CPO,
ORPO and reward trainers) on transformers' models: ten steps of torch.optim.AdamW in fp32 from the same weights on the same pairs.
Losses, gradient norms, every weight, and the sums that an evaluation tells. Bars are those of compare_steps.py.

    preferences.py TRAIN_DUMP_PROGRAM [KIND]

Prints one line a case, a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, pathlib, subprocess, sys, tempfile

try:
    import numpy, torch, transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import compare_steps, small
from compare import parameters, randomise
from compare_steps import BAR, DECAY, MAX_NORM, N_STEPS, N_WARMUP, RATE, forward

F = torch.nn.functional
MAX_LENGTH = 64
BETA, GAMMA = 0.3, 0.4
# Kind, label smoothing, weight of the chosen answers' likelihood.
CASES = [("sigmoid", 0, 0), ("sigmoid", 0.1, 0.2), ("hinge", 0, 0), ("ipo", 0, 0), ("robust", 0.1, 0), ("sigmoid_norm", 0, 0),
         ("nca_pair", 0, 0), ("sppo_hard", 0, 0), ("apo_zero", 0, 0), ("apo_down", 0, 0), ("orpo", 0, 1), ("simpo", 0, 0),
         ("simpo", 0.1, 1), ("cpo", 0, 1), ("cpo", 0.1, 1), ("kto", 0, 0), ("reward", 0, 0)]


def pair_losses(kind, beta, smoothing, gamma, c, r, n_c, n_r, ref_c, ref_r):
    """Of each pair: c and r are the sums of log-probabilities of the chosen and the rejected answer."""
    ls, d_c, d_r = F.logsigmoid, c - ref_c, r - ref_r
    margin = d_c - d_r
    mean_c, mean_r = c / n_c, r / n_r
    smoothed = lambda z: -ls(z) * (1 - smoothing) - ls(-z) * smoothing
    if kind == "sigmoid":
        return smoothed(beta * margin)
    if kind == "hinge":
        return torch.relu(1 - beta * margin)
    if kind == "ipo":
        return (d_c / n_c - d_r / n_r - 1 / (2 * beta)) ** 2
    if kind == "robust":
        return (-ls(beta * margin) * (1 - smoothing) + ls(-beta * margin) * smoothing) / (1 - 2 * smoothing)
    if kind == "sigmoid_norm":
        return smoothed(beta * (d_c / n_c - d_r / n_r))
    if kind == "nca_pair":
        return -ls(beta * d_c) - 0.5 * ls(-beta * d_c) - 0.5 * ls(-beta * d_r)
    if kind == "sppo_hard":
        return (d_c - 0.5 / beta) ** 2 + (d_r + 0.5 / beta) ** 2
    if kind == "apo_zero":
        return 1 - torch.sigmoid(beta * d_c) + torch.sigmoid(beta * d_r)
    if kind == "apo_down":
        return torch.sigmoid(beta * d_c) + 1 - torch.sigmoid(beta * margin)
    if kind == "orpo":
        return -beta * ls((mean_c - mean_r) - (torch.log1p(-torch.exp(mean_c)) - torch.log1p(-torch.exp(mean_r))))
    if kind == "simpo":
        return smoothed(beta * (mean_c - mean_r) - gamma)
    if kind == "cpo":
        return smoothed(beta * (c - r))
    raise ValueError(kind)


def make_steps(vocab, kind):
    generator = torch.Generator().manual_seed(4)
    draw = lambda low, high, n: torch.randint(low, high, (n,), generator=generator).tolist()
    steps = []
    for _ in range(N_STEPS):
        step = []
        for n_pairs in (3, 2):
            micro = dict(rows=[], labels=[], first_answers=[], references=[], are_good=[], values=[])
            for _ in range(n_pairs):
                prompt = draw(1, vocab, draw(1, 20, 1)[0])
                for is_chosen in (True, False):
                    row = prompt + draw(1, vocab, draw(1, 40, 1)[0])
                    micro["rows"].append(row)
                    first = 1 if kind == "orpo" and is_chosen else len(prompt)
                    micro["labels"] += [-100] * (first - 1) + row[first:] + [-100]
                    micro["first_answers"].append(len(prompt) - 1)
                    micro["references"].append(-float(len(row) - len(prompt)) * (5.5 + torch.rand(1, generator=generator).item()))
                    micro["are_good"].append(draw(0, 2, 1)[0] if is_chosen else 0)
                    micro["values"].append(torch.rand(1, generator=generator).item())
            step.append(micro)
        steps.append(step)
    return steps


def sums_of(model, micro):
    """By sequence: the answer's log-probabilities and tokens, and the likelihood of what a chosen one teaches."""
    logits = forward(model, micro["rows"]).logits
    at, sums, counts, surprise, n_taught = 0, [], [], [], 0
    for i, row in enumerate(micro["rows"]):
        labels = torch.tensor(micro["labels"][at:at + len(row)])
        at += len(row)
        taken = labels >= 0
        log_p = logits[i, :len(row)].log_softmax(-1).gather(1, labels.clamp(min=0)[:, None])[:, 0]
        is_answer = taken & (torch.arange(len(row)) >= micro["first_answers"][i])
        sums.append((log_p * is_answer).sum())
        counts.append(is_answer.sum())
        if i % 2 == 0:
            surprise.append(-(log_p * taken).sum())
            n_taught += int(taken.sum())
    return torch.stack(sums), torch.stack(counts), torch.stack(surprise).sum(), n_taught


def loss_of(kind, beta, smoothing, sft):
    def step_loss(model, step, _loss):
        n_pairs = sum(len(micro["rows"]) // 2 for micro in step)
        if kind == "reward":
            total = 0.0
            for micro in step:
                rewards = forward(model, micro["rows"]).logits[:, 0]
                margins = torch.tensor(micro["values"])[0::2]
                part = -F.logsigmoid(rewards[0::2] - rewards[1::2] - margins).sum() / n_pairs
                part.backward()
                total += part.item()
            return total
        if kind == "kto":
            total = 0.0
            for micro in step:
                sums, _, _, _ = sums_of(model, micro)
                gained = sums - torch.tensor(micro["references"])
                kl = gained[1::2].mean().clamp(min=0).detach()
                good = torch.tensor(micro["are_good"])[0::2].bool()
                margin = beta * (gained[0::2] - kl)
                losses = torch.where(good, 1.5 * (1 - torch.sigmoid(margin)), 0.75 * (1 - torch.sigmoid(-margin)))
                part = losses.sum() / n_pairs
                part.backward()
                total += part.item()
            return total
        n_taught = sum(sums_of(model, micro)[3] for micro in step) if sft else 1
        total = 0.0
        for micro in step:
            sums, counts, surprise, _ = sums_of(model, micro)
            references = torch.tensor(micro["references"])
            part = pair_losses(kind, beta, smoothing, GAMMA, sums[0::2], sums[1::2], counts[0::2], counts[1::2],
                               references[0::2], references[1::2]).sum() / n_pairs + sft * surprise / n_taught
            part.backward()
            total += part.item()
        return total
    return step_loss


def model_of(kind, n_words=0):
    keys = small.keys_of("llama")
    if n_words:
        keys["vocab_size"] = n_words
    if kind == "reward":
        model = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(**keys, num_labels=1, pad_token_id=0))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**keys))
    randomise(model, 8)
    return model.eval().float()


def evaluated_problems(model, kind, micro, ours):
    if kind == "reward":
        return []
    with torch.no_grad():
        sums, counts, _, _ = sums_of(model, micro)
    told = torch.tensor(ours["logits"]).view(len(sums), -1)
    worst = max(((told[:, 0] - sums) / sums).abs().max().item(), (told[:, 1] - counts).abs().max().item())
    return [] if worst <= BAR else [f"sums of the evaluation {worst:.1e}"]


def run_case(program, kind, smoothing, sft, n_words=0):
    model = model_of(kind, n_words)
    beta = 2.0 if kind == "simpo" else BETA
    steps = make_steps(model.config.vocab_size, kind)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        model.save_pretrained(directory / "model")
        (directory / "steps.json").write_text(json.dumps(dict(
            loss="reward" if kind == "reward" else "preference", n_labels=1, max_length=MAX_LENGTH, steps=steps, learning_rate=RATE,
            n_warmup_steps=N_WARMUP, weight_decay=DECAY, max_grad_norm=MAX_NORM,
            preference=dict(kind=kind, beta=beta, margin=GAMMA, label_smoothing=smoothing, likelihood_weight=sft))
            | (dict(piece_elements_max=1) if n_words else {})))
        subprocess.run([program, str(directory)], check=True)
        ours, losses = load_file(directory / "trained/model.safetensors"), json.loads((directory / "losses.json").read_text())
    problems = evaluated_problems(model, kind, steps[0][0], losses["evaluation"])
    before = compare_steps.step_loss
    compare_steps.step_loss = loss_of(kind, beta, smoothing, sft)
    try:
        _, _, worst_loss, worst_norm, more = compare_steps.ten_steps(
            model, compare_steps.parameter_groups(model, {}), steps, kind, losses["steps"])
    finally:
        compare_steps.step_loss = before
    problems += more
    theirs = {name: p.detach() for name, p in parameters(model).items()}
    if set(theirs) - set(ours):
        problems.append(f"missing: {sorted(set(theirs) - set(ours))}")
    median = float(numpy.median([p.norm().item() for p in theirs.values()]))
    worst = 0.0
    for name in sorted(set(theirs) & set(ours)):
        error = (ours[name] - theirs[name]).norm().item() / max(theirs[name].norm().item(), 1e-3 * median)
        worst = max(worst, error)
        if not error <= BAR:
            problems.append(f"{name} {error:.1e}")
    name = f"{kind}, smoothing {smoothing}, likelihood {sft}" + (", words in pieces" if n_words else "")
    print(f"{'FAIL' if problems else 'PASS'} {name}: weights {worst:.1e}, loss {worst_loss:.1e}, norm {worst_norm:.1e}"
          + ("; " + "; ".join(problems[:6]) if problems else ""), flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    results = [run_case(sys.argv[1], *case) for case in CASES if wanted in case[0]]
    if not wanted:
        results.append(run_case(sys.argv[1], "orpo", 0, 1, n_words=2 * 4096 + 61))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

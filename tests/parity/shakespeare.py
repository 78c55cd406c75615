#!/usr/bin/env python3
"""A text learned by Ferry and by transformers with equal budgets, and answers before it: the loss on the held-out end of the text.

    shakespeare.py small   FERRY                                      a quick look: seconds, a text of this repository
    shakespeare.py scratch FERRY TEXT [--seeds 1,2] [--steps N]     a GPT-2 of 6 layers, 384 wide, over characters, from scratch
    shakespeare.py tune    FERRY TEXT MODEL_DIR [--steps N]           fine-tuning of a decoder, such as SmolLM2-135M-Instruct
    shakespeare.py answers FERRY MODEL_DIR                            greedy answers, id for id

Both sides take the same samples in the same order, with AdamW, decay 0.1 on matrices, clipping at 1, the cosine schedule after a
warm-up of a tenth, no dropout; fp32 on the CPU. `scratch` compares twice: transformers goes on from the very weights that Ferry
drew, and each side draws its own, which is averaged over the seeds. Exits 1 where a bar is missed, 77 when a package is missing.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

os.environ.setdefault("GOMP_SPINCOUNT", "300")  # as Ferry sets it: threads that wait leave the cores to other programs

try:
    import tokenizers, torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BAR = 0.02  # of the loss on held-out text
WARMUP, DECAY, CLIP = 0.1, 0.1, 1.0
HELD_OUT = 0.1
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


# ---- the order of Ferry's samples (src/data/sampler.cpp), so that chance is the same on both sides

def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def order(n, seed):
    """The samples of the first epoch."""
    left_size = 1 if n < 3 else max(int(n ** 0.5), 2)
    right_size = (n + left_size - 1) // left_size
    key = mix(mix((seed + GOLDEN) & MASK) ^ mix(GOLDEN))  # of the seed and epoch 0

    def below(size, round_, index):
        return (mix(((key + round_) & MASK) ^ mix((index + 1) * GOLDEN & MASK)) * size) >> 64

    def at(value):
        while True:
            left, right = divmod(value, right_size)
            for round_ in range(0, 12, 2):
                left = (left + below(left_size, round_, right)) % left_size
                right = (right + below(right_size, round_ + 1, left)) % right_size
            value = left * right_size + right
            if value < n:
                return value

    return [at(position) for position in range(n)]


# ---- texts

def write_parts(text, directory, held_out_chars=None):
    """train.txt and dev.txt: the last part of the text, or its start, is held out."""
    cut = int(len(text) * (1 - HELD_OUT))
    (directory / "train.txt").write_text(text[:cut])
    (directory / "dev.txt").write_text(text[cut:][:held_out_chars])


def write_characters(text, directory):
    """A tokenizer that has a token for each character of the text."""
    letters = sorted(set(text))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({c: i for i, c in enumerate(letters)}, []))
    tokenizer.decoder = tokenizers.decoders.Fuse()
    tokenizer.save(str(directory / "tokenizer.json"))
    return len(letters)


def windows(tokenizer, file, length):
    """A document in windows, the end of text behind it, as Ferry cuts it."""
    ids = tokenizer(file.read_text(), verbose=False).input_ids
    end = tokenizer.eos_token_id
    if end is not None:
        ids = (ids[:-1] if ids[-1] == end else ids) + [end]
    rows = [ids[i:i + length] for i in range(0, len(ids), length)]
    return rows[:-1] if len(rows) > 1 and len(rows[-1]) < 2 else rows


# ---- both sides

def of_ferry(ferry, model, budget, seed, run):
    """The run's losses by step, and the held-out loss of its end."""
    command = [ferry, "train", *model, "--task", "causal-lm", "--dataset", budget.data / "train.txt", "--eval-dataset",
               budget.data / "dev.txt", "--max-length", budget.length, "--train-batch-size", budget.batch, "--max-steps", budget.steps,
               "--learning-rate", budget.rate, "--lr-scheduler-type", "cosine", "--warmup-steps", budget.warmup, "--weight-decay", DECAY,
               "--max-grad-norm", CLIP, "--hidden-dropout", 0, "--attention-dropout", 0, "--seed", seed, "--data-seed", budget.data_seed,
               "--eval-strategy", "no", "--save-strategy", "no", "--device", "cpu", "--dtype", "fp32", "--output-dir", run]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ferry ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    steps = [line for line in lines if "loss" in line]
    return steps, next(line["eval_loss"] for line in reversed(lines) if "eval_loss" in line)


def loss_of(model, rows):
    """The mean over the tokens of all rows that something follows."""
    ids = torch.full((len(rows), max(map(len, rows))), 0)
    labels = torch.full_like(ids, -100)
    for i, row in enumerate(rows):
        ids[i, :len(row)] = labels[i, :len(row)] = torch.tensor(row)
    return model(input_ids=ids, attention_mask=(labels != -100).long(), labels=labels).loss, int((labels[:, 1:] != -100).sum())


def held_out_loss(model, rows, batch):
    """In evaluation mode."""
    model.eval()
    total = n_all = 0
    with torch.inference_mode():
        for i in range(0, len(rows), batch):
            loss, n = loss_of(model, rows[i:i + batch])
            total, n_all = total + loss.item() * n, n_all + n
    return total / n_all


def of_transformers(model, tokenizer, budget):
    """The losses by step, and the held-out loss of the end."""
    train = windows(tokenizer, budget.data / "train.txt", budget.length)
    dev = windows(tokenizer, budget.data / "dev.txt", budget.length)
    taken = order(len(train), budget.data_seed)
    assert budget.steps * budget.batch <= len(train), f"{len(train)} windows are fewer than {budget.steps} steps of {budget.batch}"
    groups = [{"params": [p for p in model.parameters() if (p.dim() >= 2) == decays], "weight_decay": DECAY if decays else 0.0}
              for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=budget.rate)
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, budget.warmup, budget.steps)
    model.train()
    steps = []
    for step in range(budget.steps):
        loss, _ = loss_of(model, [train[i] for i in taken[step * budget.batch:(step + 1) * budget.batch]])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        steps.append({"loss": loss.item(), "learning_rate": schedule.get_last_lr()[0]})
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    return steps, held_out_loss(model, dev, budget.batch)


class Budget:
    def __init__(self, data, length, batch, steps, rate, data_seed=11):
        self.data, self.length, self.batch, self.steps, self.rate, self.data_seed = data, length, batch, steps, rate, data_seed
        self.warmup = max(1, round(WARMUP * steps))

    def __str__(self):
        return f"{self.steps} steps of {self.batch} x {self.length} tokens, rate {self.rate:g}, fp32, no dropout"


def timed(what, work):
    start = time.monotonic()
    result = work()
    print(f"  {what}: held-out loss {result[1]:.4f} ({time.monotonic() - start:.0f} s)", flush=True)
    return result


def report(what, ours, theirs, bar):
    met = abs(ours - theirs) <= bar
    print(f"{what}: Ferry {ours:.4f}, transformers {theirs:.4f}, difference {ours - theirs:+.4f}: {'met' if met else 'MISSED'} ({bar:g})",
          flush=True)
    return met


def compare_steps(ours, theirs):
    """True where the schedules are one; says how far the losses of single steps are apart."""
    rates = max(abs(a["learning_rate"] - b["learning_rate"]) for a, b in zip(ours, theirs, strict=True))
    losses = max(abs(a["loss"] - b["loss"]) for a, b in zip(ours, theirs, strict=True))
    print(f"  losses of single steps are at most {losses:.1e} apart, rates {rates:.0e}")
    return rates < 1e-9


# ---- the comparisons

def from_scratch(ferry, root, text, config, length, batch, steps, rate, seeds, bar):
    """True where both bars are met."""
    write_parts(text, root, held_out_chars=50_000)
    config.vocab_size = write_characters(text, root)
    config.save_pretrained(root)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(root / "tokenizer.json"))
    budget = Budget(root, length, batch, steps, rate)
    n_params = sum(p.numel() for p in transformers.GPT2LMHeadModel(config).parameters())
    print(f"GPT-2 of {config.n_layer} layers, {config.n_embd} wide, {n_params / 1e6:.1f} M parameters, {config.vocab_size} characters: {budget}")
    model = ["--from-config", root]
    ours = {seed: timed(f"Ferry, its own draw, seed {seed}", lambda: of_ferry(ferry, model, budget, seed, root / f"ferry{seed}"))
            for seed in seeds}
    # A step at a rate of zero leaves what was drawn.
    nothing = Budget(root, length, batch, 1, 0)
    of_ferry(ferry, model, nothing, seeds[0], root / "drawn")
    drawn = transformers.GPT2LMHeadModel.from_pretrained(root / "drawn/final", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    same = timed(f"transformers, Ferry's draw of seed {seeds[0]}", lambda: of_transformers(drawn, tokenizer, budget))
    met = [report("the same initial weights", ours[seeds[0]][1], same[1], bar), compare_steps(ours[seeds[0]][0], same[0])]
    theirs = {}
    for seed in seeds:
        torch.manual_seed(seed)
        model = transformers.GPT2LMHeadModel(config)
        theirs[seed] = timed(f"transformers, its own draw, seed {seed}", lambda: of_transformers(model, tokenizer, budget))
    means = [statistics.mean(result[1] for result in side.values()) for side in (ours, theirs)]
    if len(seeds) > 1:
        spread = statistics.mean(statistics.stdev(result[1] for result in side.values()) for side in (ours, theirs))
        print(f"  a draw moves the loss by {spread:.4f} (standard deviation)")
    return all([*met, report(f"draws of their own, mean of {len(seeds)}", *means, max(bar, BAR))])


def gpt2(width, n_layer, n_head, context):
    return transformers.GPT2Config(n_embd=width, n_layer=n_layer, n_head=n_head, n_positions=context, bos_token_id=None, eos_token_id=None,
                                   resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def small(args, root):
    text = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text()
    # A draw moves the loss by 0.01, so the mean of one is no measure.
    return from_scratch(args.ferry, root, text, gpt2(32, 2, 2, 32), length=32, batch=8, steps=20, rate=3e-3, seeds=range(1, 7), bar=1e-4)


def scratch(args, root):
    return from_scratch(args.ferry, root, args.text.read_text(), gpt2(384, 6, 6, 256), length=256, batch=args.batch, steps=args.steps or 150, rate=1e-3,
                        seeds=[int(seed) for seed in args.seeds.split(",")], bar=BAR)


def tune(args, root):
    write_parts(args.text.read_text(), root, held_out_chars=20_000)
    budget = Budget(root, 64, args.batch, args.steps or 24, 2e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    n_params = sum(p.numel() for p in model.parameters())
    print(f"{args.model.name}, {n_params / 1e6:.1f} M parameters: {budget}")
    before = held_out_loss(model, windows(tokenizer, root / "dev.txt", budget.length), budget.batch)
    evaluation = subprocess.run([args.ferry, "eval", "--model", args.model, "--dataset", root / "dev.txt", "--max-length", str(budget.length),
                                 "--device", "cpu", "--json"], capture_output=True, text=True, check=True)
    met = [report("before", json.loads(evaluation.stdout)["eval_loss"], before, 1e-4)]
    theirs = timed("transformers", lambda: of_transformers(model, tokenizer, budget))
    del model
    ours = timed("Ferry", lambda: of_ferry(args.ferry, ["--model", args.model], budget, 1, root / "ferry"))
    met += [report("after", ours[1], theirs[1], BAR), compare_steps(ours[0], theirs[0])]
    return all(met)


QUESTIONS = ["What is the capital of France?", "Who wrote Romeo and Juliet?", "Name three colours.", "Explain in one sentence why the sky is blue.",
             "Write a short poem about the sea.", "What is 12 + 30?"]
STARTS = ["First Citizen:\nBefore we proceed any further, hear me", "O Romeo, Romeo! wherefore art", "The theory of relativity says that",
          "def fibonacci(n):\n"]


def answers(args, root):
    """Greedy continuations of texts, and answers to questions in the model's chat form."""
    n_new = 40
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    prompts = STARTS + [tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
                        for question in QUESTIONS]
    (root / "prompts.jsonl").write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    done = subprocess.run([args.ferry, "generate", "--model", args.model, "--dataset", root / "prompts.jsonl", "--max-new-tokens", str(n_new),
                           "--device", "cpu", "--dtype", "fp32", "--json"], capture_output=True, text=True, check=True)
    met = []
    for prompt, line in zip(prompts, done.stdout.splitlines(), strict=True):
        ids = tokenizer(prompt, return_tensors="pt")
        with torch.inference_mode():
            theirs = model.generate(**ids, max_new_tokens=n_new, do_sample=False)[0, ids.input_ids.shape[1]:].tolist()
        row = json.loads(line)
        ours = row["ids"]
        end = tokenizer.eos_token_id
        met.append([i for i in ours if i != end] == [i for i in theirs if i != end] and row["n_prompt_tokens"] == ids.input_ids.shape[1])
        print(f"{'equal' if met[-1] else 'DIFFERS'}, {len(theirs)} tokens: {prompt.splitlines()[-1 if prompt in STARTS else -2][:50]!r} -> "
              f"{tokenizer.decode(theirs)[:70]!r}", flush=True)
        if not met[-1]:
            print(f"  Ferry {ours}\n  transformers {theirs}")
    print(f"{met.count(True)} of {len(met)} answers equal, id for id")
    return all(met)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["small", "scratch", "tune", "answers"])
    parser.add_argument("ferry", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="TEXT | MODEL_DIR")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int, default=4, help="samples a step, of 256 tokens from scratch, 64 for fine-tuning (default 4)")
    args = parser.parse_args()
    wanted = {"small": [], "scratch": ["text"], "tune": ["text", "model"], "answers": ["model"]}[args.what]
    if len(args.paths) != len(wanted):
        parser.error(f"{args.what} takes {' and '.join(wanted) or 'no paths'}")
    for name, path in zip(wanted, args.paths):
        setattr(args, name, path.resolve())
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as root:
        met = globals()[args.what](args, pathlib.Path(root))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

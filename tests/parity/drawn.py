"""Models that Ferry draws from scratch beside those that transformers draws of the same config.json: every parameter has the same
constant, the same rows of zeros, or the same normal distribution (mean, spread and fourth moment within what chance allows), and
transformers loads what Ferry writes.

    drawn.py FERRY [NAME]

By itself one model of each way to draw; FERRY_LONG=1 or a name takes all families. Prints a line a case and a last line
"N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import math, os, pathlib, subprocess, sys, tempfile

try:
    import torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import families
import small

TASKS = dict(ForSequenceClassification="classification", ForMaskedLM="mlm", ForCausalLM="causal-lm", LMHeadModel="causal-lm")
QUICK = ("RobertaForMaskedLM", "GPT2LMHeadModel", "Gemma3ForCausalLM", "LlamaForSequenceClassification")
BERT = ("BertForSequenceClassification", "BertConfig", small.keys_of("bert"))
N_LABELS = 3
CHANCE = 5.5  # standard deviations: of 10,000 figures none is so far away


def cases(arguments):
    """One case of each class with a task."""
    seen = {}
    for case in [BERT, ("BertForMaskedLM", *BERT[1:]), *families.CASES]:
        if case[0].endswith(tuple(TASKS)):
            seen.setdefault(case[0], case)
    if arguments:
        return [case for name, case in seen.items() if arguments[0] in name]
    return [case for name, case in seen.items() if os.environ.get("FERRY_LONG") == "1" or name in QUICK]


def write_data(root):
    """A tokenizer of 500 words, texts, and texts with labels."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(5, 500)]
    (root / "tokenizer").mkdir()
    (root / "tokenizer/vocab.txt").write_text("\n".join(words) + "\n")
    (root / "tokenizer/tokenizer_config.json").write_text("{}")
    (root / "texts.txt").write_text("".join(f"w{10 + i} w{20 + i}\n" for i in range(30)))
    (root / "labelled.tsv").write_text("text\tlabel\n" + "".join(f"w{10 + i}\tlabel{i % N_LABELS}\n" for i in range(30)))


def drawn_by_ferry(ferry, root, task, config):
    """The model after a step at a rate of zero, as transformers loads it."""
    run = root / f"run{len(list(root.iterdir()))}"
    config.save_pretrained(run / "config")
    data = root / ("labelled.tsv" if task == "classification" else "texts.txt")
    command = [ferry, "train", "--from-config", run / "config", "--tokenizer", root / "tokenizer", "--task", task, "--dataset", data,
               "--max-steps", "1", "--learning-rate", "0", "--device", "cpu", "--save-strategy", "no", "--output-dir", run / "out"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return run / "out/final"


def chances(ours, theirs):
    """How far each figure of ours is away, in standard deviations of the figure."""
    n = ours.numel()
    spread = theirs.std()
    fourth = ((ours / ours.std()) ** 4).mean()
    return dict(mean=(ours.mean() / (spread / math.sqrt(n))).abs().item(),
                spread=((ours.std() / spread - 1) * math.sqrt(n)).abs().item(),
                fourth=((fourth - 3) / math.sqrt(24 / n)).abs().item() if n > 500 else 0.0)


def faults_of(name, ours, theirs):
    if theirs.unique().numel() == 1:
        return [] if torch.equal(ours, theirs) else [f"{name}: is not {theirs.flatten()[0].item():g} throughout"]
    rows = theirs.any(dim=-1)
    if not torch.equal(rows, ours.any(dim=-1)):
        return [f"{name}: rows of zeros are {(~ours.any(dim=-1)).nonzero().flatten().tolist()[:4]}, "
                f"expected {(~rows).nonzero().flatten().tolist()[:4]}"]
    return [f"{name}: {figure} is {away:.1f} standard deviations away"
            for figure, away in chances(ours[rows].double(), theirs[rows].double()).items() if away > CHANCE]


def repeated(parameters):
    """Names of parameters whose draws follow those of another."""
    drawn = [(name, p.flatten()[:2000].double()) for name, p in parameters.items() if p.unique().numel() > 2 and p.numel() > 500]
    pairs = [(a, b, torch.corrcoef(torch.stack([x[:min(len(x), len(y))], y[:min(len(x), len(y))]]))[0, 1] * math.sqrt(min(len(x), len(y))))
             for i, (a, x) in enumerate(drawn) for b, y in drawn[:i]]
    return [f"{a} follows {b}" for a, b, away in pairs if away.abs() > CHANCE]


def run_case(ferry, root, class_name, config_name, keys):
    task = next(task for suffix, task in TASKS.items() if class_name.endswith(suffix))
    config = getattr(transformers, config_name)(**keys, **(dict(num_labels=N_LABELS) if task == "classification" else {}))
    directory = drawn_by_ferry(ferry, root, task, config)
    torch.manual_seed(5)
    # Ferry writes the special tokens of the tokenizer: the row of padding is that of the file.
    written = getattr(transformers, config_name).from_pretrained(directory)
    theirs = dict(getattr(transformers, class_name)(written).named_parameters())
    model, report = getattr(transformers, class_name).from_pretrained(directory, output_loading_info=True)
    ours = dict(model.named_parameters())
    faults = [f"{kind}: {sorted(map(str, names))}" for kind, names in report.items() if names]
    faults += [f"other parameters: {sorted(ours.keys() ^ theirs.keys())}"] if ours.keys() != theirs.keys() else []
    for name in ours.keys() & theirs.keys():
        faults += faults_of(name, ours[name].detach(), theirs[name].detach())
    faults += repeated({name: p.detach() for name, p in ours.items()})
    print(f"{class_name}: {len(ours)} parameters, {'like transformers draws them' if not faults else 'FAILED'}", flush=True)
    for fault in faults[:8]:
        print(f"  {fault}")
    return not faults


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    with tempfile.TemporaryDirectory() as root:
        write_data(pathlib.Path(root))
        for case in cases(sys.argv[2:]):
            results.append(run_case(sys.argv[1], pathlib.Path(root), *case))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

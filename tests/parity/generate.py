"""`ferry generate` beside transformers' generate on small random models: greedy ids are equal, with a cache and without, of one
prompt and of prompts of many lengths at once, up to the end-of-text token.

    generate.py FERRY [NAME]

Prints a line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, os, pathlib, random, subprocess, sys, tempfile

try:
    import tokenizers, torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import small
from compare import randomise

N_WORDS, CONTEXT, N_NEW = small.SIZES["vocab_size"], small.SIZES["max_position_embeddings"], 24
CASES = [(small.class_of(name, "ForCausalLM"), small.config_class(name), small.keys_of(name)) for name in small.TABLE
         if small.class_of(name, "ForCausalLM")]
KIN = ("qwen2", "gemma", "gemma3_text", "phi3", "gptj")  # they generate as others of these do: with FERRY_LONG=1 or a name only
LENGTHS = [40, 1, 9, 111, 64]


def write_tokenizer(directory):
    """Words w0, w1, ...: text and ids are one to one."""
    words = tokenizers.models.WordPiece({f"w{i}": i for i in range(N_WORDS)}, unk_token="w0")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))


def expected_ids(model, prompt, end):
    tokens = torch.tensor([prompt])
    out = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=N_NEW, do_sample=False, eos_token_id=end,
                         pad_token_id=0)
    return out[0, len(prompt):].tolist()


def ferry_rows(ferry, model, prompts, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as data:
        for ids in prompts:
            data.write(json.dumps(dict(prompt=" ".join(f"w{i}" for i in ids))) + "\n")
        data.flush()
        command = [ferry, "generate", "--model", str(model), "--dataset", data.name, "--json", "--max-new-tokens", str(N_NEW),
                   "--device", "cpu", *options]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return [json.loads(line) for line in run.stdout.splitlines()]


def run_case(ferry, root, class_name, config_name, keys):
    config = getattr(transformers, config_name)(**(keys | dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)))
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config)
    randomise(model, 7)
    model = model.eval().float()
    rng = random.Random(3)
    prompts = [[rng.randrange(3, N_WORDS) for _ in range(n)] for n in LENGTHS]
    # The end of text is a token that some of the texts have.
    end = expected_ids(model, prompts[0], N_WORDS + 1)[N_NEW // 2]
    model.config.eos_token_id = model.generation_config.eos_token_id = end
    directory = pathlib.Path(tempfile.mkdtemp(dir=root))
    model.save_pretrained(directory)
    write_tokenizer(directory)
    expected = [expected_ids(model, prompt, end) for prompt in prompts]
    faults = []
    for name, options in (("cache", []), ("no cache", ["--no-kv-cache"]), ("two at once", ["--per-device-train-batch-size", "2"]),
                          ("paged", ["--device", "simulated", "--placement", "host"])):
        rows = ferry_rows(ferry, directory, prompts, *options)
        for i, (row, ids) in enumerate(zip(rows, expected, strict=True)):
            wanted = "eos" if ids[-1] == end else "length"
            if row["ids"] != ids or row["ended"] != wanted:
                faults.append(f"{name}, prompt {i} ({LENGTHS[i]} tokens): {row['ids']} ({row['ended']}), expected {ids} ({wanted})")
    print(f"{'ok' if not faults else 'FAILED'}: {class_name}, {sum(map(len, expected))} tokens", *faults, sep="\n    ", flush=True)
    return not faults


def refusal(ferry, model, *arguments):
    run = subprocess.run([ferry, "generate", "--model", str(model), "--device", "cpu", *arguments], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True)
    return run.returncode, run.stderr


def run_refusals(ferry, root):
    """What cannot be gone on with is named, with the exit code of data or of usage."""
    decoder, encoder = root / "refusing", root / "encoder"
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**small.keys_of("llama"))).save_pretrained(decoder)
    transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=N_WORDS, hidden_size=48, num_hidden_layers=1, num_attention_heads=3,
                                                         intermediate_size=80)).save_pretrained(encoder)
    for directory in (decoder, encoder):
        write_tokenizer(directory)
    faults = []
    for code, words, model, arguments in (
            (4, f"has {CONTEXT + 1} tokens, and the context is {CONTEXT}", decoder, ["w5 " * (CONTEXT + 1)]),
            (4, "has 41 tokens, and the context is 40", decoder, ["w5 " * 41, "--max-length", "40"]),
            (4, "a prompt is empty", decoder, [""]),
            (4, "a prompt is empty", decoder, []),
            (4, "has no tokens", decoder, [" "]),
            (4, "is no language model that generates", encoder, ["w5"]),
            (2, "temperature 0 takes the likeliest token", decoder, ["w5", "--top-k", "3", "--temperature", "0"])):
        got, said = refusal(ferry, model, *arguments)
        if got != code or words not in said:
            faults.append(f"{arguments}: exit {got} and '{said.strip()}', expected {code} and '{words}'")
    if refusal(ferry, decoder, "w5 " * CONTEXT)[0]:
        faults.append("a prompt as long as the context is refused")
    print(f"{'ok' if not faults else 'FAILED'}: refusals", *faults, sep="\n    ", flush=True)
    return not faults


def run_drawing(ferry, root):
    """The same seed draws the same tokens, whatever they share a batch with."""
    model, prompts = root / "refusing", [[5, 6, 7], [8], [9, 10]]
    def ids(*options, of=prompts):
        return [row["ids"] for row in ferry_rows(ferry, model, of, "--temperature", "1", *options)]
    drawn = ids("--seed", "3")
    checks = {"repeats": drawn == ids("--seed", "3"), "one at a time": drawn == ids("--seed", "3", "--per-device-train-batch-size", "1"),
              "without a cache": drawn == ids("--seed", "3", "--no-kv-cache"), "another seed": drawn != ids("--seed", "4"),
              "the first alone": drawn[:1] == ids("--seed", "3", of=prompts[:1]),
              "top_k 1 is greedy": ids("--top-k", "1") == [row["ids"] for row in ferry_rows(ferry, model, prompts)]}
    failed = [name for name, is_right in checks.items() if not is_right]
    print(f"{'ok' if not failed else 'FAILED'}: drawing", *failed, sep="\n    ", flush=True)
    return not failed


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    with tempfile.TemporaryDirectory() as root:
        kin = () if len(sys.argv) > 2 or os.environ.get("FERRY_LONG") == "1" else {small.class_of(name, "ForCausalLM") for name in KIN}
        for case in CASES:
            if case[0] not in kin and (len(sys.argv) < 3 or sys.argv[2] in case[0]):
                results.append(run_case(sys.argv[1], pathlib.Path(root), *case))
        if len(sys.argv) < 3:
            results += [run_refusals(sys.argv[1], pathlib.Path(root)), run_drawing(sys.argv[1], pathlib.Path(root))]
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

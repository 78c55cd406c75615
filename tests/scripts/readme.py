"""README.md's commands, run as they stand: with tiny models in place of the real ones, and two steps a training.

    readme.py FERRY

Of scripts that install or build, and of programs of others, the flags alone are looked at. Prints a line a command and a last line
"N passed, N failed"; exits 1 when one failed."""
import json, os, pathlib, re, shlex, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FERRY = 'build/src/cli/ferry'
PROGRAMS = {'hf'}  # of others
WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '.', 'a', 'the', 'it', 'was', 'shares', 'fell', 'match', 'ended', 'two', 'all', 'on',
         'monday', 'question', 'answer', 'paris', 'france', 'what', 'is', 'of', 'capital', ':', '?']
TABLE = 'text\tlabel\n' + 'Shares fell on Monday\tbusiness\nThe match ended two all\tsport\n' * 8
BERT = {'model_type': 'bert', 'architectures': ['BertForMaskedLM'], 'vocab_size': len(WORDS), 'hidden_size': 16, 'num_hidden_layers': 1,
        'num_attention_heads': 2, 'intermediate_size': 16, 'max_position_embeddings': 512, 'pad_token_id': 0}
LLAMA = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'vocab_size': len(WORDS), 'hidden_size': 16, 'num_hidden_layers': 1,
         'num_attention_heads': 2, 'num_key_value_heads': 1, 'intermediate_size': 16, 'max_position_embeddings': 256,
         'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'bos_token_id': 2, 'eos_token_id': 3, 'tie_word_embeddings': True}


def blocks(page):
    """The indented blocks, each a list of lines."""
    block = []
    for line in page.splitlines() + ['']:
        if line.startswith('    '):
            block.append(line[4:])
        elif block:
            yield block
            block = []


def is_command(line):
    return line.split()[0].startswith(('build/', 'scripts/')) or line.split()[0] in PROGRAMS


def write_model(place, ferry, config, task, environment):
    """A directory with weights: a shape of which one step was trained."""
    shape = place.parent / (place.name + '-shape')
    shape.mkdir(parents=True)
    (shape / 'config.json').write_text(json.dumps(config))
    (shape / 'vocab.txt').write_text('\n'.join(WORDS) + '\n')
    (shape / 'tokenizer_config.json').write_text(json.dumps({'tokenizer_class': 'BertTokenizer', 'eos_token': '[SEP]', 'bos_token': '[CLS]'}))
    (shape / 'texts.jsonl').write_text(json.dumps({'text': 'The match ended two all on Monday.'}) + '\n')
    run = place.parent / (place.name + '-run')
    done = subprocess.run([ferry, 'train', '--from-config', shape, '--task', task, '--dataset', shape / 'texts.jsonl', '--max-length', '16',
                           '--max-steps', '1', '--output-dir', run], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f'{place.name}: {done.stderr}')
    (run / 'final').rename(place)


def write_files(root, ferry, environment):
    (root / 'models').mkdir()
    (root / '.cache').mkdir()
    (root / 'scripts').symlink_to(ROOT / 'scripts')
    (root / 'build/src/cli').mkdir(parents=True)
    (root / FERRY).symlink_to(ferry)
    write_model(root / 'DIR', ferry, BERT, 'mlm', environment)
    write_model(root / '.cache/SmolLM2-135M-Instruct', ferry, LLAMA, 'causal-lm', environment)
    (root / 'models/all-MiniLM-L6-v2').symlink_to(root / 'DIR')
    for name in ('YOUR.tsv', 'train.tsv', 'dev.tsv'):
        (root / name).write_text(TABLE)
    (root / 'book.txt').write_text('It was the match. The match ended two all on Monday. ' * 40)
    (root / '.cache/SmolLM2-135M-Instruct/chat_template.jinja').write_text('{% for m in messages %}{{ m.role + m.content + eos_token }}{% endfor %}')
    turns = [{'role': 'user', 'content': 'Who won?'}, {'role': 'assistant', 'content': 'The match ended two all.'}]
    (root / 'chats.jsonl').write_text((json.dumps({'messages': turns}) + '\n') * 8)
    pair = {'prompt': 'Who won? ', 'chosen': 'The match ended two all.', 'rejected': 'The match.'}
    (root / 'pairs.jsonl').write_text((json.dumps(pair) + '\n') * 8)
    row = next(line for block in blocks((ROOT / 'README.md').read_text()) for line in block if line.startswith('{"prompt"'))
    (root / 'train.jsonl').write_text((row + '\n') * 8)  # README's own


def flags_of(script):
    """Long flags that the text of a script names."""
    return set(re.findall(r'--[a-z][a-z-]+', (ROOT / script).read_text()))


def check_flags(words):
    """A command that is not run: its script is there and knows its flags."""
    if words[0] in PROGRAMS:
        return ''
    if not os.access(ROOT / words[0], os.X_OK):
        return f'{words[0]} is no program of this repository'
    unknown = [word for word in words[1:] if word.startswith('--') and word not in flags_of(words[0])]
    return f'{words[0]} has no {unknown[0]}' if unknown else ''


def run(words, root, environment):
    """What is wrong with a command of ferry; empty for one that ends well."""
    if words[1] == 'gui':
        words = [words[0], 'gui', '--help']  # a window, where it is built
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    # What `ferry doctor` finds wrong with the machine of the test is no fault of README.
    if done.returncode == 0 or (words[1] == 'doctor' and done.returncode == 5):
        return ''
    return f'exit {done.returncode}: {done.stderr.strip()[-600:]}'


def main():
    ferry = pathlib.Path(sys.argv[1]).resolve()
    failed = passed = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        environment = dict(os.environ, FERRY_MODELS=str(root / 'models'), FERRY_MAX_STEPS='2', FERRY_DEVICE='cpu',
                           XDG_DATA_HOME=str(root / 'share'), XDG_CACHE_HOME=str(root / 'cache'), HF_HOME=str(root / 'hf'))
        write_files(root, ferry, environment)
        for block in blocks((ROOT / 'README.md').read_text()):
            for line in filter(is_command, block):
                for command in line.split(' && '):
                    words = shlex.split(command)
                    fault = run(words, root, environment) if words[0] == FERRY else check_flags(words)
                    print(f"{'failed' if fault else 'passed'}: {command}", *([fault] if fault else []), sep='\n  ')
                    failed += bool(fault)
                    passed += not fault
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or passed < 15 else 0


if __name__ == '__main__':
    sys.exit(main())

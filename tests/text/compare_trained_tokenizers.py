#!/usr/bin/env python3
"""Asserts that Ferry's tokenizer gives what Hugging Face `tokenizers` gives with small models trained here, one for each
combination of stages that families use: ids, offsets, decoded text, on real text and on hostile Unicode.

compare_trained_tokenizers.py TOKENIZE_LINES SOURCE_ROOT [NAME]...; called by Meson. Quick: a seeded sample of the lines;
FERRY_LONG=1: all of them. Exits with 77 (skipped) and a reason where the wheels or the shared data are absent.
"""

import json
import random
import sys
import tempfile
import unicodedata

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from compare_real_tokenizers import hard_to_cut
from tokenizer_comparison import LONG, SEED, SHARED, charsmap, compare, hostile_lines, real_lines, with_pairs, words_of

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def train(model, lines, size=3000, **options):
    special = options.pop("special_tokens", ["<unk>", "<s>", "</s>"])
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=special, **options)
    model.train_from_iterator(lines, trainer)
    return model


def byte_level(lines, split=None, form=None, prefix=False, model=None, **options):
    t = Tokenizer(model or models.BPE())
    t.normalizer = form
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    if split:
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return train(t, lines, initial_alphabet=ALPHABET, **options)


def few_bytes(lines):
    """Most bytes are unknown."""
    t = byte_level(lines[:10], model=models.BPE(unk_token="<unk>"))
    return train(t, lines, limit_alphabet=30)


def roberta(lines, prefix, trim):
    t = byte_level(lines, prefix=prefix)
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1), trim, prefix)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken(" two ", normalized=False), AddedToken("the", single_word=True, rstrip=True)])
    return t


def llama3(lines):
    t = byte_level(lines, QWEN2, model=models.BPE(ignore_merges=True))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])])
    return t


def clip(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<s>|'s|'t|'re|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return train(t, lines, end_of_word_suffix="</w>", initial_alphabet=ALPHABET)


def with_behavior(lines, behavior, invert, pattern):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=behavior == "isolated"))
    t.pre_tokenizer = pre_tokenizers.Split(pattern, behavior, invert)
    return train(t, lines)


def subwords(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    return train(t, lines, continuing_subword_prefix="##")


SENTENCE_PIECE = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def llama2(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence(SENTENCE_PIECE)
    t.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")  # of the training alone
    train(t, lines, special_tokens=["<unk>", "<s>", "</s>", *BYTES])
    t.pre_tokenizer = None
    t.add_tokens([AddedToken("\u2581the", normalized=False), AddedToken(" and", normalized=True)])
    return t


def metaspace(lines, scheme, split, form=None):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = form
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True)
    train(t, lines)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return t


def unigram(lines, fallback=False, form=None, scheme="always"):
    t = Tokenizer(models.Unigram())
    t.normalizer = form
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=2000, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"]))
    content = json.loads(t.to_str())
    if fallback:
        content["model"]["vocab"] += [[b, 0.0] for b in BYTES]
        content["model"]["byte_fallback"] = True
    t = Tokenizer.from_str(json.dumps(content))
    t.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B:1 </s>:1", [("</s>", 2)])
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)])
    return t


def nfkc_map():
    """As SentencePiece makes its map: characters and the pairs that compose, white space and what is dropped."""
    replacements = {c: unicodedata.normalize("NFKC", c) for c in map(chr, range(0xA0, 0x2FFF)) if c not in "\u200b\u2028"}
    pairs = [unicodedata.normalize("NFD", c) for c in map(chr, range(0xC0, 0x1FFF)) if c not in replacements]
    replacements |= {pair: unicodedata.normalize("NFC", pair) for pair in pairs}
    replacements = {old: new for old, new in replacements.items() if old != new}
    replacements |= {c: " " for c in "\t\n\r\u200b\u2028\u3000\ufeff"} | {c: "" for c in "\x01\x02\x7f\u00ad"}
    return charsmap(replacements | {"\uff21": "A", "\ufdfa": "\u0635\u0644\u0649 \u0627", "\U0001d400": "A", "ab\u0301": "x", "\u0958": "\u0915\u093c"})


def hard_to_cluster(rng, n):
    """Mixtures of what the rules of grapheme clusters tell apart, with the characters that the map above changes."""
    parts = ["a", "e", "ab", " ", "\r", "\n", "\r\n", "\x01", "\u00ad", "\u200b", "\u200c", "\u200d", "\u0301", "\u0302", "\u0344", "\u20dd", "\u0903",
             "\u0a03", "\u0915", "\u0958", "\u094d", "\u09cd", "\u0995", "\u09dc", "\u1b44", "\u1b13", "\u0600", "\u06dd", "\u08e2", "\U000110bd", "\u1100",
             "\u1161", "\u11a8", "\uac00", "\uac01", "\ua960", "\ud7b0", "\ud7cb", "\u00a9", "\u00ae", "\u2122", "\u3297", "\U0001f468", "\U0001f3fd",
             "\U0001f1e9", "\U0001f1ea", "\ufe0f", "\ufb01", "\u212b", "\u1e9b", "\u0323", "\ufdfa", "\u0e33", "\u0e01", "\U000e0001", "\U000e0100",
             "\u1112", "\U00016d63", "\U00016d67", "\u00bd", "\u2460", "\u0130", "\U0001d400", "\uff21"]
    return ["".join(rng.choice(parts) for _ in range(rng.randint(2, 10))) for _ in range(n)]


def t5(lines, form):
    """T5's and XLM-R's form."""
    t = unigram(lines, form=form)
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return t


def pieces(lines, pre_tokenizer, form=None):
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = form
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.BPEDecoder("</w>")
    return train(t, lines, end_of_word_suffix="</w>")


ODD_FORMS = normalizers.Sequence([
    normalizers.Strip(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
    normalizers.Replace(Regex(r"[aeiou]{2,}|\p{P}+"), "x\u00e9y"), normalizers.Replace("st", ""), normalizers.Prepend("> ")])

MODELS = {
    "llama2": llama2,
    "t5": lambda lines: t5(lines, normalizers.Precompiled(nfkc_map())),
    "spm": lambda lines: t5(lines, normalizers.Sequence([
        normalizers.Nmt(), normalizers.Precompiled(nfkc_map()), normalizers.Strip(left=False),
        normalizers.Replace(Regex(" {2,}"), "\u2581")])),
    "metaspace": lambda lines: metaspace(lines, "always", True),
    "metaspace_first": lambda lines: metaspace(lines, "first", True),
    "metaspace_first_whole": lambda lines: metaspace(lines, "first", False),
    "metaspace_first_strip": lambda lines: metaspace(lines, "first", True, normalizers.Strip()),
    "metaspace_first_odd": lambda lines: metaspace(lines, "first", False, ODD_FORMS),
    "metaspace_never": lambda lines: metaspace(lines, "never", True),
    "unigram": unigram,
    "unigram_bytes": lambda lines: unigram(lines, True, normalizers.NFKC()),
    "unigram_first": lambda lines: unigram(lines, True, normalizers.Strip(), "first"),
    "strip_left": lambda lines: byte_level(lines, form=normalizers.Strip(right=False)),
    "strip_right": lambda lines: byte_level(lines, form=normalizers.Strip(left=False)),
    "odd_forms": lambda lines: byte_level(lines, form=ODD_FORMS),
    "lower": lambda lines: byte_level(lines, form=normalizers.Lowercase()),
    "no_marks": lambda lines: byte_level(lines, form=normalizers.StripAccents()),
    "whitespace": lambda lines: pieces(lines, pre_tokenizers.Whitespace()),
    "whitespace_split": lambda lines: pieces(lines, pre_tokenizers.WhitespaceSplit()),
    "digits": lambda lines: pieces(lines, pre_tokenizers.Digits()),
    "each_digit": lambda lines: pieces(lines, pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True)])),
    **{f"punctuation_{b}": lambda lines, b=b: pieces(lines, pre_tokenizers.Punctuation(b))
       for b in ("isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next")},
    "gpt2": byte_level,
    "gpt2_prefix": lambda lines: byte_level(lines, prefix=True),
    "qwen2": lambda lines: byte_level(lines, QWEN2, normalizers.NFC()),
    "o200k": lambda lines: byte_level(lines, O200K, normalizers.Sequence([normalizers.NFKC(), normalizers.NFD()])),
    "nfd": lambda lines: byte_level(lines, form=normalizers.NFD()),
    "nfkd": lambda lines: byte_level(lines, form=normalizers.NFKD()),
    "nfkc": lambda lines: byte_level(lines, form=normalizers.NFKC()),
    "few_bytes": few_bytes,
    "roberta": lambda lines: roberta(lines, False, True),
    "roberta_prefix": lambda lines: roberta(lines, True, True),
    "roberta_whole": lambda lines: roberta(lines, True, False),
    "llama3": llama3,
    "clip": clip,
    "subwords": subwords,
    **{f"split_{behavior}_{invert}": lambda lines, b=behavior, i=invert, p=pattern: with_behavior(lines, b, i, p)
       for behavior, invert, pattern in [
           ("isolated", False, " "), ("isolated", True, Regex(r"\s+")), ("removed", False, Regex(r"\p{P}|\s")),
           ("removed", True, Regex(r"\p{L}+")), ("merged_with_previous", False, Regex(r"\s|[aeiou]+")),
           ("merged_with_previous", True, " "), ("merged_with_next", False, Regex(r"\s|[aeiou]{1,2}")),
           ("merged_with_next", True, " "), ("contiguous", False, Regex(r"\s|\p{P}")), ("contiguous", True, Regex(r"\p{Ll}"))]},
}


def main():
    real = real_lines()
    if not real:
        print(f"skipped: no data in {SHARED}; set FERRY_SHARED")
        sys.exit(77)
    rng = random.Random(SEED)
    trained_on = rng.sample(real, min(6000, len(real)))
    hostile = hostile_lines(rng, 30000 if LONG else 600) + hard_to_cut(rng, 30000 if LONG else 1500)
    clusters = hard_to_cluster(rng, 60000 if LONG else 3000)
    real = rng.sample(real, min(30000 if LONG else 400, len(real)))
    failures = 0
    for name, make in MODELS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        lines = real + (hostile if LONG else rng.sample(hostile, 800)) + (clusters if name in ("t5", "spm") else [])
        with tempfile.TemporaryDirectory() as directory:
            make(trained_on).save(f"{directory}/tokenizer.json")
            tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
            n_special = tokenizer.num_special_tokens_to_add(True)
            requests = [[line] for line in lines] + with_pairs(rng, lines, 5000 if LONG else 150, n_special)
            failures += compare(name, tokenizer, directory, requests)
            plain = [line for line in lines if "<" not in line]  # special tokens get no blank
            failures += compare(f"{name}, in words", tokenizer, directory, words_of(rng, plain, 5000 if LONG else 150))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

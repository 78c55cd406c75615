#!/usr/bin/env python3
"""Writes unicode_tables.inc: the character properties that Hugging Face `tokenizers` goes by.

Its properties come from four Rust crates and from Oniguruma, of as many versions of Unicode (categories, decomposition, lower
case, \\w, the classes of patterns), so no system library has the same. Each is asked for here, for every scalar value, through the wheel's public interface.
Run from the source root: .venv/bin/python src/text/unicode/unicode_tables.py > src/text/unicode/unicode_tables.inc
"""

import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def bert(**on):
    flags = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**flags, **on}).normalize_str


def ranges(points):
    """Sorted code points -> [(first, last)]."""
    found = []
    for c in points:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def combining_classes(nfd):
    """{code point: canonical combining class} for the classes above 0, by which of two marks NFD puts first."""
    low, high = "\u0334", "\u0345"  # the only classes 1 and 240

    def goes_before(a, b):  # is the class of b above 0 and under that of a?
        return nfd("a" + a + b) != "a" + a + b

    marks = [c for c in SCALARS if nfd(chr(c)) == chr(c) and (goes_before(high, chr(c)) or goes_before(chr(c), low))]
    example = {}  # class -> a mark that has it, by Python's younger Unicode
    for c in marks:
        if unicodedata.combining(chr(c)):
            example.setdefault(unicodedata.combining(chr(c)), chr(c))
    found = {}
    for c in marks:
        mark = chr(c)
        equal = [k for k, m in example.items() if not goes_before(m, mark) and not goes_before(mark, m)]
        assert len(equal) == 1, (hex(c), equal)
        found[c] = equal[0]
    return found


CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()


def category_runs():
    """[(first code point, category)] of runs, by the \\p{..} of patterns; a control character that is \\s has one of its own."""
    every = "".join(map(chr, SCALARS))
    found = {}
    for k, name in enumerate([*CATEGORIES, None]):
        pattern = rf"\p{{{name}}}" if name else r"[\s&&\p{Cc}]"
        others = set(normalizers.Replace(Regex(pattern), "").normalize_str(every))
        for c in SCALARS:
            if chr(c) not in others:
                assert name is None or c not in found
                found[c] = k
    assert len(found) == len(SCALARS)
    spaces = set(normalizers.Replace(Regex(r"\s"), "").normalize_str(every))
    like_spaces = [CATEGORIES.index(z) for z in ("Zs", "Zl", "Zp")] + [len(CATEGORIES)]
    assert all((chr(c) not in spaces) == (found[c] in like_spaces) for c in SCALARS)
    return [(c, found[c]) for c in SCALARS if c == 0 or found.get(c - 1, len(CATEGORIES) + 1) != found[c]]


def compositions(nfd, nfc):
    """[(first, second, composed)]: canonical pairs, but for Hangul."""
    found = []
    for c in SCALARS:
        parts = nfd(chr(c))
        if c in HANGUL or parts == chr(c) or nfc(chr(c)) != chr(c):
            continue
        first = nfc(parts[:-1])
        assert len(first) == 1 and nfc(first + parts[-1]) == chr(c)
        found.append((ord(first), ord(parts[-1]), c))
    return sorted(found)


def charsmap(key):
    """A map of SentencePiece's that turns one text into an X: a double array of 32-bit units, then the replacements."""
    units = [0] * 256 * (len(key) + 2)
    at, units[0] = 0, 256 << 10
    for depth, byte in enumerate(key, start=1):
        at = (256 * depth) ^ byte
        units[at] = (at ^ 256 * (depth + 1)) << 10 | (depth == len(key)) << 8 | byte
    units[256 * (len(key) + 1)] = 1 << 31  # the replacement's place
    return b"".join(n.to_bytes(4, "little") for n in [4 * len(units), *units]) + b"X\0"


GRAPHEME_CLASSES = "other control prepend l v t lv lvt pictograph consonant spacing_mark extend conjunct_extend linker zwj".split()


def grapheme_runs():
    """[(first code point, class)] of runs, by what stays together in Precompiled.

    It gives a cluster of less than six bytes to its map as a whole, of which only the first match is used: a mark behind that match
    is lost. So whether a mark is lost behind a character tells whether a boundary is before that character.
    """
    lost, kept = "\u0301", "\u0302"
    maps = {c: normalizers.Precompiled(charsmap(c.encode())).normalize_str for c in "a\u00a9\u0915\u1100\u1161\u11a8" + lost}

    def joined(before, c):  # is there no boundary between them? Of three bytes at least, or of two and no mark
        return kept in maps[c](before + c + kept)

    found = []
    for point in SCALARS:
        c = chr(point)
        follows = maps["a"]("a" + c) == "X"
        spaced = not joined("\u00a9" + c + "\u200d", "\u00a9")
        joins_conjunct = follows and joined("\u0915" + c + "\u094d", "\u0915")
        l, v, t = (joined(c, jamo) for jamo in "\u1100\u1161\u11a8")
        if not joined(c, lost):
            k = "control"
        elif follows and point == 0x200D:
            k = "zwj"
        elif follows and joined("\u0915" + c, "\u0915"):
            k = "linker"
        elif follows and spaced:
            k = "spacing_mark"
        elif follows:
            k = "conjunct_extend" if joins_conjunct else "extend"
        elif l and joined(c, "a"):
            k = "prepend"
        elif l:
            k = "l"
        elif v:
            k = "lv" if point in HANGUL else "v"
        elif t:
            k = "lvt" if point in HANGUL else "t"
        elif joined(c + "\u200d", "\u00a9"):
            k = "pictograph"
        else:
            k = "consonant" if joined(c + "\u094d", "\u0915") else "other"
        found.append((point, GRAPHEME_CLASSES.index(k)))
    return [(c, k) for i, (c, k) in enumerate(found) if i == 0 or found[i - 1][1] != k]


def word_characters():
    """What the added tokens' `single_word` takes for a part of a word (the regex crate's \\w)."""
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("<x>", single_word=True, normalized=False)])
    encode = tokenizer.encode
    return [c for c in SCALARS if 1 not in encode("<x>" + chr(c), add_special_tokens=False).ids]


def print_rows(name, kind, comment, rows):
    print(f"\n// {comment}\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) > 98:
            print(line)
            line = "   "
        line += f" {row},"
    print(line + "\n};")


def print_ranges(name, comment, points):
    print_rows(name, "Range", comment, [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(points)])


def main():
    nfd = normalizers.NFD().normalize_str
    lower = normalizers.Lowercase().normalize_str
    clean, strip = bert(clean_text=True), bert(strip_accents=True)
    spaces = pre_tokenizers.WhitespaceSplit().pre_tokenize_str
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str

    print(f"// Written by unicode_tables.py from tokenizers {tokenizers.__version__}; do not edit.")
    print_ranges("kCleaned", "Removed by clean_text.", [c for c in SCALARS if clean(f"a{chr(c)}b") == "ab"])
    white = [c for c in SCALARS if len(spaces(f"a{chr(c)}b")) == 2]
    print_ranges("kWhitespace", "Ends a word.", white)
    print_ranges("kPunctuationMarks", "A word by itself.", [c for c in SCALARS if len(split(f"a{chr(c)}b")) == 3])
    print_ranges("kAccents", "Removed by strip_accents.", [c for c in SCALARS if strip(f"a{chr(c)}b") == "ab"])
    marks = normalizers.StripAccents().normalize_str
    print_ranges("kMarks", "Removed by StripAccents.", [c for c in SCALARS if marks(f"a{chr(c)}b") == "ab"])
    digits = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str
    print_ranges("kNumbers", "A word by itself where digits are split.", [c for c in SCALARS if len(digits(f"a{chr(c)}b")) == 3])
    print_ranges("kWordCharacters", "Forbids a single_word token beside it.", word_characters())

    classes = combining_classes(nfd)
    rows = []
    for k in sorted(set(classes.values())):
        rows += [(a, b, k) for a, b in ranges(sorted(c for c in classes if classes[c] == k))]
    print_rows("kCombining", "CombiningRange", "Canonical combining classes above 0.",
               [f"{{0x{a:X}, 0x{b:X}, {k}}}" for a, b, k in sorted(rows)])

    def expansions(name, comment, function, skip=()):
        changed = [(c, function(chr(c))) for c in SCALARS if c not in skip and function(chr(c)) != chr(c)]
        assert all(1 <= len(text) <= 4 for _, text in changed)
        rows = ["{" + ", ".join(f"0x{v:X}" for v in [c, *map(ord, text)]) + "}" for c, text in changed]
        print_rows(name, "Expansion", comment, rows)

    expansions("kDecompositions", "Full canonical decompositions but for Hangul syllables.", nfd, HANGUL)
    expansions("kLower", "Full lower-case mappings.", lower)

    print_rows("kCategoryRuns", "uint32_t", "Runs of one category: the first code point and, in the last five bits, the category.",
               [f"0x{c << 5 | k:X}" for c, k in category_runs()])
    print_rows("kGraphemeRuns", "uint32_t", "Runs of one class of grapheme clusters, likewise.", [f"0x{c << 5 | k:X}" for c, k in grapheme_runs()])
    print_rows("kCompositions", "Composition", "Canonical pairs and what they compose to, but for Hangul syllables.",
               [f"{{0x{a:X}, 0x{b:X}, 0x{c:X}}}" for a, b, c in compositions(nfd, normalizers.NFC().normalize_str)])
    nfkd = normalizers.NFKD().normalize_str
    pool, rows = "", []
    for c in SCALARS:
        parts = nfkd(chr(c))
        if parts == nfd(chr(c)):
            continue
        at = pool.find(parts)
        if at < 0:
            at = len(pool)
            pool += parts
        rows.append(f"{{0x{c:X}, {at}, {len(parts)}}}")
    print_rows("kCompatible", "Slice", "Full compatibility decompositions where they are others: slices of the next.", rows)
    print_rows("kCompatiblePoints", "char32_t", "Code points of compatibility decompositions.", [f"0x{ord(c):X}" for c in pool])


if __name__ == "__main__":
    main()

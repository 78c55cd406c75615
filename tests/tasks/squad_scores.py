"""Exact match and F1 of an answer as SQuAD defines them: of words in lower case, without ASCII punctuation and articles. The package
of transformers had them until its version 5."""
import collections, re, string

NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def words_that_count(text):
    return re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(NO_PUNCTUATION)).split()


def exact_match(right, answer):
    return float(words_that_count(right) == words_that_count(answer))


def f1(right, answer):
    right, answer = words_that_count(right), words_that_count(answer)
    if not right or not answer:
        return float(right == answer)
    n_same = sum((collections.Counter(right) & collections.Counter(answer)).values())
    return 2 * n_same / (len(right) + len(answer))

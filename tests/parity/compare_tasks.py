"""Tags of words and answers to questions are those that transformers reads from the same model: a run of each task is trained,
its final/ is loaded by AutoModel and AutoTokenizer, and every tag and answer of predictions.jsonl has to be the same (of two
that are equally likely within 1e-4 either one). Words are cut and contexts fall into windows as transformers' examples do both.
By BERT, GPT-2 and LLaMA: a byte-level tokenizer gets each word with a blank before it. What `ferry eval` says of the run is
what seqeval, or SQuAD's definition, makes of the tags and answers.

    compare_tasks.py FERRY FERRY_TRAINER

Prints one line a case, a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import json, os, pathlib, random, subprocess, sys, tempfile

try:
    import seqeval.metrics, torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tasks"))
import squad_scores
from compare_exported import COLOURS, WORDS, write_gpt2, write_llama, write_model

MAX_LENGTH, DOC_STRIDE, MAX_ANSWER_LENGTH = 24, 5, 8
TOLERANCE = 1e-4  # of logits in fp32


def write_tagged(file, n, rng):
    """Colours are entities, and a car behind one is a part of it; some rows are longer than MAX_LENGTH."""
    with open(file, "w", encoding="utf-8") as out:
        for _ in range(n):
            words = [rng.choice(COLOURS if rng.random() < 0.3 else WORDS) for _ in range(rng.choice([1, 4, 9, 40]))]
            tags = []
            for i, word in enumerate(words):
                follows = i > 0 and word == "car" and tags[-1] == "B-COL"
                tags.append("B-COL" if word in COLOURS else "I-COL" if follows else "O")
            out.write(json.dumps(dict(tokens=words, ner_tags=tags)) + "\n")


def write_questions(file, n, rng):
    """A colour in the context answers; some contexts have none, and some are many windows long."""
    with open(file, "w", encoding="utf-8") as out:
        for i in range(n):
            words = rng.choices(WORDS, k=rng.choice([3, 9, 40]))
            place, colour = rng.randrange(len(words)), rng.choice(COLOURS)
            answers = dict(text=[], answer_start=[])
            if rng.random() < 0.8:
                answers = dict(text=[colour], answer_start=[len(" ".join(words[:place])) + (place > 0)])
                words[place] = colour
            out.write(json.dumps(dict(id=str(i), question="the car was", context=" ".join(words), answers=answers)) + "\n")


def wrong_tags(row, tokenizer, model):
    # GPT-2's tokenizer puts the blank there itself; what cuts the text before it becomes bytes cannot.
    prefix = " " if model.config.model_type == "llama" else ""
    encoded = tokenizer([prefix + word for word in row["words"]], is_split_into_words=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
    logits, words = model(**encoded).logits[0], encoded.word_ids()
    for word, tag in enumerate(row["predicted"]):
        if word not in words:
            if tag is not None:
                return f"word {word} is cut off and has the tag {tag}"
            continue
        of_word = logits[words.index(word)]
        if tag is None or of_word.max() - of_word[model.config.label2id[tag]] > TOLERANCE:
            return f"word {word} is {tag}, expected {model.config.id2label[int(of_word.argmax())]}"
    return None


def wrong_answer(row, tokenizer, model):
    windows = tokenizer([row["text"]], [row["text_pair"]], truncation="only_second", max_length=MAX_LENGTH, stride=DOC_STRIDE,
                        return_overflowing_tokens=True, return_offsets_mapping=True)
    scores, none = {}, float("inf")  # of each text
    for i in range(len(windows["input_ids"])):
        given = {key: torch.tensor([windows[key][i]]) for key in windows if key in ("input_ids", "token_type_ids")}
        output = model(**given)
        starts, ends, ids = output.start_logits[0].tolist(), output.end_logits[0].tolist(), windows.sequence_ids(i)
        none = min(none, starts[0] + ends[0])
        for start in range(len(starts)):
            for end in range(start, min(start + MAX_ANSWER_LENGTH, len(starts))):
                if ids[start] == 1 and ids[end] == 1:
                    offsets = windows["offset_mapping"][i]
                    text = row["text_pair"][offsets[start][0]:offsets[end][1]]
                    if start == ids.index(1):
                        # LLaMA's offsets leave out the blank of each token but a window's first, which SQuAD's script passes over.
                        text = text.removeprefix(" ")
                    scores[text] = max(scores.get(text, -float("inf")), starts[start] + ends[end])
    scores[""] = none
    best = max(scores, key=scores.get)
    if scores.get(row["predicted"], -float("inf")) < scores[best] - TOLERANCE:
        return f"'{row['predicted']}', expected '{best}'"
    return None


def scores_of_tags(rows):
    pairs = [[(label, tag) for label, tag in zip(row["label"], row["predicted"]) if tag is not None] for row in rows]
    actual, predicted = ([[pair[i] for pair in text] for text in pairs] for i in (0, 1))
    its = seqeval.metrics
    return dict(precision=its.precision_score(actual, predicted), recall=its.recall_score(actual, predicted),
                f1=its.f1_score(actual, predicted), accuracy=its.accuracy_score(actual, predicted))


def scores_of_answers(rows):
    def mean(score):
        return 100 * sum(max(score(answer, row["predicted"]) for answer in row["label"] or [""]) for row in rows) / len(rows)
    return dict(exact_match=mean(squad_scores.exact_match), f1=mean(squad_scores.f1))


TAGS = ("token-classification", write_tagged, wrong_tags, scores_of_tags, "AutoModelForTokenClassification")
ANSWERS = ("question-answering", write_questions, wrong_answer, scores_of_answers, "AutoModelForQuestionAnswering")
CASES = {"tags of words": (write_model, *TAGS), "answers": (write_model, *ANSWERS),
         "tags of words by GPT-2": (write_gpt2, *TAGS), "answers of GPT-2": (write_gpt2, *ANSWERS),
         "tags of words by LLaMA": (write_llama, *TAGS), "answers of LLaMA": (write_llama, *ANSWERS)}


def run_case(ferry, name, write, task, write_data, wrong, scores_of, auto_class, root, seed):
    rng = random.Random(seed)
    write(root / "model", seed)
    write_data(root / "train.jsonl", 60, rng)
    write_data(root / "dev.jsonl", 40, rng)
    subprocess.run([*ferry, "train", "--model", "model", "--dataset", "train.jsonl", "--eval-dataset", "dev.jsonl",
                    "--task", task, "--device", "cpu", "--max-steps", "60", "--train-batch-size", "8", "--lr", "3e-3",
                    "--max-length", str(MAX_LENGTH), "--doc-stride", str(DOC_STRIDE), "--max-answer-length",
                    str(MAX_ANSWER_LENGTH), "--output-dir", "run"],
                   cwd=root, check=True, stdout=subprocess.DEVNULL)
    tokenizer = transformers.AutoTokenizer.from_pretrained(root / "run/final")
    model, report = getattr(transformers, auto_class).from_pretrained(root / "run/final", output_loading_info=True)
    model = model.eval()
    rows = [json.loads(line) for line in open(root / "run/predictions.jsonl", encoding="utf-8")]
    with torch.no_grad():
        faults = [f"{row['text'][:60]!r}: {fault}" for row in rows if (fault := wrong(row, tokenizer, model))]
    said = json.loads(subprocess.run([*ferry, "eval", "--model", "run", "--dataset", "dev.jsonl", "--device", "cpu", "--json"], cwd=root,
                                     check=True, stdout=subprocess.PIPE).stdout)
    faults += [f"{score} {said[score]}, expected {value}" for score, value in scores_of(rows).items() if not abs(said[score] - value) < 1e-4]
    faults += [f"{kind}: {sorted(map(str, names))}" for kind, names in report.items() if names]
    if len({json.dumps(row["predicted"]) for row in rows}) < 2:
        faults.append("all are predicted to be the same, which shows nothing")
    print(f"{'FAIL' if faults else 'PASS'} {name}: {len(rows)} texts{''.join(f'{chr(10)}  {f}' for f in faults[:5])}", flush=True)
    return not faults


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    ferry = ["env", "FERRY_TRAINER=" + os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[1])]
    results = []
    for seed, (name, case) in enumerate(CASES.items()):
        with tempfile.TemporaryDirectory() as root:
            results.append(run_case(ferry, name, *case, pathlib.Path(root), seed))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

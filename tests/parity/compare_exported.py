"""What `ferry train` and `ferry export` write means the same to transformers: for one label a text, for several, for a
number, for pairs of texts, and from pytorch_model.bin, every label equal and every logit within 1e-4 (check_export.py
compares).

    compare_exported.py FERRY FERRY_TRAINER

The models are small random BERTs, a LLaMA and, with FERRY_LONG=1, a GPT-2 that transformers itself wrote. Prints one line a case,
a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import contextlib, io, json, os, pathlib, random, subprocess, sys, tempfile, traceback

try:
    import safetensors.torch, tokenizers, torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import check_export
from compare import randomise, small_config

MAX_LENGTH = 24
STEPS = 40  # after a few steps some of these models predict one label of all texts, which shows nothing
COLOURS = ["red", "green", "blue"]
# Subwords, an accent that the normalizer drops, a Chinese character and punctuation; "zebra" is unknown.
WORDS = ["the", "car", "house", "was", "very", "old", "near", "painting", "cafés", "Bird", "中", "zebra", "...", "it's"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *COLOURS, "the", "car", "house", "was", "very", "old", "near",
              "paint", "##ing", "cafe", "##s", "bird", "中", ".", "'", "it", "s"]


def write_model(directory, seed):
    # A head drawn as wide as this tells texts apart after so few steps.
    model = transformers.BertModel(small_config(vocab_size=len(VOCABULARY), initializer_range=0.5))
    randomise(model, seed)
    model.save_pretrained(directory)
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(directory / "vocab.txt"), do_lower_case=True).save_pretrained(directory)


def byte_tokenizer():
    """A byte-level tokenizer of the words, with room for its special tokens."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    texts = [" ".join(words) for words in (COLOURS, WORDS, COLOURS + WORDS, WORDS + COLOURS)]
    tokenizer.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(
        vocab_size=330, show_progress=False, special_tokens=["<|endoftext|>", "<pad>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def write_gpt2(directory, seed):
    """Its configuration says nothing of padding."""
    tokenizer = byte_tokenizer()
    model = transformers.GPT2Model(transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=160, n_embd=96, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
    randomise(model, seed)
    model.save_pretrained(directory)
    its = json.loads(tokenizer.to_str())["model"]
    transformers.GPT2Tokenizer(vocab=its["vocab"], merges=[tuple(pair) for pair in its["merges"]], pad_token="<pad>").save_pretrained(directory)


def write_llama(directory, seed):
    """With Llama 3's kind of tokenizer: the text is cut before it becomes bytes, and has a token around it. That is the padding,
    too, which transformers passes over at a text's end."""
    tokenizer = byte_tokenizer()
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [split, tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = tokenizers.processors.Sequence([
        tokenizers.processors.ByteLevel(trim_offsets=True), tokenizers.processors.TemplateProcessing(
            "<|endoftext|> $A <|endoftext|>", "<|endoftext|> $A <|endoftext|>:1 $B:1 <|endoftext|>:1", [("<|endoftext|>", 0)])])
    model = transformers.LlamaModel(transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=160, max_position_embeddings=160, bos_token_id=0, eos_token_id=0))
    randomise(model, seed)
    model.save_pretrained(directory)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                                         pad_token="<|endoftext|>").save_pretrained(directory)


def write_data(file, label_of, n, rng, is_pair):
    """Some texts are longer than MAX_LENGTH, so that they are cut."""
    def text(words):
        return " ".join(words)
    with open(file, "w", encoding="utf-8") as out:
        for _ in range(n):
            words = [rng.choice(COLOURS if rng.random() < 0.3 else WORDS) for _ in range(rng.choice([1, 4, 9, 40]))]
            row = dict(text=text(words), label=label_of(words))
            if is_pair:
                row["other"] = text(rng.choices(WORDS, k=rng.choice([1, 5, 30])))
            out.write(json.dumps(row) + "\n")


def first_colour(words):
    return next((word for word in words if word in COLOURS), "red")


def words_in(words):
    return sorted({word for word in words if word.isalpha() and word.isascii()})


def share_of_red(words):
    return words.count("red") / len(words) + 0.25


def as_torch_shards(directory):
    """The same weights as transformers wrote them before safetensors, one matrix the other way round in memory."""
    file = directory / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    file.unlink()
    turned = "encoder.layer.0.intermediate.dense.weight"
    weights[turned] = weights[turned].t().contiguous().t()
    names = sorted(weights)
    shards = {f"pytorch_model-0000{i + 1}-of-00002.bin": names[i::2] for i in range(2)}
    for shard, inside in shards.items():
        torch.save({name: weights[name] for name in inside}, directory / shard)
    index = {"metadata": {}, "weight_map": {name: shard for shard, inside in shards.items() for name in inside}}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))


DECODERS = {"GPT-2, one label": write_gpt2, "LLaMA, pairs of texts": write_llama}
CASES = {"one label": ("single_label_classification", first_colour, False),
         "from pytorch_model.bin": ("single_label_classification", first_colour, False),
         "pairs of texts": ("single_label_classification", first_colour, True),
         "several labels": ("multi_label_classification", words_in, False),
         "a number": ("regression", share_of_red, False),
         "GPT-2, one label": ("single_label_classification", first_colour, False),
         "LLaMA, pairs of texts": ("single_label_classification", first_colour, True)}


def outcome_of_check(arguments):
    """Whether check_export.py finds a model equal, and what it says: in this process, since loading transformers takes seconds."""
    said = io.StringIO()
    sys.argv = [check_export.__file__, *map(str, arguments)]
    code = 1
    try:
        with contextlib.redirect_stdout(said):
            check_export.main()
    except SystemExit as end:
        code = end.code
    except Exception:
        said.write(traceback.format_exc())
    return code == 0, said.getvalue() + (code if isinstance(code, str) else "")


def run_case(ferry, name, problem, label_of, is_pair, root, seed):
    rng = random.Random(seed)
    DECODERS.get(name, write_model)(root / "model", seed)
    if name == "from pytorch_model.bin":
        as_torch_shards(root / "model")
    write_data(root / "train.jsonl", label_of, 60, rng, is_pair)
    write_data(root / "dev.jsonl", label_of, 40, rng, is_pair)
    subprocess.run([*ferry, "train", "--model", "model", "--dataset", "train.jsonl", "--eval-dataset", "dev.jsonl",
                    "--problem-type", problem, "--device", "cpu", "--max-steps", str(STEPS), "--train-batch-size", "8",
                    "--lr", "3e-4", "--max-length", str(MAX_LENGTH), "--output-dir", "run",
                    *(["--text-pair-column", "other"] if is_pair else [])],
                   cwd=root, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*ferry, "export", "--model", "run", "--output", "exported"], cwd=root, check=True,
                   stdout=subprocess.DEVNULL)
    passed = True
    checked = [("run/final", [])]
    if name not in DECODERS:
        checked += [(f"run/checkpoint-{STEPS}", []), ("exported", [])]
    if name.startswith("LLaMA"):  # turned positions do not mind on which side the padding is
        checked += [("run/final", ["--padding-side", "left"])]
    for directory, options in checked:
        is_equal, said = outcome_of_check([root / directory, root / "run/predictions.jsonl", "--max-length", MAX_LENGTH, *options])
        passed &= is_equal
        print(f"{'PASS' if is_equal else 'FAIL'} {' '.join([name + ',', directory, *options])}: {said.strip()}", flush=True)
    predicted = {json.dumps(json.loads(line)["predicted"]) for line in open(root / "run/predictions.jsonl")}
    if len(predicted) < 2:
        print(f"FAIL {name}: every text is predicted to be {predicted}, which shows nothing")
        passed = False
    return passed


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    ferry = ["env", "FERRY_TRAINER=" + os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[1])]
    results = []
    for seed, (name, case) in enumerate(CASES.items()):
        if name == "GPT-2, one label" and os.environ.get("FERRY_LONG") != "1":
            continue
        with tempfile.TemporaryDirectory() as root:
            results.append(run_case(ferry, name, *case, pathlib.Path(root), seed))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

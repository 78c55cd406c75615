"""GGUF files of `ferry export` beside transformers, run by llama.cpp (the wheel xllamacpp) and read by the package gguf: small random
models of every family that is exported, with tokenizers of each kind. Log-probabilities, greedy ids, ids of texts, keys and values.

    gguf_files.py FERRY GGUF_DUMP [NAME]

Prints a line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import copy, json, math, pathlib, random, subprocess, sys, tempfile, urllib.request

try:
    import gguf, numpy, tokenizers, torch, transformers, xllamacpp
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

N_WORDS, N_NEW, CONTEXT = 600, 200, 512
# Bars of log-probabilities. 16-bit matrices are compared with a model whose matrices were rounded the same way; llama.cpp rounds the
# other factor of such a product, too. Models with GELU are compared with one that takes it from llama.cpp's table of 16-bit values,
# where a difference of one bit in fp32 can become one of a bit in fp16; the distance from transformers' own GELU is shown.
BARS, GELU_BAR = dict(f32=1e-4, f16=2e-3), 5e-4
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
CHAT = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
TEXTS = ["Hello world", "  two  blanks ", "It's 12345 o'clock, they'LL say!\n\n\tnew line", "na\u00efve \u4f60\u597d \U0001f600",
         "<|im_start|>user\nhi<|im_end|>\n", "<|im_start|>  blanks <|im_end|> \n x</s> y", "x" * 40 + " 1 22 333", "\n\n \n  \r\nend"]

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(pattern, ignore_merges=False, adds_bos=False, normalizer=None):
    from tokenizers import Regex, models, pre_tokenizers, decoders, processors, trainers
    made = tokenizers.Tokenizer(models.BPE())
    byte_level_pre = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    made.pre_tokenizer = byte_level_pre if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level_pre])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    text = pathlib.Path(__file__).read_text()
    made.train_from_iterator([text] + TEXTS * 3, trainer)
    if ignore_merges:
        state = json.loads(made.to_str())
        state["model"]["ignore_merges"] = True
        made = tokenizers.Tokenizer.from_str(json.dumps(state))
    if normalizer:
        made.normalizer = normalizer
    if adds_bos:
        made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return made


def sentence_piece(adds_blank, strips=False):
    """A vocabulary as SentencePiece trains: any two neighbours whose text is a token are merged, the earlier token first. `strips`: as
    Phi-3's, whose special tokens take the blanks behind them."""
    from tokenizers import AddedToken, models, normalizers, decoders, processors
    rng = random.Random(5)
    tokens = SPECIAL[:3] + [f"<0x{i:02X}>" for i in range(256)] + list("\u2581abcdefghijklmnopqrstuvwxyz'ETHILxo1234,!\n")
    tokens = list(dict.fromkeys(tokens))
    known = set(tokens)
    first = 259
    while len(tokens) < 560:
        joined = rng.choice(tokens[first:]) + rng.choice(tokens[first:])
        if len(joined) < 7 and joined not in known and "\n" not in joined:
            known.add(joined)
            tokens.append(joined)
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token in tokens[first:]:
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        merges += sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    made = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "\u2581")
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), replace]) if adds_blank else replace
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    leave = ("<unk>", "<s>", "<|endoftext|>")
    special = SPECIAL + ["<|endoftext|>"] if strips else SPECIAL
    made.add_special_tokens([AddedToken(token, special=True, normalized=False, rstrip=strips and token not in leave) for token in special])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return made


TOKENIZERS = dict(
    llama3=lambda: byte_level(LLAMA3, ignore_merges=True, adds_bos=True),
    qwen2=lambda: byte_level(QWEN2, normalizer=tokenizers.normalizers.NFC()),
    gpt2=lambda: byte_level(None),
    spm=lambda: sentence_piece(True),
    phi=lambda: sentence_piece(True, strips=True),
    gemma=lambda: sentence_piece(False))

SIZES = dict(vocab_size=N_WORDS, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
             max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GQA = SIZES | dict(num_key_value_heads=2)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)
GEMMA3 = GQA | dict(head_dim=32, num_hidden_layers=7, sliding_window=16, query_pre_attn_scalar=32)
PHI3 = SIZES | dict(num_key_value_heads=2, max_position_embeddings=2048, sliding_window=None)
LONG = dict(rope_type="longrope", short_factor=[1 + i / 10 for i in range(8)], long_factor=[2 + i for i in range(8)])
CASES = {
    "llama, llama3 positions, tied": ("Llama", GQA | dict(rope_scaling=LLAMA3_ROPE, tie_word_embeddings=True, rope_theta=5e5), "llama3"),
    "llama, heads of 24, biases": ("Llama", GQA | dict(head_dim=24, attention_bias=True, mlp_bias=True), "spm"),
    "llama, linear positions": ("Llama", GQA | dict(rope_scaling=dict(rope_type="linear", factor=4.0)), "gpt2"),
    "llama, YaRN": ("Llama", GQA | dict(rope_scaling=YARN), "spm"),
    "mistral": ("Mistral", GQA | dict(head_dim=16, sliding_window=400), "spm"),
    "qwen2": ("Qwen2", GQA, "qwen2"),
    "qwen2, YaRN, tied": ("Qwen2", GQA | dict(rope_scaling=YARN, tie_word_embeddings=True), "qwen2"),
    "qwen3": ("Qwen3", GQA | dict(head_dim=24), "qwen2"),
    "gemma": ("Gemma", GQA | dict(head_dim=32), "gemma"),
    "gemma2": ("Gemma2", GQA | dict(head_dim=32, sliding_window=16, query_pre_attn_scalar=32), "gemma"),
    "gemma3": ("Gemma3", GEMMA3, "gemma"),
    "gemma3, linear positions": ("Gemma3", GEMMA3 | dict(rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
        sliding_attention=dict(rope_type="default", rope_theta=1e4))), "gemma"),
    "phi3": ("Phi3", PHI3 | dict(original_max_position_embeddings=2048), "phi"),
    "phi3, longrope, short": ("Phi3", PHI3 | dict(rope_scaling=LONG, original_max_position_embeddings=512), "spm"),
    # llama.cpp chooses the factors by the context it was started with, transformers by the text.
    "phi3, longrope, long": ("Phi3", PHI3 | dict(rope_scaling=LONG, original_max_position_embeddings=128), "spm", (129, 150, 250)),
    "gpt2": ("GPT2", dict(vocab_size=N_WORDS, n_embd=64, n_layer=3, n_head=4, n_positions=512, bos_token_id=1, eos_token_id=2), "gpt2"),
    "gpt_neox": ("GPTNeoX", SIZES | dict(rotary_pct=0.25), "gpt2"),
    "gpt_neox, one after the other": ("GPTNeoX", SIZES | dict(rotary_pct=0.5, use_parallel_residual=False), "gpt2"),
}


def make_model(stem, keys, directory, made):
    config_name = {"Gemma3": "Gemma3TextConfig"}.get(stem, stem + "Config")
    class_name = {"GPT2": "GPT2LMHeadModel"}.get(stem, stem + "ForCausalLM")
    config = getattr(transformers, config_name)(**keys)
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            is_norm = p.dim() == 1 and name.endswith("weight")  # Gemma's counts from one
            p.copy_(0.08 * noise if p.dim() > 1 else 0.1 * noise + (is_norm and not stem.startswith("Gemma")))
    model = model.eval().float()
    model.save_pretrained(directory)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    wrapped.chat_template = CHAT
    wrapped.save_pretrained(directory)
    return model


def export(ferry, model, file, *options):
    run = subprocess.run([ferry, "export", "--model", str(model), "--output", str(file), *options], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)


class LlamaCpp:
    """One file in llama.cpp, with keys and values in fp32 and without flash attention."""

    def __init__(self, file):
        params = xllamacpp.CommonParams()
        params.model.path, params.verbosity = str(file), 0
        params.n_ctx, params.n_gpu_layers, params.warmup, params.n_parallel = CONTEXT, 0, False, 1
        params.cpuparams.n_threads = 2
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.server = xllamacpp.Server(params)

    def complete(self, **request):
        return self.post("/completion", **(dict(temperature=0, cache_prompt=False, return_tokens=True) | request))

    def log_probs(self, ids):
        """Those of the 20 likeliest next tokens, by id; None where the likeliest is a part of a character, of which the server tells none."""
        steps = self.complete(prompt=ids, n_predict=1, n_probs=20).get("completion_probabilities")
        return {entry["id"]: entry["logprob"] for entry in steps[0]["top_logprobs"]} if steps else None

    def post(self, route, **body):
        request = urllib.request.Request(f"{self.server.listening_address}{route}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def tokenize(self, text):
        return self.post("/tokenize", content=text, add_special=True, parse_special=True)["tokens"]


class TableGelu(torch.nn.Module):
    def forward(self, x):
        y = torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()
        return torch.where(x <= -10, torch.zeros_like(x), torch.where(x >= 10, x, y))


def as_llama_cpp_computes(model):
    """The model with llama.cpp's GELU, or itself where it has none."""
    its = copy.deepcopy(model)
    has_gelu = False
    for module in its.modules():
        for name in ("act", "act_fn"):
            if "gelu" in type(getattr(module, name, None)).__name__.lower():
                setattr(module, name, TableGelu())
                has_gelu = True
    return its if has_gelu else model


def rounded(model, kind):
    """The model as its file has it: matrices rounded, vectors as they are."""
    if kind == "f32":
        return model
    its = copy.deepcopy(model)
    for name, p in its.named_parameters():
        if p.dim() == 2 and "wpe" not in name:
            p.data = p.data.half().float()
    return its


def greedy(model, prompt, n, ends):
    """Ids, and for each the distance between the likeliest token and the next one."""
    ids, gaps = list(prompt), []
    with torch.no_grad():
        past = None
        for _ in range(n):
            out = model(torch.tensor([ids if past is None else ids[-1:]]), past_key_values=past, use_cache=True)
            past, logits = out.past_key_values, out.logits[0, -1]
            logits[ends] = -math.inf
            two = logits.topk(2).values
            gaps.append((two[0] - two[1]).item())
            ids.append(int(logits.argmax()))
    return ids[len(prompt):], gaps


def distance(model, ours, ids):
    """The greatest one between log-probabilities of the next token."""
    with torch.no_grad():
        theirs = torch.log_softmax(model(torch.tensor([ids])).logits[0, -1], -1)
    return max(abs(value - theirs[i].item()) for i, value in ours.items())


def compare_run(model, plain, run, bar, lengths, ends):
    """`plain`: the model with transformers' activation functions."""
    rng = random.Random(3)
    worst, beside_plain, problems = 0.0, 0.0, []
    draw = lambda n: [1] + [rng.randrange(5, 500) for _ in range(n)]
    for n in lengths:
        for _ in range(100):
            ids = draw(n)
            ours = run.log_probs(ids)
            if ours:
                break
        else:
            problems.append(f"no prompt of {n} tokens has log-probabilities")
            continue
        worst, beside_plain = max(worst, distance(model, ours, ids)), max(beside_plain, distance(plain, ours, ids))
    if not worst <= bar:
        problems.append(f"log-probabilities differ by {worst:.1e}")
    for _ in range(5):
        prompt = draw(max(12, min(lengths)))
        expected, gaps = greedy(model, prompt, N_NEW, ends)
        got = run.complete(prompt=prompt, n_predict=N_NEW, ignore_eos=True)["tokens"]
        n_equal = next((i for i, (a, b) in enumerate(zip(expected, got)) if a != b), min(len(expected), len(got)))
        # Two tokens may be as likely as far as rounding goes: either is right, and another text is compared.
        if n_equal == N_NEW or gaps[n_equal] > 2 * bar:
            break
    if n_equal < N_NEW:
        problems.append(f"greedy ids differ from token {n_equal} on (the two likeliest are {gaps[n_equal]:.1e} apart)")
    return worst, beside_plain, n_equal, problems


def compare_values(file, dump, directory, kind):
    """Values of the package gguf beside Ferry's reader's: bit for bit."""
    subprocess.run([dump, str(file), str(directory / "values")], check=True)
    problems = []
    for tensor in gguf.GGUFReader(file).tensors:
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32).reshape(-1)
        ours = numpy.fromfile(directory / "values" / tensor.name, numpy.float32)
        if ours.tobytes() != theirs.tobytes():
            problems.append(f"values of {tensor.name} in {kind}")
    return problems


def compare_rounding(directory):
    """Ferry rounds as the package does, byte by byte."""
    wide = {tensor.name: tensor for tensor in gguf.GGUFReader(directory / "f32.gguf").tensors}
    problems = []
    for kind in ("f16", "bf16", "q8_0"):
        for tensor in gguf.GGUFReader(directory / f"{kind}.gguf").tensors:
            values = wide[tensor.name].data
            if gguf.quants.quantize(values, tensor.tensor_type).tobytes() != tensor.data.tobytes():
                problems.append(f"{kind}: {tensor.name} is rounded in another way")
    return problems


def compare_blocks(dump):
    """Blocks of random bytes of every type that Ferry reads, with finite scales."""
    halves = dict(Q8_0=[0], Q4_0=[0], Q4_1=[0, 2], Q5_0=[0], Q5_1=[0, 2], Q4_K=[0, 2], Q5_K=[0, 2], Q6_K=[208], MXFP4=[])
    random_bytes = numpy.random.default_rng(4)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        writer = gguf.GGUFWriter(directory / "blocks.gguf", "llama")
        for name, places in halves.items():
            kind = gguf.GGMLQuantizationType[name]
            n_bytes = gguf.GGML_QUANT_SIZES[kind][1]
            blocks = random_bytes.integers(0, 256, (64, 4, n_bytes), dtype=numpy.uint8)
            for place in places:
                blocks[:, :, place:place + 2] = random_bytes.normal(0, 0.1, (64, 4, 1)).astype(numpy.float16).view(numpy.uint8)
            writer.add_tensor(name, blocks.reshape(64, 4 * n_bytes), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        problems = compare_values(directory / "blocks.gguf", dump, directory, "random blocks")
    print(f"{'FAIL' if problems else 'PASS'} blocks of {', '.join(halves)}" + ("; " + "; ".join(problems) if problems else ""), flush=True)
    return not problems


def compare_keys(file, made):
    """The package reads the keys that are expected."""
    fields = {key: field.contents() for key, field in gguf.GGUFReader(file).fields.items()}
    expected = {"tokenizer.ggml.eos_token_id": made.token_to_id("<|im_end|>"), "tokenizer.ggml.bos_token_id": 1, "tokenizer.chat_template": CHAT,
                "tokenizer.ggml.add_bos_token": made.post_processor is not None and "<s>" in made.encode("a").tokens,
                "general.type": "model"}
    problems = [f"{key} is {fields.get(key)}" for key, value in expected.items() if fields.get(key) != value]
    if len(fields["tokenizer.ggml.tokens"]) != N_WORDS:
        problems.append("not a token for each row")
    return problems


def run_case(ferry, dump, name):
    stem, keys, tokenizer, *lengths = CASES[name]
    lengths = lengths[0] if lengths else (1, 7, 60, 250)
    made = TOKENIZERS[tokenizer]()
    ends = [made.token_to_id(token) for token in ("</s>", "<|im_end|>", "<|endoftext|>") if made.token_to_id(token) is not None]
    problems, shown = [], []
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        model = make_model(stem, keys, directory / "model", made)
        for kind in ("f32", "f16", "bf16", "q8_0"):
            file = directory / f"{kind}.gguf"
            export(ferry, directory / "model", file, "--gguf-type", kind)
            problems += compare_values(file, dump, directory, kind)
            if kind not in BARS:
                continue
            if kind == "f32":
                problems += compare_keys(file, made)
            run = LlamaCpp(file)
            its = rounded(model, kind)
            computed = as_llama_cpp_computes(its)
            bar = BARS[kind] if computed is its else max(BARS[kind], GELU_BAR)
            worst, beside_plain, n_equal, more = compare_run(computed, its, run, bar, lengths, ends)
            problems += [f"{kind}: {problem}" for problem in more]
            of_plain = f" ({beside_plain:.1e} beside transformers' GELU)" if beside_plain != worst else ""
            shown.append(f"{kind} {worst:.1e}{of_plain}, {n_equal} greedy ids")
            if kind == "f32":
                for text in TEXTS:
                    expected = made.encode(text).ids
                    if run.tokenize(text) != expected:
                        problems.append(f"ids of {text!r}: {run.tokenize(text)[:12]}, not {expected[:12]}")
            del run
        problems += compare_rounding(directory)
    print(f"{'FAIL' if problems else 'PASS'} {name}: {'; '.join(shown)}" + ("; " + "; ".join(problems[:6]) if problems else ""), flush=True)
    return not problems


def run_trained(ferry, tuning):
    """A run, one of its checkpoints, or its adapter, exported without a stop between, beside the Hugging Face directory of it."""
    problems, shown = [], []
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        stem, keys, tokenizer = CASES["llama, llama3 positions, tied"]
        base = make_model(stem, keys, directory / "model", TOKENIZERS[tokenizer]())
        (directory / "text.txt").write_text(pathlib.Path(__file__).read_text())
        subprocess.run([ferry, "train", "--model", "model", "--dataset", "text.txt", "--task", "causal-lm", "--device", "cpu", "--max-steps",
                        "6", "--save-steps", "3", "--max-length", "64", "--micro-batch-size", "2", "--train-batch-size", "4", "--lr", "0.01",
                        "--output-dir", "run", "--tuning", tuning], cwd=directory, check=True, capture_output=True)
        for part in ("run", "run/checkpoint-3"):
            export(ferry, directory / part, directory / "x.gguf", "--gguf-type", "f32")
            export(ferry, directory / part, directory / "hf", "--dtype", "fp32")
            model = transformers.AutoModelForCausalLM.from_pretrained(directory / "hf", attn_implementation="eager").eval().float()
            run = LlamaCpp(directory / "x.gguf")
            prompt = next(ids for ids in ([1, i, i + 7, 2 * i] for i in range(5, 200)) if run.log_probs(ids))
            ours = run.log_probs(prompt)
            worst, from_base = distance(model, ours, prompt), distance(base, ours, prompt)
            shown.append(f"{part} {worst:.1e}")
            if not worst <= BARS["f32"] < from_base:
                problems.append(f"{part}: {worst:.1e}, and {from_base:.1e} from the model before")
            del run
            for name in ("x.gguf", "hf"):
                subprocess.run(["rm", "-r", directory / name], check=True)
    print(f"{'FAIL' if problems else 'PASS'} trained, {tuning}: {'; '.join(shown + problems)}", flush=True)
    return not problems


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    ferry, dump = (str(pathlib.Path(program).resolve()) for program in sys.argv[1:3])
    work = {"blocks": lambda: compare_blocks(dump)}
    work |= {name: lambda name=name: run_case(ferry, dump, name) for name in CASES}
    work |= {f"trained, {tuning}": lambda tuning=tuning: run_trained(ferry, tuning) for tuning in ("full", "lora")}
    results = []
    for name, compare in work.items():
        if len(sys.argv) > 3 and sys.argv[3] not in name:
            continue
        try:
            results.append(compare())
        except Exception as error:
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
            results.append(False)
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

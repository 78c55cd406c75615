"""A small configuration of each family, from the table of all tests (tests/models/small_configs.json; small_configs.h tells what a
row has), and transformers' classes of it."""
import json, pathlib

import transformers
from transformers.models.auto import modeling_auto

TABLE = json.loads((pathlib.Path(__file__).parent.parent / "models/small_configs.json").read_text())
SIZES = dict(vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=80, max_position_embeddings=160)
HEADS = dict(ForCausalLM=modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, ForSequenceClassification=modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
             ForMaskedLM=modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, ForTokenClassification=modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
             ForQuestionAnswering=modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES)


def type_of(name):
    return TABLE[name].get("model_type", name)


def keys_of(name, **others):
    """The keyword arguments of the configuration of a row, without its type; `others` replace or add some."""
    row = TABLE[name]
    # Heads are wider than their share of the model, and share keys: neither may be taken for the usual.
    words = dict(kv_heads=1, width=SIZES["hidden_size"], half=SIZES["hidden_size"] // 2, head=24, window=11)
    keys = {row.get("names", {}).get(key, key): size for key, size in SIZES.items()}
    keys.pop("", None)
    keys |= {key: words.get(value, value) if isinstance(value, str) else value
             for part in ("needed", "more") for key, value in row.get(part, {}).items()}
    return keys | others


def config_class(name):
    return transformers.CONFIG_MAPPING[type_of(name)].__name__


def class_of(name, head):
    """The name of the class, or None: transformers has none, or the family is of the other kind."""
    is_decoder = type_of(name) not in HEADS["ForMaskedLM"]
    if head == ("ForMaskedLM" if is_decoder else "ForCausalLM"):
        return None
    return HEADS[head].get(type_of(name))


def cases_of(name):
    """(class, configuration, keys) of each head of a row."""
    classes = {head: class_of(name, head) for head in HEADS}
    # A decoder's classifier asks where a text ends.
    pads = lambda head: dict(pad_token_id=0) if classes["ForCausalLM"] and head != "ForCausalLM" else {}
    return [(of_head, config_class(name), keys_of(name, **pads(head))) for head, of_head in classes.items() if of_head]

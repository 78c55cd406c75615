"""Each family of models beside transformers, on a small random model of its own: logits, loss and every gradient in fp32, ten
optimizer steps, and that transformers loads what was saved. Bars and rules are those of compare.py and compare_steps.py.

    families.py PARITY_DUMP_PROGRAM TRAIN_DUMP_PROGRAM [NAME]

By itself each family's first case, all heads of one encoder and one decoder, and OPT-350m's layers; FERRY_LONG=1 or a name
takes all of them. Prints two lines a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is
missing."""
import os, sys

try:
    import torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import compare, compare_steps

ENCODER = dict(vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=80)
DECODER = dict(vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, intermediate_size=80,
               max_position_embeddings=160)
LOSSES = dict(ForSequenceClassification=("cross_entropy", 3), ForMaskedLM=("masked_lm", 1), ForTokenClassification=("token_classification", 5),
              ForQuestionAnswering=("question_answering", 1), ForCausalLM=("causal_lm", 1), LMHeadModel=("causal_lm", 1))


def encoders(stem, **keys):
    return [(f"{stem}{head}", f"{stem}Config", keys) for head in
            ("ForSequenceClassification", "ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")]


def decoders(stem, heads, config=None, **keys):
    return [(f"{stem}For{head}", config or f"{stem}Config", keys | dict(pad_token_id=0)) for head in heads]


LABELS = ("SequenceClassification", "TokenClassification")
ALL = (*LABELS, "QuestionAnswering")
OPT = dict(vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, ffn_dim=80, max_position_embeddings=160,
           word_embed_proj_dim=48)
OPT_350M = OPT | dict(do_layer_norm_before=False, word_embed_proj_dim=24)
GPT2 = dict(vocab_size=500, n_positions=160, n_embd=48, n_layer=2, n_head=3)
GPTJ = GPT2 | dict(rotary_dim=8)
GEMMA2 = DECODER | dict(head_dim=24, query_pre_attn_scalar=20, sliding_window=11, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
GEMMA3 = DECODER | dict(head_dim=24, query_pre_attn_scalar=20, sliding_window=11, sliding_window_pattern=2)

CASES = [  # class of transformers, its configuration, settings
    *encoders("Roberta", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1),
    *encoders("XLMRoberta", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1)[1:2],
    *encoders("Camembert", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1)[:1],
    *encoders("DistilBert", vocab_size=500, dim=48, n_layers=2, n_heads=3, hidden_dim=80, max_position_embeddings=160),
    *encoders("Electra", **ENCODER, embedding_size=32, max_position_embeddings=160),
    *encoders("Electra", **(ENCODER | dict(hidden_act="gelu_new")), embedding_size=48, max_position_embeddings=160)[:1],
    ("GPT2LMHeadModel", "GPT2Config", GPT2),
    *decoders("GPT2", ALL, **GPT2),
    ("OPTForCausalLM", "OPTConfig", OPT),
    ("OPTForCausalLM", "OPTConfig", OPT_350M),
    ("OPTForCausalLM", "OPTConfig", OPT | dict(word_embed_proj_dim=64)),
    *decoders("OPT", ("QuestionAnswering",), **OPT),
    *decoders("OPT", ("SequenceClassification", "QuestionAnswering"), **OPT_350M),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER | dict(max_position_embeddings=160)),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER | dict(max_position_embeddings=160, use_parallel_residual=False, attention_bias=False)),
    *decoders("GPTNeoX", ALL, **ENCODER, max_position_embeddings=160),
    ("GPTJForCausalLM", "GPTJConfig", GPTJ),
    *decoders("GPTJ", ("SequenceClassification", "QuestionAnswering"), **GPTJ),
    ("LlamaForCausalLM", "LlamaConfig", DECODER),
    ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(head_dim=24, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
                                                       rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                                         original_max_position_embeddings=64))),
    ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
    ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(rope_scaling=dict(rope_type="dynamic", factor=4.0))),
    ("LlamaForCausalLM", "LlamaConfig", DECODER | dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40))),
    *decoders("Llama", ALL, **DECODER),
    ("MistralForCausalLM", "MistralConfig", DECODER | dict(sliding_window=17)),
    *decoders("Mistral", ALL, **DECODER, sliding_window=17),
    ("Qwen2ForCausalLM", "Qwen2Config", DECODER),
    *decoders("Qwen2", ALL, **DECODER),
    ("Qwen2ForCausalLM", "Qwen2Config", DECODER | dict(use_sliding_window=True, sliding_window=9, max_window_layers=1)),
    ("Qwen3ForCausalLM", "Qwen3Config", DECODER | dict(head_dim=24)),
    *decoders("Qwen3", ALL, **DECODER, head_dim=24),
    ("GemmaForCausalLM", "GemmaConfig", DECODER | dict(head_dim=24)),
    *decoders("Gemma", LABELS, **DECODER, head_dim=24),
    ("Gemma2ForCausalLM", "Gemma2Config", GEMMA2),
    *decoders("Gemma2", LABELS, **GEMMA2),
    ("Gemma3ForCausalLM", "Gemma3TextConfig", GEMMA3),
    *decoders("Gemma3Text", LABELS[:1], **GEMMA3),
    ("Phi3ForCausalLM", "Phi3Config", DECODER | dict(pad_token_id=0, sliding_window=50)),
    ("Phi3ForCausalLM", "Phi3Config", DECODER | dict(pad_token_id=0, original_max_position_embeddings=80, rope_scaling=dict(
        rope_type="longrope", short_factor=[1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.1, 3.8], long_factor=[1.0] * 8))),
    *decoders("Phi3", LABELS, **DECODER),
]
QUICK = [(name, keys) for name, _, keys in [*decoders("Llama", ALL, **DECODER), ("OPTForCausalLM", "", OPT_350M)]]
TEXT_PART = "Gemma3ForConditionalGeneration"
TYPED = ("Electra",)  # families that read types of tokens
POSITIONS = [[3, 7], [0, 110], [8, 2], [63, 63], [0, 0]]


def zero_elements(model, loss, n_labels, least_id):
    """By name the elements whose gradient is exactly zero by fp64 and not in fp32."""
    step = compare_steps.make_steps(model.config.vocab_size, loss, n_labels, 64, least_id)[0]
    grads = []
    for one in (model, compare.in_fp64(model)):
        one.zero_grad()
        compare_steps.step_loss(one, step, loss)
        grads.append({name: p.grad.double() for name, p in compare.parameters(one).items() if p.grad is not None})
        one.zero_grad()
    scale = torch.stack([g.abs().max() for g in grads[1].values()]).median()
    zeros = {name: (exact.abs() < 1e-11 * scale) & ((grads[0][name] != 0) | (exact.dim() == 1)) for name, exact in grads[1].items()}
    return {name: mask for name, mask in zeros.items() if mask.any()}


def model_of(class_name, config_name, keys, n_labels):
    """The random model, and the least id that is no padding."""
    labels = dict(num_labels=n_labels) if n_labels > 1 else {}
    config = getattr(transformers, config_name)(**keys, **labels)
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config)
    compare.randomise(model, 5)
    return model.eval().float(), (config.pad_token_id or 0) + 1


def run_case(programs, class_name, config_name, keys):
    loss, n_labels = next(value for suffix, value in LOSSES.items() if class_name.endswith(suffix))
    model, least_id = model_of(class_name, config_name, keys, n_labels)
    case = dict(built=model, loss=loss, lengths=[40, 111, 9, 64, 1] if loss != "causal_lm" else [40, 111, 9, 64, 2], n_dummy=1,
                takes_types=class_name.startswith(TYPED), least_id=least_id, positions=POSITIONS[:4])
    if n_labels > 1:
        case["n_labels"] = n_labels
    if loss == "question_answering":
        case["positions"] = POSITIONS[:4]
    first = compare.run_case(programs[0], class_name, case)
    zeros = zero_elements(model, loss, n_labels, least_id)
    second = compare_steps.run_case(programs[1], f"{class_name}, ten steps", model, loss, n_labels, 64, {}, least_id, zeros)
    return [first, second]


def run_text_part(program):
    """The texts' part of a model of texts and images, from its files, beside the same weights in a model of texts."""
    config = transformers.Gemma3Config(
        text_config=GEMMA3, mm_tokens_per_image=4, vision_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                                                      intermediate_size=40, image_size=28, patch_size=14))
    whole = transformers.Gemma3ForConditionalGeneration(config)
    compare.randomise(whole, 5)
    config.text_config._attn_implementation = "eager"
    text = transformers.Gemma3ForCausalLM(config.text_config)
    text.model.load_state_dict(whole.model.language_model.state_dict())
    case = dict(built=text.eval().float(), saved=whole, loss="causal_lm", lengths=[40, 111, 9, 64, 2], n_dummy=1, takes_types=False)
    return compare.run_case(program, TEXT_PART, case)


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results, seen = [], set()
    takes_all = len(sys.argv) > 3 or os.environ.get("FERRY_LONG") == "1"
    for class_name, config_name, keys in CASES:
        is_quick = config_name not in seen or config_name == "RobertaConfig" or (class_name, keys) in QUICK
        seen.add(config_name)
        if takes_all and (len(sys.argv) < 4 or sys.argv[3] in class_name) or not takes_all and is_quick:
            results += run_case(sys.argv[1:3], class_name, config_name, keys)
    if takes_all and (len(sys.argv) < 4 or sys.argv[3] in TEXT_PART):
        results.append(run_text_part(sys.argv[1]))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
